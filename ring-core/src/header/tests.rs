//! Two who make a ring in the same place.

use alloc::sync::Arc;

use super::{Guard, Shape};
use crate::Error;
use crate::testing::{model, thread};

#[test]
fn two_makers_do_not_mix() {
    model(|| {
        let shape = Shape { kind: 7, element_bytes: 8, element_align: 8, slot_bytes: 64, depth: 1 };
        let guard = Arc::new(Guard::new());
        let make = move |guard: &Guard| {
            if !guard.begin()? {
                return guard.check_kind(shape.kind).map(|()| false);
            }
            guard.describe(&shape);
            guard.publish();
            Ok(true)
        };
        let other = Arc::clone(&guard);
        let rival = thread::spawn(move || make(&other));
        let made = [make(&guard), rival.join().unwrap()];
        match made {
            // One after the other: the second knows the ring that the first has made.
            [Ok(false), Ok(true)] | [Ok(true), Ok(false)] => {}
            // At the same time: one of them gives way.
            [Ok(true), Err(Error::NotReady)] | [Err(Error::NotReady), Ok(true)] => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(guard.check(shape.kind, 8, 8), Ok(shape));
    });
}

/// One makes a ring, another makes it anew, a third would: what it compares is there.
#[test]
fn the_kind_of_a_ring_that_is_made_anew_is_known() {
    model(|| {
        let shape = Shape { kind: 7, element_bytes: 8, element_align: 8, slot_bytes: 64, depth: 1 };
        let guard = Arc::new(Guard::new());
        let first = Arc::clone(&guard);
        let first = thread::spawn(move || {
            if first.begin() == Ok(true) {
                first.describe(&shape);
                first.publish();
            }
        });
        let second = Arc::clone(&guard);
        let second = thread::spawn(move || {
            if second.check_ready(shape.kind).is_ok() {
                second.begin_anew();
            }
        });
        if guard.begin() == Ok(false) {
            assert_eq!(guard.check_kind(shape.kind), Ok(()));
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn guards_are_seen_whole_or_not_at_all() {
    model(|| {
        let shape = Shape { kind: 7, element_bytes: 8, element_align: 8, slot_bytes: 64, depth: 1 };
        let guard = Arc::new(Guard::new());
        let other = Arc::clone(&guard);
        let maker = thread::spawn(move || {
            assert_eq!(other.begin(), Ok(true));
            other.describe(&shape);
            other.publish();
        });
        let seen = guard.check(shape.kind, 8, 8);
        assert!(matches!(seen, Ok(found) if found == shape) || seen == Err(Error::NotReady), "{seen:?}");
        maker.join().unwrap();
    });
}
