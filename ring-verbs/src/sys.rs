//! The stable ABI of libibverbs: its structures, codes, flags and functions under C's own names.
//!
//! It mirrors the library's public headers, `infiniband/verbs.h` and what that includes, as of rdma-core 44, for
//! symbol versions IBVERBS_1.1 and later; the numbers of the protocol, and the memory that it moves, are described
//! in the library's manual pages. What the crate has no use for, such as flow steering and tag matching, is left out
//! or opaque. A field called `type` in C is `type_`, and unions without a name have one: `imm`, `bind_or_tso`.
//!
//! Nothing is linked: [`Functions::load`] opens the library at run time, so that a program starts where there is
//! none. What the header defines as inline functions is here too, as functions without the prefix `ibv_`: they go
//! straight through the tables that the provider's library fills.
//!
//! Structures whose fields may all be zero are [`Default`]. An enumeration of C is a newtype with constants, since
//! a newer library may return what has no name yet.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | the pointer to the table, once it is filled | the same pointer when it is asked for | the functions in it |
#![allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    reason = "names, fields and constants are C's, described in its manual pages; unions and locks print nothing"
)]

mod address;
mod codes;
mod completion;
mod device;
mod device_ex;
mod events;
mod extended;
mod flags;
mod functions;
mod inline;
mod memory;
mod queue_pair;
mod shared_receive;
#[cfg(test)]
mod tests;
mod unions;
mod work_request;
mod zero;

pub use address::*;
pub use codes::*;
pub use completion::*;
pub use device::*;
pub use device_ex::*;
pub use events::*;
pub use extended::*;
pub use flags::*;
pub use functions::{Functions, LoadError};
pub use inline::*;
pub use memory::*;
pub use queue_pair::*;
pub use shared_receive::*;
pub use work_request::*;
