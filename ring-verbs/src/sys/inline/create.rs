//! Making, changing and freeing objects through the extended context.
//!
//! # Safety
//!
//! Each function calls what the provider has put into a table for just this purpose, or what the library has under
//! that name. What the manual pages ask of its arguments is asked of the caller.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::ptr;

use super::super::{
    AccessFlags, Functions, QpInitAttrMask, SrqInitAttrMask, SrqType, ibv_context, ibv_cq, ibv_cq_ex,
    ibv_cq_init_attr_ex, ibv_modify_cq_attr, ibv_mr, ibv_parent_domain_init_attr, ibv_pd, ibv_qp,
    ibv_qp_init_attr_ex, ibv_srq, ibv_srq_init_attr_ex, ibv_td, ibv_td_init_attr,
};
use super::NOT_SUPPORTED;
use super::extended::extended_operation;

/// Makes a thread domain; errno on NULL.
///
/// # Safety
///
/// The context is open, and the attributes are valid.
pub unsafe fn alloc_td(context: *mut ibv_context, init_attr: *mut ibv_td_init_attr) -> *mut ibv_td {
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, alloc_td) } {
        // SAFETY: the caller's promise.
        Some(alloc) => unsafe { alloc(context, init_attr) },
        None => refuse(),
    }
}

/// Frees a thread domain.
///
/// # Safety
///
/// It is valid, and not used afterwards.
pub unsafe fn dealloc_td(td: *mut ibv_td) -> c_int {
    // SAFETY: the thread domain is valid.
    let context = unsafe { (*td).context };
    // SAFETY: its context is open for as long as it lives.
    match unsafe { extended_operation!(context, dealloc_td) } {
        // SAFETY: the caller's promise.
        Some(dealloc) => unsafe { dealloc(td) },
        None => NOT_SUPPORTED,
    }
}

/// Makes a protection domain of another, and of a thread domain; errno on NULL.
///
/// # Safety
///
/// The context is open, and the attributes are valid.
pub unsafe fn alloc_parent_domain(
    context: *mut ibv_context,
    attr: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, alloc_parent_domain) } {
        // SAFETY: the caller's promise.
        Some(alloc) => unsafe { alloc(context, attr) },
        None => refuse(),
    }
}

/// Registers memory with any flags; errno on NULL. A library that knows no optional ones is asked without them.
///
/// # Safety
///
/// The protection domain is valid, and the memory stays so while the region does; whoever may use the region may
/// do with the memory what the flags say.
pub unsafe fn reg_mr(
    functions: &Functions,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: AccessFlags,
) -> *mut ibv_mr {
    if access.intersects(AccessFlags::OPTIONAL) {
        if let Some(register) = functions.ibv_reg_mr_iova2 {
            // SAFETY: the caller's promise; addresses within the region are those of the memory.
            return unsafe { register(pd, addr, length, addr.addr() as u64, access.bits()) };
        }
    }
    let access = access.difference(AccessFlags::OPTIONAL).bits() as c_int;
    // SAFETY: the caller's promise.
    unsafe { (functions.ibv_reg_mr)(pd, addr, length, access) }
}

/// Makes an extended completion queue; errno on NULL.
///
/// # Safety
///
/// The context is open, and the attributes are valid.
pub unsafe fn create_cq_ex(context: *mut ibv_context, attr: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex {
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, create_cq_ex) } {
        // SAFETY: the caller's promise.
        Some(create) => unsafe { create(context, attr) },
        None => refuse(),
    }
}

/// Changes a completion queue's moderation.
///
/// # Safety
///
/// Queue and attributes are valid.
pub unsafe fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    // SAFETY: the queue is valid.
    let context = unsafe { (*cq).context };
    // SAFETY: its context is open for as long as it lives.
    match unsafe { extended_operation!(context, modify_cq) } {
        // SAFETY: the caller's promise.
        Some(modify) => unsafe { modify(cq, attr) },
        None => NOT_SUPPORTED,
    }
}

/// Makes a shared receive queue with what its mask says; errno on NULL.
///
/// # Safety
///
/// The context is open, and the attributes are valid.
pub unsafe fn create_srq_ex(
    functions: &Functions,
    context: *mut ibv_context,
    attr: *mut ibv_srq_init_attr_ex,
) -> *mut ibv_srq {
    // SAFETY: the attributes are valid.
    let ibv_srq_init_attr_ex { comp_mask, srq_type, pd, .. } = unsafe { *attr };
    let is_basic = !comp_mask.contains(SrqInitAttrMask::TYPE) || srq_type == SrqType::BASIC;
    if comp_mask.difference(SrqInitAttrMask::TYPE) == SrqInitAttrMask::PD && is_basic {
        // SAFETY: the caller's promise; the extended attributes begin with the others.
        return unsafe { (functions.ibv_create_srq)(pd, attr.cast()) };
    }
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, create_srq_ex) } {
        // SAFETY: the caller's promise.
        Some(create) => unsafe { create(context, attr) },
        None => refuse(),
    }
}

/// Makes a queue pair with what its mask says; errno on NULL.
///
/// # Safety
///
/// The context is open, and the attributes are valid.
pub unsafe fn create_qp_ex(
    functions: &Functions,
    context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: the attributes are valid.
    let ibv_qp_init_attr_ex { comp_mask, pd, .. } = unsafe { *attr };
    if comp_mask == QpInitAttrMask::PD {
        // SAFETY: the caller's promise; the extended attributes begin with the others.
        return unsafe { (functions.ibv_create_qp)(pd, attr.cast()) };
    }
    // SAFETY: the context is open.
    match unsafe { extended_operation!(context, create_qp_ex) } {
        // SAFETY: the caller's promise.
        Some(create) => unsafe { create(context, attr) },
        None => refuse(),
    }
}

/// Sets errno to EOPNOTSUPP.
fn refuse<T>() -> *mut T {
    // SAFETY: every thread has its errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; it is valid for as long as its thread runs.
    unsafe { errno.write(NOT_SUPPORTED) };
    ptr::null_mut()
}
