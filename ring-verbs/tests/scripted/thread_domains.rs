//! Domains for one thread, which are made of two others.
//!
//! # Safety
//!
//! Each test is one thread.
#![allow(unsafe_code)]

use ring_verbs::sys::{AccessFlags, WcStatus};
use ring_verbs::{Errno, Error, ExposedRegion, Operation, ProtectionDomain, Request};

use crate::device::{Answer, Call, Kind, Scripted};
use crate::rig::{Rig, numbers, options, ready};

fn for_one_thread(outer: &ProtectionDomain) -> Result<ProtectionDomain, Error> {
    // SAFETY: a test is one thread.
    unsafe { ProtectionDomain::for_one_thread(outer) }
}

#[test]
fn what_is_made_in_a_domain_for_one_thread_works() {
    let mut rig = Rig::new();
    let inner = for_one_thread(&rig.domain).unwrap();
    {
        let state = rig.device.state();
        assert_eq!([Kind::Domain, Kind::Thread].map(|kind| state.count(kind)), [2, 1]);
    }
    let mut pair = ready(options().build(&inner, &rig.queue, &rig.queue).unwrap());
    pair.post(&Request::send(), rig.buffer(1)).unwrap();
    rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [1]);
    drop((pair, inner));
    let state = rig.device.state();
    // The domain that holds the thread's goes before it.
    assert_eq!((&state.ended[..], state.busy), (&[Kind::QueuePair, Kind::Domain, Kind::Thread][..], 0));
}

/// The thread's domain goes after what is around it, and before the device, whatever the program drops first.
#[test]
fn parts_of_a_domain_for_one_thread_may_be_dropped_in_any_order() {
    for first_dropped in 0..4_usize {
        let (device, context) = Scripted::open();
        let outer = ProtectionDomain::new(&context).unwrap();
        let inner = for_one_thread(&outer).unwrap();
        let region = ExposedRegion::new(&inner, vec![0; 64], AccessFlags::LOCAL_WRITE).unwrap();
        let mut objects: [Option<Box<dyn core::any::Any>>; 4] =
            [Some(Box::new(context)), Some(Box::new(outer)), Some(Box::new(inner)), Some(Box::new(region))];
        for index in 0..4 {
            objects[(first_dropped + index) % 4] = None;
        }
        device.require_ended();
        let ended = [Kind::Region, Kind::Domain, Kind::Thread, Kind::Domain];
        assert_eq!(device.state().ended, ended);
    }
}

#[test]
fn a_domain_for_one_thread_that_cannot_be_made_leaves_nothing() {
    let operation = Operation::AllocateThreadDomain;
    let cases = [
        (libc::ENOMEM, Error::Refused { operation, errno: Errno(libc::ENOMEM) }),
        (libc::EOPNOTSUPP, Error::NotSupported { operation }),
    ];
    for call in [Call::AllocateThread, Call::AllocateParent] {
        for (errno, expected) in cases {
            let (device, context) = Scripted::open();
            let outer = ProtectionDomain::new(&context).unwrap();
            device.answer(call, Answer::errno(errno));
            // Freeing what was made before leaves another number in `errno`.
            assert_eq!(for_one_thread(&outer).unwrap_err(), expected, "{call:?}");
            let freed = if call == Call::AllocateParent { &[Kind::Thread][..] } else { &[] };
            assert_eq!(device.state().ended, freed);
            drop(for_one_thread(&outer).unwrap());
            drop((outer, context));
            device.require_ended();
        }
    }
}

#[test]
fn a_driver_without_thread_domains_says_so() {
    let (device, context) = Scripted::open_plain();
    let outer = ProtectionDomain::new(&context).unwrap();
    let error = for_one_thread(&outer).unwrap_err();
    assert_eq!(error, Error::NotSupported { operation: Operation::AllocateThreadDomain });
    drop((outer, context));
    device.require_ended();
}

/// Where the domain stays, so does what it was made of, and the device is not closed below it.
#[test]
fn a_domain_for_one_thread_that_the_device_keeps_keeps_its_parts() {
    let (device, context) = Scripted::open();
    let outer = ProtectionDomain::new(&context).unwrap();
    let inner = for_one_thread(&outer).unwrap();
    device.answer(Call::FreeDomain, Answer::errno(libc::EBUSY));
    drop((inner, outer, context));
    let state = device.state();
    assert_eq!(state.live(), [Kind::Domain, Kind::Thread, Kind::Domain]);
    assert_eq!((state.is_closed, state.busy), (false, 0));
}

#[test]
fn a_thread_domain_that_the_driver_keeps_is_left_to_the_end_of_the_process() {
    let (device, context) = Scripted::open();
    let outer = ProtectionDomain::new(&context).unwrap();
    let inner = for_one_thread(&outer).unwrap();
    device.answer(Call::FreeThread, Answer::errno(libc::EBUSY));
    drop((inner, outer, context));
    let state = device.state();
    assert_eq!(state.live(), [Kind::Thread]);
    assert_eq!(state.ended, [Kind::Domain, Kind::Domain]);
}
