//! Two who make a ring in the same place.

use alloc::sync::Arc;

use super::{Guard, Shape};
use crate::testing::{model, thread};
use crate::{AssumeAlive, Error};

#[test]
fn two_makers_do_not_mix() {
    model(|| {
        let shape = Shape { kind: 7, element_bytes: 8, element_align: 8, slot_bytes: 64, depth: 1 };
        let guard = Arc::new(Guard::new());
        let make = move |guard: &Guard| {
            let is_over = guard.begin(&AssumeAlive)?;
            if is_over {
                guard.check_kind(shape.kind)?;
            }
            guard.describe(&shape);
            guard.publish();
            Ok(is_over)
        };
        let other = Arc::clone(&guard);
        let rival = thread::spawn(move || make(&other));
        let made = [make(&guard), rival.join().unwrap()];
        match made {
            // One after the other: the second sees what the first has made.
            [Ok(false), Ok(true)] | [Ok(true), Ok(false)] => {}
            // At the same time: one of them gives way.
            [Ok(false), Err(Error::NotReady)] | [Err(Error::NotReady), Ok(false)] => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(guard.check(shape.kind, 8, 8), Ok(shape));
    });
}
