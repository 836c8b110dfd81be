//! Operations of the extended context.
//!
//! # Safety
//!
//! A context whose `abi_compat` is all ones lies at the end of an extended one, directly behind the word that says
//! how large the library thinks that is. Operations lie before that word, and only those exist that the size
//! covers: nothing is read before it has been compared.
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ptr;

use super::super::{ibv_context, verbs_context};

/// The extended context that a context lies in, NULL if in none.
///
/// The library's may be smaller than [`verbs_context`] at its beginning: compare `sz` before a field is read.
///
/// # Safety
///
/// The context is open, and the pointer may be used for all of the extended context.
#[must_use]
pub unsafe fn verbs_get_ctx(context: *mut ibv_context) -> *mut verbs_context {
    // SAFETY: the context is open.
    let mark = unsafe { (*context).abi_compat };
    if mark.addr() == usize::MAX {
        context.wrapping_byte_sub(offset_of!(verbs_context, context)).cast()
    } else {
        ptr::null_mut()
    }
}

/// The operation at `offset` of the extended context, if the provider has it.
///
/// # Safety
///
/// As for [`verbs_get_ctx`]. `_field` reads the field at `offset`, which gives `F`.
#[inline]
pub(super) unsafe fn operation<F: Copy>(
    context: *mut ibv_context,
    offset: usize,
    _field: fn(&verbs_context) -> Option<F>,
) -> Option<F> {
    // SAFETY: by this function's contract.
    let extended = unsafe { verbs_get_ctx(context) };
    if extended.is_null() {
        return None;
    }
    let size = extended.wrapping_byte_add(offset_of!(verbs_context, sz)).cast::<usize>();
    // SAFETY: every extended context has its size directly before the context.
    if unsafe { size.read() } < size_of::<verbs_context>() - offset {
        return None;
    }
    // SAFETY: the size covers the field, and the contract says which type it has.
    unsafe { extended.wrapping_byte_add(offset).cast::<Option<F>>().read() }
}

/// The operation `$field` of the extended context of `$context`, if the provider has it. Unsafe as [`operation`] is.
macro_rules! extended_operation {
    ($context:expr, $field:ident) => {
        $crate::sys::inline::extended::operation(
            $context,
            ::core::mem::offset_of!($crate::sys::verbs_context, $field),
            |extended| extended.$field,
        )
    };
}

pub(super) use extended_operation;

#[cfg(test)]
mod tests;
