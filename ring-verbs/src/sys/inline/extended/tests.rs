//! A context made by hand, as a library of any age would make it.
//!
//! # Safety
//!
//! The contexts live on the stack of each test, for longer than the pointers to them.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr;

use crate::sys::{
    ibv_context, ibv_cq, ibv_modify_cq_attr, ibv_port_attr, ibv_qp, ibv_send_wr, ibv_td, ibv_td_init_attr,
    ibv_wc, inline, verbs_context,
};

unsafe extern "C" fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    assert!(!cq.is_null() && attr.is_null());
    7
}

unsafe extern "C" fn query_port(_: *mut ibv_context, _: u8, _: *mut ibv_port_attr, _: usize) -> c_int {
    0
}

/// An extended context of `size` bytes, as far as it says.
fn of_size(size: usize) -> verbs_context {
    let context = ibv_context { abi_compat: ptr::without_provenance_mut(usize::MAX), ..Default::default() };
    verbs_context {
        sz: size,
        context,
        modify_cq: Some(modify_cq),
        query_port: Some(query_port),
        ..Default::default()
    }
}

fn context_of(extended: &mut verbs_context) -> *mut ibv_context {
    let extended = ptr::from_mut(extended);
    // SAFETY: it is a field of what the pointer points to.
    unsafe { &raw mut (*extended).context }
}

/// What the queue of a context answers to a change.
fn modified(context: *mut ibv_context) -> c_int {
    let mut cq = ibv_cq { context, ..Default::default() };
    // SAFETY: queue and context live, and the operation above takes no attributes.
    unsafe { inline::modify_cq(&mut cq, ptr::null_mut()) }
}

#[test]
fn an_operation_is_found_from_the_context_backwards() {
    let mut extended = of_size(size_of::<verbs_context>());
    let context = context_of(&mut extended);
    // SAFETY: the context lives.
    let found = unsafe { inline::verbs_get_ctx(context) };
    assert_eq!(found.addr() + offset_of!(verbs_context, context), context.addr());
    assert_eq!(modified(context), 7);
}

#[test]
fn an_operation_before_the_beginning_of_an_older_context_is_not_read() {
    let whole = size_of::<verbs_context>();
    let mut extended = of_size(whole - offset_of!(verbs_context, modify_cq));
    let context = context_of(&mut extended);
    assert_eq!(modified(context), 7, "the oldest that has it");
    // SAFETY: the context lives.
    let before_it = unsafe { super::extended_operation!(context, query_port) };
    assert!(before_it.is_none(), "it lies before the beginning");

    let mut extended = of_size(whole - offset_of!(verbs_context, modify_cq) - size_of::<usize>());
    assert_eq!(modified(context_of(&mut extended)), libc::EOPNOTSUPP);
}

#[test]
fn a_context_without_the_mark_has_no_operations() {
    let mut extended = of_size(size_of::<verbs_context>());
    extended.context.abi_compat = ptr::null_mut();
    let context = context_of(&mut extended);
    // SAFETY: the context lives.
    assert!(unsafe { inline::verbs_get_ctx(context) }.is_null());
    assert_eq!(modified(context), libc::EOPNOTSUPP);
}

#[test]
fn what_returns_a_pointer_says_in_errno_that_it_is_not_supported() {
    let mut extended = of_size(size_of::<verbs_context>());
    let context = context_of(&mut extended);
    let mut attr = ibv_td_init_attr::default();
    // SAFETY: context and attributes live.
    let td: *mut ibv_td = unsafe { inline::alloc_td(context, &mut attr) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    assert!(td.is_null());
    assert_eq!(errno, Some(libc::EOPNOTSUPP));
}

unsafe extern "C" fn post_send(_: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the test passes a valid list of two requests.
    let next = unsafe { (*wr).next };
    // SAFETY: the test passes a valid place for the result.
    unsafe { bad.write(next) };
    libc::ENOMEM
}

unsafe extern "C" fn poll_cq(_: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the test passes room for as many as it says.
    unsafe { (*wc).wr_id = 42 };
    entries
}

#[test]
fn post_and_poll_go_through_the_context_of_their_object() {
    let mut extended = of_size(size_of::<verbs_context>());
    extended.context.ops.post_send = Some(post_send);
    extended.context.ops.poll_cq = Some(poll_cq);
    let context = context_of(&mut extended);
    let mut second = ibv_send_wr::default();
    let mut first = ibv_send_wr { next: &raw mut second, ..Default::default() };
    let mut bad = ptr::null_mut();
    let mut qp = ibv_qp { context, ..Default::default() };
    // SAFETY: all of them live.
    assert_eq!(unsafe { inline::post_send(&mut qp, &mut first, &mut bad) }, libc::ENOMEM);
    assert_eq!(bad, &raw mut second);

    let mut wc = ibv_wc::default();
    let mut cq = ibv_cq { context, ..Default::default() };
    // SAFETY: all of them live.
    assert_eq!(unsafe { inline::poll_cq(&mut cq, 1, &mut wc) }, 1);
    assert_eq!(wc.wr_id, 42);
}

#[test]
fn an_empty_slot_refuses_and_gives_the_whole_list_back() {
    let mut extended = of_size(size_of::<verbs_context>());
    let context = context_of(&mut extended);
    let mut request = ibv_send_wr::default();
    let mut bad = ptr::null_mut();
    let mut qp = ibv_qp { context, ..Default::default() };
    // SAFETY: all of them live.
    assert_eq!(unsafe { inline::post_send(&mut qp, &mut request, &mut bad) }, libc::EOPNOTSUPP);
    assert_eq!(bad, &raw mut request);

    let mut cq = ibv_cq { context, ..Default::default() };
    // SAFETY: all of them live; there is nobody to write to the completions.
    assert_eq!(unsafe { inline::poll_cq(&mut cq, 1, ptr::null_mut()) }, -libc::EOPNOTSUPP);
    // SAFETY: the queue lives.
    assert_eq!(unsafe { inline::req_notify_cq(&mut cq, 0) }, libc::EOPNOTSUPP);
}
