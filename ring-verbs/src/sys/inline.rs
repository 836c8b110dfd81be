//! What the C header defines as inline functions.
//!
//! Where a table has NULL in place of an operation the answer is EOPNOTSUPP: as the result, or as errno where the
//! result is a pointer.

mod create;
mod extended;
mod poll;
mod post;
mod query;

use core::ffi::c_int;

pub use create::*;
pub use poll::*;
pub use post::*;
pub use query::*;

pub use extended::verbs_get_ctx;

/// What an operation answers that the provider does not have.
const NOT_SUPPORTED: c_int = libc::EOPNOTSUPP;
