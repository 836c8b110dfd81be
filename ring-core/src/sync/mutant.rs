//! One ordering weakened, to see whether a model notices.
//!
//! The models are built once. Which place is weakened in a run says the environment: `RING_MUTANT` holds the file,
//! line and column of a call and, since an exchange is given two orderings, which of them.

use core::fmt::Write;
use core::panic::Location;
use std::string::String;
use std::sync::OnceLock;

use super::Ordering;

/// The ordering to use for the argument number `index` of the call at the caller's place.
#[track_caller]
pub(super) fn ordering(order: Ordering, index: u32) -> Ordering {
    // ORDERING: Relaxed: weaker than what the call asks for; a model must notice.
    if is_here(index) { Ordering::Relaxed } else { order }
}

/// Whether the caller's place is the one that is weakened.
#[track_caller]
pub(super) fn is_here(index: u32) -> bool {
    static MUTANT: OnceLock<Option<String>> = OnceLock::new();
    let Some(mutant) = MUTANT.get_or_init(|| std::env::var("RING_MUTANT").ok()) else { return false };
    let mut here = String::new();
    write!(here, "{}:{index}", Location::caller()).is_ok() && here == *mutant
}
