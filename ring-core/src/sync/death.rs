//! Threads of a model that are killed before one of their writes to shared memory.
//!
//! What such a thread wrote before stays, and nothing follows: its stack is unwound, and the handles that this drops find
//! only zeros and write nothing. A test counts the writes up until the thread lives, and so meets each moment that
//! others can tell from the one before, also those of code that is yet to be written.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::boxed::Box;
use std::panic::{catch_unwind, resume_unwind};

/// What a killed thread's stack is unwound with.
struct Death;

#[derive(Clone, Copy)]
enum Fate {
    Lives,
    DiesAfter(u64),
    IsDead,
}

loom::thread_local! {
    static FATE: Cell<Fate> = Cell::new(Fate::Lives);
}

/// Lets this thread begin so many writes at most until `act` ends. None: it was killed.
///
/// An exchange that fails is counted, too. A write to the payload of a slot is one, however long it is.
pub(crate) fn after<R>(writes: u64, act: impl FnOnce() -> R) -> Option<R> {
    FATE.with(|fate| fate.set(Fate::DiesAfter(writes)));
    let outcome = catch_unwind(AssertUnwindSafe(act));
    FATE.with(|fate| fate.set(Fate::Lives));
    match outcome {
        Ok(result) => Some(result),
        Err(cause) if cause.is::<Death>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

/// Whether this thread may write: it is killed here where its writes are used up, and its destructors may not.
pub(super) fn spares_write() -> bool {
    match FATE.with(Cell::get) {
        Fate::Lives => true,
        Fate::IsDead => false,
        Fate::DiesAfter(0) => {
            FATE.with(|fate| fate.set(Fate::IsDead));
            resume_unwind(Box::new(Death))
        }
        Fate::DiesAfter(writes) => {
            FATE.with(|fate| fate.set(Fate::DiesAfter(writes - 1)));
            true
        }
    }
}

/// Whether this thread was killed, and its destructors run.
pub(super) fn has_struck() -> bool {
    matches!(FATE.with(Cell::get), Fate::IsDead)
}
