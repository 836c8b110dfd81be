//! What is claimed of a completion queue.

use super::{Registry, SharedQueue};
use crate::error::Error;
use crate::shared_receive_queue::SharedFlight;

#[test]
fn what_was_claimed_beyond_the_room_is_given_back_too() {
    for can_overflow in [false, true] {
        let mut registry = Registry::<()>::new(100, can_overflow);
        registry.claim(80).unwrap();
        let more = registry.claim(80);
        if can_overflow {
            more.unwrap();
            registry.unclaim(80);
        } else {
            assert_eq!(more, Err(Error::CompletionQueueFull { room: 20, needed: 80 }));
        }
        assert_eq!(registry.claimed, 80);
        registry.unclaim(80);
        assert_eq!((registry.claimed, registry.needed()), (0, 0));
        registry.claim(100).unwrap();
    }
}

#[test]
fn a_queue_that_may_overflow_needs_no_size() {
    let mut registry = Registry::<()>::new(100, true);
    registry.claim(u32::MAX).unwrap();
    registry.claim(u32::MAX).unwrap();
    assert_eq!(registry.needed(), 0);
    let mut registry = Registry::<()>::new(100, false);
    registry.claim(60).unwrap();
    assert_eq!(registry.needed(), 60);
    registry.resize(60);
    assert_eq!(registry.claim(1), Err(Error::CompletionQueueFull { room: 0, needed: 1 }));
}

#[test]
fn a_shared_queue_is_entered_once_and_taken_out_when_nobody_uses_it() {
    let mut registry = Registry::<()>::new(10, false);
    let [queue, other] = [6, 6].map(|depth| SharedQueue::new(SharedFlight::new(depth)));
    registry.enter_shared(&queue).unwrap();
    registry.enter_shared(&queue).unwrap();
    assert_eq!(registry.claimed, 6);
    assert_eq!(registry.enter_shared(&other), Err(Error::CompletionQueueFull { room: 4, needed: 6 }));
    registry.use_shared(queue.key());
    assert!(!registry.leave_shared(queue.key()), "there is another");
    assert!(!registry.mark_unused());
    assert!(registry.leave_shared(queue.key()));
    assert!(registry.mark_unused());
    // Somebody comes, and goes, while the completion queue is looked at.
    registry.enter_shared(&queue).unwrap();
    assert!(registry.leave_shared(queue.key()));
    assert_eq!((registry.remove_marked().len(), registry.claimed), (0, 6), "it was not seen empty since");
    assert!(registry.mark_unused());
    assert_eq!((registry.remove_marked().len(), registry.claimed), (1, 0));
    assert!(!registry.leave_shared(queue.key()), "it is not there");
}
