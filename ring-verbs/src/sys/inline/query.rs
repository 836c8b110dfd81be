//! Asking a device.
//!
//! # Safety
//!
//! Each function calls what the provider has put into a table for just this purpose, or what the library has under
//! that name. What the manual pages ask of its arguments is asked of the caller.
#![allow(unsafe_code)]

use core::ffi::c_int;

use super::super::{
    Functions, ibv_context, ibv_device_attr_ex, ibv_gid_entry, ibv_port_attr, ibv_query_device_ex_input,
    ibv_values_ex,
};
use super::NOT_SUPPORTED;
use super::extended::extended_operation;

/// Asks for a device's limits and extensions; one without extensions fills [`orig_attr`] alone.
///
/// [`orig_attr`]: ibv_device_attr_ex::orig_attr
///
/// # Safety
///
/// The context is open, the input NULL or valid, and `attr` valid for the result.
pub unsafe fn query_device_ex(
    functions: &Functions,
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
) -> c_int {
    // SAFETY: it is NULL or valid.
    if unsafe { input.as_ref() }.is_some_and(|input| input.comp_mask != 0) {
        return libc::EINVAL;
    }
    // SAFETY: the context is open.
    if let Some(query) = unsafe { extended_operation!(context, query_device_ex) } {
        // SAFETY: the caller's promise.
        let result = unsafe { query(context, input, attr, size_of::<ibv_device_attr_ex>()) };
        if result != NOT_SUPPORTED && result != libc::ENOSYS {
            return result;
        }
    }
    // SAFETY: the pointer is valid for the result.
    unsafe { attr.write(ibv_device_attr_ex::default()) };
    // SAFETY: it has just been written; the shorter attributes are its first field.
    unsafe { (functions.ibv_query_device)(context, attr.cast()) }
}

/// Asks for the state of a port.
///
/// # Safety
///
/// The context is open, and `attr` is valid for the result.
pub unsafe fn query_port(
    functions: &Functions,
    context: *mut ibv_context,
    port_num: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the context is open.
    if let Some(query) = unsafe { extended_operation!(context, query_port) } {
        // SAFETY: the caller's promise.
        return unsafe { query(context, port_num, attr, size_of::<ibv_port_attr>()) };
    }
    // SAFETY: the pointer is valid for the result.
    unsafe { attr.write(ibv_port_attr::default()) };
    // SAFETY: the caller's promise; the function fills what the first version of the structure had.
    unsafe { (functions.ibv_query_port)(context, port_num, attr.cast()) }
}

/// Reads an entry of a port's table of GIDs.
///
/// # Safety
///
/// The context is open, and `entry` is valid for the result.
pub unsafe fn query_gid_ex(
    functions: &Functions,
    context: *mut ibv_context,
    port_num: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    let size = size_of::<ibv_gid_entry>();
    // SAFETY: the caller's promise.
    unsafe { (functions._ibv_query_gid_ex)(context, port_num, gid_index, entry, flags, size) }
}

/// Reads all valid GIDs of all ports; how many, or a negative errno.
///
/// # Safety
///
/// The context is open, and `entries` has room for `max_entries`.
pub unsafe fn query_gid_table(
    functions: &Functions,
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
) -> isize {
    match functions._ibv_query_gid_table {
        // SAFETY: the caller's promise.
        Some(query) => unsafe { query(context, entries, max_entries, flags, size_of::<ibv_gid_entry>()) },
        None => -(NOT_SUPPORTED as isize),
    }
}

/// Asks for values that change: which are answered, its mask says.
///
/// # Safety
///
/// The context is open, and the values are valid.
pub unsafe fn query_rt_values_ex(context: *mut ibv_context, values: *mut ibv_values_ex) -> c_int {
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, query_rt_values) } {
        // SAFETY: the caller's promise.
        Some(query) => unsafe { query(context, values) },
        None => NOT_SUPPORTED,
    }
}
