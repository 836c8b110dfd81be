//! What is claimed of a completion queue.

use super::Registry;
use crate::error::Error;

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
