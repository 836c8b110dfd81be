//! How grants and handles end, and what their successors are held to.

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_core::Error;

use crate::Fenced;

/// What becomes of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
pub enum End {
    /// It is committed or released.
    Finish,
    Drop,
    /// It is forgotten, as by a thread that is killed.
    Leak,
}

impl End {
    /// Ends a grant so, and says whether it was finished.
    pub fn apply<G>(self, grant: G, finish: impl FnOnce(G)) -> bool {
        match self {
            Self::Finish => finish(grant),
            Self::Drop => drop(grant),
            Self::Leak => std::mem::forget(grant),
        }
        self == Self::Finish
    }
}

/// Drops a handle, or forgets it, as if its thread had been killed.
pub fn leave<H>(handle: &mut Option<H>, killed: bool) {
    if let Some(handle) = handle.take() {
        if killed { std::mem::forget(handle) } else { drop(handle) }
    }
}

/// Where the tail is once a producer has attached: where it was. Only to a closed ring none can.
pub fn where_tail_is(region: &Fenced, attached: Result<u64, &Error>, tail: u64, is_closed: bool) -> u64 {
    if !region.is_spoiled() {
        match attached {
            Ok(found) => assert_eq!(found, tail),
            Err(error) => assert!(is_closed && *error == Error::Closed, "{error:?}"),
        }
    }
    attached.unwrap_or(tail)
}

/// Where the head is once a consumer has attached: where it was, or before that when messages may come `again`.
pub fn where_head_is(region: &Fenced, attached: Result<u64, &Error>, head: u64, again: bool) -> u64 {
    if !region.is_spoiled() {
        match attached {
            Ok(found) => assert!(again || found == head, "popped for good, and there again"),
            Err(error) => panic!("{error:?}"),
        }
    }
    attached.unwrap_or(head)
}
