//! Protection domains, thread domains, memory regions, memory windows.

use core::ffi::c_void;

use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{AccessFlags, MwType, ParentDomainInitAttrMask, SendFlags, ibv_context};

/// A protection domain.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_pd {
    pub context: *mut ibv_context,
    pub handle: u32,
}

/// Properties of a thread domain: none yet, so that `comp_mask` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_td_init_attr {
    pub comp_mask: u32,
}

/// A thread domain: who uses what was made in it promises to be one thread at a time.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_td {
    pub context: *mut ibv_context,
}

/// Properties of a parent domain, which joins a protection domain and a thread domain.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_parent_domain_init_attr {
    pub pd: *mut ibv_pd,
    pub td: *mut ibv_td,
    pub comp_mask: ParentDomainInitAttrMask,
    pub alloc: Option<unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, usize, u64) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(*mut ibv_pd, *mut c_void, *mut c_void, u64)>,
    pub pd_context: *mut c_void,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_parent_domain_init_attr>(), 48);

/// A memory region.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_mr {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub addr: *mut c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_mr>(), 48);
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(ibv_mr, lkey), 36);

/// A memory window.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_mw {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub rkey: u32,
    pub handle: u32,
    pub type_: MwType,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_mw>(), 32);

/// What a memory window shows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_mw_bind_info {
    pub mr: *mut ibv_mr,
    pub addr: u64,
    pub length: u64,
    pub mw_access_flags: AccessFlags,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_mw_bind_info>(), 32);

/// A request to bind a memory window of the first type.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_mw_bind {
    pub wr_id: u64,
    pub send_flags: SendFlags,
    pub bind_info: ibv_mw_bind_info,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_mw_bind>(), 48);
