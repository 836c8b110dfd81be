//! Models of the lock. The same bodies run under loom and natively.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic;

use super::Lock;
use crate::testing::{model, scaled, thread};

#[test]
fn no_update_is_lost() {
    model(|| {
        let turns = scaled(2, 1_000);
        let lock = Arc::new(Lock::new((0_u64, 0_u64)));
        let count = move |lock: &Lock<(u64, u64)>| {
            for _ in 0..turns {
                lock.with(|(one, other)| {
                    assert_eq!(one, other, "nobody is in the middle");
                    *one += 1;
                    *other += 1;
                });
            }
        };
        let theirs = Arc::clone(&lock);
        let thread = thread::spawn(move || count(&theirs));
        count(&lock);
        thread.join().unwrap();
        assert_eq!(lock.with(|counts| *counts), (2 * turns, 2 * turns));
    });
}

#[test]
fn a_panic_leaves_it_free() {
    model(|| {
        let lock = Lock::new(1);
        // Without the message of a panic.
        let panics = || lock.with(|_| panic::resume_unwind(alloc::boxed::Box::new("meant")));
        assert!(panic::catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(lock.with(|value| *value), 1);
    });
}
