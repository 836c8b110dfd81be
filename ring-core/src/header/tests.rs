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
