//! Registering memory, and what becomes of it when the device does not let it go.
//!
//! # Safety
//!
//! The memory here is a vector, which moves only when it is changed.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use ring_core::{HeapRegion, Region};
use ring_verbs::sys::AccessFlags;
use ring_verbs::{
    Errno, Error, ExposedRegion, Memory, MemoryRegion, Operation, ProtectionDomain, RingMemory,
};

use crate::device::{Answer, Call, Kind, Scripted};

/// Memory that is counted while it is there.
#[derive(Debug)]
struct Counted {
    bytes: Vec<u8>,
    _alive: Arc<()>,
}

// SAFETY: as that of the vector.
unsafe impl Memory for Counted {
    fn parts(&mut self) -> (NonNull<u8>, usize) {
        self.bytes.parts()
    }
}

struct Setting {
    device: Scripted,
    domain: ProtectionDomain,
    alive: Arc<()>,
}

fn setting() -> Setting {
    let (device, context) = Scripted::open();
    let domain = ProtectionDomain::new(&context).unwrap();
    Setting { device, domain, alive: Arc::default() }
}

impl Setting {
    fn memory(&self) -> Counted {
        Counted { bytes: vec![7; 4096], _alive: Arc::clone(&self.alive) }
    }

    fn alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }
}

/// A region of rings that is counted while it is there.
#[derive(Debug)]
struct CountedRegion {
    region: HeapRegion,
    _alive: Arc<()>,
}

// SAFETY: as that of the heap.
unsafe impl Region for CountedRegion {
    fn base(&self) -> NonNull<u8> {
        self.region.base()
    }

    fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// What this process may lock; none: any number of bytes.
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it can be written.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) }, 0);
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[test]
fn memory_is_registered_with_the_rights_that_were_asked_for() {
    let Setting { device, domain, .. } = setting();
    let memory = vec![0; 100];
    let base = memory.as_ptr().addr();
    let local = MemoryRegion::new(&domain, memory).unwrap();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let exposed = ExposedRegion::new(&domain, vec![0; 200], access).unwrap();
    let relaxed = access | AccessFlags::RELAXED_ORDERING;
    let optional = ExposedRegion::new(&domain, vec![0; 300], relaxed).unwrap();
    let state = device.state();
    let told: Vec<_> =
        state.registered.iter().map(|told| (told.bytes, told.access, told.is_optional)).collect();
    assert_eq!(told, [(100, AccessFlags::LOCAL_WRITE, false), (200, access, false), (300, relaxed, true)]);
    assert_eq!(state.registered[0].base, base);
    drop(state);
    drop((local, exposed, optional, domain));
    device.require_ended();
}

#[test]
fn memory_that_is_refused_comes_back_with_the_reason() {
    let setting = setting();
    setting.device.answer(Call::Register, Answer::errno(libc::EINVAL));
    let refused = MemoryRegion::new(&setting.domain, setting.memory()).unwrap_err();
    let operation = Operation::Register;
    assert_eq!(refused.error, Error::Refused { operation, errno: Errno(libc::EINVAL) });
    assert_eq!((refused.memory.bytes[4095], setting.alive()), (7, 1));

    setting.device.answer(Call::Register, Answer::errno(libc::ENOMEM));
    let refused = MemoryRegion::new(&setting.domain, refused.memory).unwrap_err();
    let expected = match limit() {
        Some(limit_bytes) => Error::LockedMemory { operation, bytes: 4096, limit_bytes },
        None => Error::Refused { operation, errno: Errno(libc::ENOMEM) },
    };
    assert_eq!(refused.error, expected);
    assert!(refused.error.to_string().contains("ulimit -l"), "{}", refused.error);
    drop(refused);
    assert_eq!(setting.alive(), 0);
}

#[test]
fn rights_that_do_not_go_together_are_refused_without_asking() {
    let setting = setting();
    for access in [AccessFlags::REMOTE_WRITE, AccessFlags::REMOTE_ATOMIC] {
        let refused = ExposedRegion::new(&setting.domain, setting.memory(), access).unwrap_err();
        assert_eq!(refused.error, Error::RemoteWithoutLocal);
    }
    assert_eq!(setting.device.state().registered.len(), 0);
    assert_eq!(setting.alive(), 0);
}

/// The device may write there for ever, so the memory is never freed, and nothing that it belongs to is closed.
#[test]
fn memory_that_the_device_keeps_is_not_freed() {
    for ends_by_drop in [true, false] {
        let setting = setting();
        let region = MemoryRegion::new(&setting.domain, setting.memory()).unwrap();
        setting.device.answer(Call::Deregister, Answer::errno(libc::EBUSY));
        if ends_by_drop {
            drop(region);
        } else {
            assert!(region.into_memory().is_none());
        }
        let Setting { device, domain, alive } = setting;
        assert_eq!(Arc::strong_count(&alive), 2, "the memory is there");
        drop(domain);
        let state = device.state();
        assert_eq!((state.live(), state.is_closed, state.busy), (vec![Kind::Domain, Kind::Region], false, 0));
    }
}

#[test]
fn memory_comes_back_when_its_registration_ends() {
    let setting = setting();
    let region = MemoryRegion::new(&setting.domain, setting.memory()).unwrap();
    let memory = region.into_memory().unwrap();
    assert_eq!((memory.bytes[0], setting.device.state().count(Kind::Region)), (7, 0));
    drop(memory);
    assert_eq!(setting.alive(), 0);
}

#[test]
fn a_region_that_was_exposed_comes_back_once_no_peer_reaches_it() {
    for is_kept in [false, true] {
        let setting = setting();
        let region = CountedRegion { region: HeapRegion::new(4096), _alive: Arc::clone(&setting.alive) };
        let base = region.base();
        let exposed = ExposedRegion::of_region(&setting.domain, region, AccessFlags::REMOTE_READ).unwrap();
        exposed.write(5, b"rings");
        if is_kept {
            setting.device.answer(Call::Deregister, Answer::errno(libc::EBUSY));
            assert!(exposed.into_memory().is_none());
            assert_eq!((setting.alive(), setting.device.state().count(Kind::Region)), (1, 1), "it is there");
            continue;
        }
        let RingMemory(region) = exposed.into_memory().unwrap();
        assert_eq!(setting.device.state().count(Kind::Region), 0);
        assert_eq!((region.base(), setting.alive()), (base, 1), "the same memory");
        // And again, as it was.
        let exposed = ExposedRegion::of_region(&setting.domain, region, AccessFlags::REMOTE_READ).unwrap();
        let mut bytes = [0; 5];
        exposed.read(5, &mut bytes);
        assert_eq!(&bytes, b"rings");
        drop(exposed);
        assert_eq!(setting.alive(), 0);
    }
}
