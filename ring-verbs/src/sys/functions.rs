//! The functions that libibverbs exports, found at run time.
//!
//! # Safety
//!
//! A symbol of `libibverbs.so.1` has the type that the header gives its name: the number in the library's name
//! changes where that does. The library is never closed, so that a function once found can be called for ever.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use thiserror::Error;

use super::{
    _compat_ibv_port_attr, ForkStatus, QpAttrMask, ReregMrFlags, SrqAttrMask, WrOpcode, ibv_ah, ibv_ah_attr,
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_gid,
    ibv_gid_entry, ibv_grh, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr, ibv_srq,
    ibv_srq_attr, ibv_srq_init_attr, ibv_wc,
};

/// What the dynamic linker looks for.
const LIBRARY: &CStr = c"libibverbs.so.1";

/// Why there are no functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The library, or another that it needs, is not installed.
    #[error(
        "libibverbs.so.1 cannot be opened: install rdma-core: on Debian and Ubuntu \
         `apt-get install libibverbs1 ibverbs-providers`"
    )]
    NoLibrary,
    /// The library is too old to have this function.
    #[error(
        "libibverbs.so.1 has no `{0}`: install a newer rdma-core: on Debian and Ubuntu \
         `apt-get install libibverbs1 ibverbs-providers`"
    )]
    NoSymbol(&'static str),
}

/// Declares the table, and how it is filled.
macro_rules! functions {
    (
        required { $($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)* }
        optional {
            $($(#[$later_meta:meta])* fn $later:ident($($later_argument:ident: $later_type:ty),*) -> $later_result:ty;)*
        }
    ) => {
        /// The functions of the library. What an older one may lack is optional.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $($(#[$meta])* pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)*
            $($(#[$later_meta])* pub $later:
                Option<unsafe extern "C" fn($($later_argument: $later_type),*) -> $later_result>,)*
        }

        impl Functions {
            /// Finds each function in an open library.
            fn find(library: Library) -> Result<Self, LoadError> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the table gives the function the type that the header does.
                        let found = unsafe { library.symbol(name_of!($name)) };
                        found.ok_or(LoadError::NoSymbol(stringify!($name)))?
                    },)*
                    // SAFETY: as above.
                    $($later: unsafe { library.symbol(name_of!($later)) },)*
                })
            }
        }
    };
}

/// A name as the dynamic linker takes it.
macro_rules! name_of {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no zero byte"),
            }
        }
    };
}

functions! {
    required {
        /// The devices, in an array that ends with NULL; errno on NULL.
        fn ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device;
        /// Frees the array, and each device in it that is not open.
        fn ibv_free_device_list(list: *mut *mut ibv_device);
        /// The kernel's name for a device.
        fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
        /// A device's GUID in network byte order.
        fn ibv_get_device_guid(device: *mut ibv_device) -> u64;
        /// Opens a device; errno on NULL.
        fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
        /// Closes it; what was made of it is gone before.
        fn ibv_close_device(context: *mut ibv_context) -> c_int;
        /// Waits for an asynchronous event; -1 and errno.
        fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
        /// Acknowledges it, which the destruction of its object waits for.
        fn ibv_ack_async_event(event: *mut ibv_async_event);
        /// Asks for a device's limits.
        fn ibv_query_device(context: *mut ibv_context, device_attr: *mut ibv_device_attr) -> c_int;
        /// Asks for a port's state, without the last fields: use [`query_port`](super::query_port).
        fn ibv_query_port(
            context: *mut ibv_context, port_num: u8, port_attr: *mut _compat_ibv_port_attr
        ) -> c_int;
        /// Reads a GID; -1 and errno.
        fn ibv_query_gid(context: *mut ibv_context, port_num: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
        /// Reads a GID with its type and interface.
        fn _ibv_query_gid_ex(
            context: *mut ibv_context, port_num: u32, gid_index: u32, entry: *mut ibv_gid_entry, flags: u32,
            entry_size: usize
        ) -> c_int;
        /// Reads a partition key, in network byte order.
        fn ibv_query_pkey(context: *mut ibv_context, port_num: u8, index: c_int, pkey: *mut u16) -> c_int;
        /// Where a partition key, in network byte order, stands in a port's table; -1 if nowhere.
        fn ibv_get_pkey_index(context: *mut ibv_context, port_num: u8, pkey: u16) -> c_int;
        /// Makes a protection domain; errno on NULL.
        fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
        /// Frees a protection domain.
        fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
        /// Registers memory, without optional flags: use [`reg_mr`](super::reg_mr).
        fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
        /// Registers memory that is addressed from `iova` on, without optional flags.
        fn ibv_reg_mr_iova(
            pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_int
        ) -> *mut ibv_mr;
        /// Changes a region; [`ReregMrError`](super::ReregMrError) and errno.
        fn ibv_rereg_mr(
            mr: *mut ibv_mr, flags: ReregMrFlags, pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int
        ) -> c_int;
        /// Frees a region.
        fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
        /// Makes a channel; errno on NULL.
        fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
        /// Frees a channel.
        fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
        /// Makes a completion queue; errno on NULL.
        fn ibv_create_cq(
            context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel,
            comp_vector: c_int
        ) -> *mut ibv_cq;
        /// Changes how many completions a queue holds.
        fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int;
        /// Frees a completion queue, after all its events have been acknowledged.
        fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
        /// Waits for an event of a channel; -1 and errno.
        fn ibv_get_cq_event(
            channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void
        ) -> c_int;
        /// Acknowledges events of a queue.
        fn ibv_ack_cq_events(cq: *mut ibv_cq, nevents: c_uint);
        /// Makes a shared receive queue; errno on NULL.
        fn ibv_create_srq(pd: *mut ibv_pd, srq_init_attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
        /// Changes its size, or arms its limit.
        fn ibv_modify_srq(srq: *mut ibv_srq, srq_attr: *mut ibv_srq_attr, srq_attr_mask: SrqAttrMask) -> c_int;
        /// Asks for its size and limit.
        fn ibv_query_srq(srq: *mut ibv_srq, srq_attr: *mut ibv_srq_attr) -> c_int;
        /// Frees a shared receive queue.
        fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
        /// Makes a queue pair; errno on NULL.
        fn ibv_create_qp(pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
        /// The extended queue pair of one that was made with [`QpSendOpsFlags`](super::QpSendOpsFlags), else NULL.
        fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
        /// Changes a queue pair.
        fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: QpAttrMask) -> c_int;
        /// Asks for a queue pair's state and properties.
        fn ibv_query_qp(
            qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: QpAttrMask, init_attr: *mut ibv_qp_init_attr
        ) -> c_int;
        /// Frees a queue pair.
        fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
        /// Makes an address handle; errno on NULL.
        fn ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
        /// Writes the address of whoever sent a datagram.
        fn ibv_init_ah_from_wc(
            context: *mut ibv_context, port_num: u8, wc: *mut ibv_wc, grh: *mut ibv_grh, ah_attr: *mut ibv_ah_attr
        ) -> c_int;
        /// Makes a handle of the address of whoever sent a datagram; errno on NULL.
        fn ibv_create_ah_from_wc(
            pd: *mut ibv_pd, wc: *mut ibv_wc, grh: *mut ibv_grh, port_num: u8
        ) -> *mut ibv_ah;
        /// Frees an address handle.
        fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
        /// Protects registered memory from a fork.
        fn ibv_fork_init() -> c_int;
    }
    optional {
        /// Registers memory that is addressed from `iova` on, with optional flags (since 1.8).
        fn ibv_reg_mr_iova2(
            pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint
        ) -> *mut ibv_mr;
        /// Reads all GIDs that are valid; how many, or a negative errno.
        fn _ibv_query_gid_table(
            context: *mut ibv_context, entries: *mut ibv_gid_entry, max_entries: usize, flags: u32,
            entry_size: usize
        ) -> isize;
        /// Whether the data of an operation arrives in order: 1, else 0 (since 1.14).
        fn ibv_query_qp_data_in_order(qp: *mut ibv_qp, op: WrOpcode, flags: u32) -> c_int;
        /// Whether registered memory is protected from a fork (since 1.13).
        fn ibv_is_fork_initialized() -> ForkStatus;
    }
}

/// The table, once the library has been opened.
static LOADED: AtomicPtr<Functions> = AtomicPtr::new(ptr::null_mut());

impl Functions {
    /// The functions of `libibverbs.so.1`, which is opened at the first call and stays open.
    ///
    /// A failure is not remembered: a later call looks again.
    ///
    /// # Errors
    ///
    /// The library is not installed, or lacks a function.
    pub fn load() -> Result<&'static Self, LoadError> {
        // ORDERING: Acquire (A1): the functions in the table; pairs with R1 in Functions::load. Unmodelled: a word of
        // loom's cannot be static; four threads load it at the same time in a test.
        let loaded = LOADED.load(Ordering::Acquire);
        // SAFETY: not NULL, it points to a table that is never freed and no longer changes.
        if let Some(functions) = unsafe { loaded.as_ref() } {
            return Ok(functions);
        }
        let functions = Box::into_raw(Box::new(Self::find(Library::open(LIBRARY)?)?));
        let published = LOADED.compare_exchange(
            ptr::null_mut(),
            functions,
            // ORDERING: Release (R1): publishes the table written above; pairs with A1 in Functions::load. Unmodelled:
            // as above.
            Ordering::Release,
            // ORDERING: Acquire (A1): the functions in another thread's table; pairs with R1 in Functions::load.
            // Unmodelled: as above.
            Ordering::Acquire,
        );
        let functions = match published {
            Ok(_) => functions,
            Err(first) => {
                // SAFETY: it came from a box above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(functions) });
                first
            }
        };
        // SAFETY: as above, and it is not NULL.
        Ok(unsafe { &*functions })
    }
}

/// An open library, which nothing closes.
#[derive(Debug, Clone, Copy)]
struct Library(*mut c_void);

impl Library {
    fn open(name: &CStr) -> Result<Self, LoadError> {
        // SAFETY: the name ends with a zero byte; what the library does when it is loaded is as if it were linked.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() { Err(LoadError::NoLibrary) } else { Ok(Self(library)) }
    }

    /// Looks a function up, in its default version.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to a function, and that of the symbol.
    unsafe fn symbol<F>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F is a pointer") };
        // SAFETY: the library is open, and the name ends with a zero byte.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: by this function's contract the symbol is an `F`, which is as large as a pointer.
        (!symbol.is_null()).then(|| unsafe { transmute_copy(&symbol) })
    }
}

#[cfg(test)]
mod tests;
