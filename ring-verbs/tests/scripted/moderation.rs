//! Events that wait for more completions.

use core::time::Duration;

use ring_verbs::sys::CqAttrMask;
use ring_verbs::{CompletionQueueOptions, Errno, Error, Operation, Slab};

use crate::device::{Answer, Call, Scripted};
use crate::rig::Rig;

#[test]
fn a_queue_is_told_how_many_and_how_long() {
    let mut rig = Rig::new();
    for (completions, period) in [
        (16, Duration::from_micros(250)),
        (0, Duration::ZERO),
        (u16::MAX, Duration::from_micros(65_535)),
        // The field has 16 bits.
        (1, Duration::from_micros(65_536)),
        (1, Duration::MAX),
        (1, Duration::from_nanos(2_999)),
    ] {
        rig.queue.moderate(completions, period).unwrap();
    }
    let state = rig.device.state();
    assert!(state.moderated.iter().all(|told| told.attr_mask == CqAttrMask::MODERATE));
    let told: Vec<_> =
        state.moderated.iter().map(|told| (told.moderate.cq_count, told.moderate.cq_period)).collect();
    assert_eq!(told, [(16, 250), (0, 0), (u16::MAX, 65_535), (1, 65_535), (1, 65_535), (1, 2)]);
}

#[test]
fn more_than_a_device_can_is_refused() {
    let mut rig = Rig::new();
    let operation = Operation::Moderate;
    for answer in Answer::ways(libc::EINVAL) {
        rig.device.answer(Call::Moderate, answer);
        let error = rig.queue.moderate(1000, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error, Error::Refused { operation, errno: Errno(libc::EINVAL) }, "{answer:?}");
    }
    for answer in Answer::ways(libc::EOPNOTSUPP) {
        rig.device.answer(Call::Moderate, answer);
        let error = rig.queue.moderate(1, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error, Error::NotSupported { operation }, "{answer:?}");
    }
    rig.queue.moderate(1, Duration::from_millis(1)).unwrap();
}

#[test]
fn a_driver_without_moderation_says_so() {
    let (device, context) = Scripted::open_plain();
    let mut queue = CompletionQueueOptions::new(8).build::<Slab>(&context).unwrap();
    let error = queue.moderate(1, Duration::from_millis(1)).unwrap_err();
    assert_eq!(error, Error::NotSupported { operation: Operation::Moderate });
    assert!(error.to_string().starts_with("cannot set the moderation of events"), "{error}");
    drop((queue, context));
    device.require_ended();
}
