//! Domains, thread domains and regions.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use ring_verbs::sys::{
    AccessFlags, ParentDomainInitAttrMask, ReregMrFlags, ibv_context, ibv_mr, ibv_parent_domain_init_attr,
    ibv_pd, ibv_td, ibv_td_init_attr,
};

use super::{code, null, set_errno};
use crate::device::{Call, Kind, Registered, Reregistered, Scripted};

pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::AllocateDomain) {
        return null(answer);
    }
    let handle = state.make(Kind::Domain, vec![]);
    Box::into_raw(Box::new(ibv_pd { context, handle }))
}

pub(crate) unsafe extern "C" fn dealloc_pd(domain: *mut ibv_pd) -> c_int {
    end!(domain, Call::FreeDomain)
}

/// A thread domain, with the device's number of it.
#[repr(C)]
struct Thread {
    context: *mut ibv_context,
    handle: u32,
}

pub(crate) unsafe extern "C" fn alloc_td(
    context: *mut ibv_context,
    attributes: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::AllocateThread) {
        return null(answer);
    }
    // SAFETY: the attributes are there.
    assert_eq!(unsafe { (*attributes).comp_mask }, 0);
    let handle = state.make(Kind::Thread, vec![]);
    Box::into_raw(Box::new(Thread { context, handle })).cast()
}

pub(crate) unsafe extern "C" fn dealloc_td(thread: *mut ibv_td) -> c_int {
    let thread = thread.cast::<Thread>();
    end!(thread, Call::FreeThread)
}

pub(crate) unsafe extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    attributes: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::AllocateParent) {
        return null(answer);
    }
    // SAFETY: the attributes are there.
    let ibv_parent_domain_init_attr { pd, td, comp_mask, .. } = unsafe { *attributes };
    assert_eq!(comp_mask, ParentDomainInitAttrMask::empty());
    // SAFETY: both domains are there.
    let uses = unsafe { vec![(*pd).handle, (*td.cast::<Thread>()).handle] };
    let handle = state.make(Kind::Domain, uses);
    Box::into_raw(Box::new(ibv_pd { context, handle }))
}

fn register(domain: *mut ibv_pd, registered: Registered) -> *mut ibv_mr {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::Register) {
        return null(answer);
    }
    // SAFETY: the domain is there.
    let handle = state.make(Kind::Region, vec![unsafe { (*domain).handle }]);
    state.registered.push(registered);
    // SAFETY: as above.
    let context = unsafe { (*domain).context };
    let (addr, length) = (ptr::without_provenance_mut(registered.base), registered.bytes);
    Box::into_raw(Box::new(ibv_mr {
        context,
        pd: domain,
        addr,
        length,
        handle,
        lkey: 0x100 + handle,
        rkey: 0x200 + handle,
    }))
}

pub(crate) unsafe extern "C" fn reg_mr(
    domain: *mut ibv_pd,
    base: *mut c_void,
    bytes: usize,
    access: c_int,
) -> *mut ibv_mr {
    let access = AccessFlags::from_bits_retain(u32::from_ne_bytes(access.to_ne_bytes()));
    register(domain, Registered { base: base.expose_provenance(), bytes, access, is_optional: false })
}

pub(crate) unsafe extern "C" fn reg_mr_iova2(
    domain: *mut ibv_pd,
    base: *mut c_void,
    bytes: usize,
    _: u64,
    access: c_uint,
) -> *mut ibv_mr {
    let access = AccessFlags::from_bits_retain(access);
    register(domain, Registered { base: base.expose_provenance(), bytes, access, is_optional: true })
}

pub(crate) unsafe extern "C" fn rereg_mr(
    region: *mut ibv_mr,
    flags: ReregMrFlags,
    domain: *mut ibv_pd,
    base: *mut c_void,
    bytes: usize,
    access: c_int,
) -> c_int {
    let device = device_of!(region);
    let mut state = device.state();
    let access = AccessFlags::from_bits_retain(u32::from_ne_bytes(access.to_ne_bytes()));
    let (domain, base) = (domain.addr(), base.addr());
    state.reregistered.push(Reregistered { flags, domain, base, bytes, access });
    if let Some(answer) = state.answer(Call::Reregister) {
        return code(answer);
    }
    // SAFETY: the region is there, and only this writes its keys.
    unsafe { ((*region).lkey, (*region).rkey) = ((*region).lkey + 0x1000, (*region).rkey + 0x1000) };
    0
}

pub(crate) unsafe extern "C" fn dereg_mr(region: *mut ibv_mr) -> c_int {
    end!(region, Call::Deregister)
}
