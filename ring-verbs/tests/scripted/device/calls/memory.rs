//! Domains and regions.
//!
//! # Safety
//!
//! As of the [functions](super) in all.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use ring_verbs::sys::{AccessFlags, ReregMrFlags, ibv_context, ibv_mr, ibv_pd};

use super::{code, null};
use crate::device::{Call, Kind, Registered, Scripted};

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
    _: ReregMrFlags,
    _: *mut ibv_pd,
    _: *mut c_void,
    _: usize,
    access: c_int,
) -> c_int {
    let device = device_of!(region);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::Reregister) {
        return code(answer);
    }
    // SAFETY: the region is there.
    let (base, bytes) = unsafe { ((*region).addr.addr(), (*region).length) };
    let access = AccessFlags::from_bits_retain(u32::from_ne_bytes(access.to_ne_bytes()));
    state.registered.push(Registered { base, bytes, access, is_optional: false });
    0
}

pub(crate) unsafe extern "C" fn dereg_mr(region: *mut ibv_mr) -> c_int {
    end!(region, Call::Deregister)
}
