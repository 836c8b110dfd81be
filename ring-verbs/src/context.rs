//! An open device.
//!
//! # Safety
//!
//! `Open` owns what the library opened and closes it once, after everything that was made with it: each such object
//! holds it by a reference count. In a forked child nothing is closed or destroyed: the device is the parent's.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

use crate::device::DeviceList;
use crate::error::{Error, Operation};
use crate::port::Port;
use crate::sys::{self, Functions, ibv_context, ibv_device_attr, ibv_device_attr_ex};
use crate::{Errno, system};

/// An open device. Everything that is made with it keeps it open.
///
/// ```no_run
/// let device = ring_verbs::Context::open("rxe0")?;
/// println!("{} work requests a queue", device.attributes()?.max_qp_wr);
/// # Ok::<(), ring_verbs::Error>(())
/// ```
#[derive(Debug)]
pub struct Context {
    pub(crate) open: Arc<Open>,
}

impl Context {
    /// Opens the device of a name, as `rxe0` or `mlx5_0`.
    ///
    /// # Errors
    ///
    /// [`Error::Library`], [`Error::NoDevice`], [`Error::NoSuchDevice`], [`Error::Open`].
    pub fn open(name: &str) -> Result<Self, Error> {
        DeviceList::new()?.named(name)?.open()
    }

    /// Takes over a context that somebody else opened.
    ///
    /// # Safety
    ///
    /// It was opened by the library of `functions`, and nobody else closes it.
    pub unsafe fn from_raw(functions: &'static Functions, raw: NonNull<ibv_context>) -> Self {
        Self { open: Arc::new(Open { functions, raw, process: system::process() }) }
    }

    /// For calls that this crate does not have. It is closed with the last object that was made with it.
    pub fn as_raw(&self) -> *mut ibv_context {
        self.open.raw.as_ptr()
    }

    /// As `rxe0` or `mlx5_0`.
    pub fn name(&self) -> &str {
        self.open.name()
    }

    /// What the device can do, at most. Work requests, pieces and completions are also limited by kind: what a queue
    /// pair really got stands in its own capacities.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn attributes(&self) -> Result<ibv_device_attr, Error> {
        self.open.attributes()
    }

    /// How many ways there are for events to reach a CPU.
    pub fn completion_vectors(&self) -> u32 {
        // SAFETY: the context is open, and nobody writes this.
        let vectors: c_int = unsafe { (*self.open.raw.as_ptr()).num_comp_vectors };
        u32::try_from(vectors).unwrap_or(0)
    }

    /// The rate, in kHz, of the device's clock, by which completions may be stamped.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where it has none, [`Error::Refused`] where the device is gone.
    pub fn clock_khz(&self) -> Result<u64, Error> {
        let mut attributes = ibv_device_attr_ex::default();
        // SAFETY: the context is open, and the attributes can be written.
        let returned = unsafe {
            sys::query_device_ex(self.open.functions, self.as_raw(), core::ptr::null(), &raw mut attributes)
        };
        let operation = Operation::QueryDevice;
        Errno::check(returned).map_err(|errno| Error::of(operation, errno))?;
        if attributes.hca_core_clock == 0 {
            Err(Error::NotSupported { operation })
        } else {
            Ok(attributes.hca_core_clock)
        }
    }

    /// The NUMA node that the device is at, where it is at one: memory and threads for it are best there.
    pub fn numa_node(&self) -> Option<u32> {
        self.open.numa_node()
    }

    /// A port, counted from 1, as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchPort`], [`Error::Refused`] where the device is gone.
    pub fn port(&self, number: u8) -> Result<Port, Error> {
        let ports = self.attributes()?.phys_port_cnt;
        if number == 0 || number > ports {
            return Err(Error::NoSuchPort { port: number, ports });
        }
        Port::query(Arc::clone(&self.open), number)
    }
}

/// What is open. It is closed with the last reference.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) functions: &'static Functions,
    pub(crate) raw: NonNull<ibv_context>,
    process: c_int,
}

// SAFETY: the library's verbs can be called from any thread.
unsafe impl Send for Open {}
// SAFETY: as above, from several at the same time.
unsafe impl Sync for Open {}

impl Open {
    /// Whether this process opened it. A forked child has a copy of our objects, and none of the device's.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == system::process()
    }

    fn name(&self) -> &str {
        // SAFETY: the context is open, and its device stays.
        let device = unsafe { (*self.raw.as_ptr()).device };
        // SAFETY: it is the device of an open context.
        let name = unsafe { (self.functions.ibv_get_device_name)(device) };
        if name.is_null() {
            return "";
        }
        // SAFETY: the library gives a name that ends with 0 and lives as long as the device.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
    }

    pub(crate) fn attributes(&self) -> Result<ibv_device_attr, Error> {
        let mut attributes = ibv_device_attr::default();
        // SAFETY: the context is open, and the attributes can be written.
        let returned = unsafe { (self.functions.ibv_query_device)(self.raw.as_ptr(), &raw mut attributes) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::QueryDevice, errno))?;
        Ok(attributes)
    }

    pub(crate) fn numa_node(&self) -> Option<u32> {
        // SAFETY: the context is open, and its device stays.
        let device = unsafe { (*self.raw.as_ptr()).device };
        // SAFETY: as above.
        let path = unsafe { &raw const (*device).ibdev_path };
        // SAFETY: the library has written a path that ends with 0.
        let path = unsafe { CStr::from_ptr(path.cast()) };
        let file = [path.to_bytes(), b"/device/numa_node\0"].concat();
        // Of a device without a place the kernel says -1.
        system::read_number(CStr::from_bytes_with_nul(&file).ok()?)
    }

    /// That the driver has all operations that posting and polling call without a look.
    pub(crate) fn require_operations(&self, operation: Operation) -> Result<(), Error> {
        // SAFETY: the context is open, and its table does not change.
        let operations = unsafe { &(*self.raw.as_ptr()).ops };
        let has_all = operations.post_send.is_some() && operations.poll_cq.is_some();
        if has_all { Ok(()) } else { Err(Error::NotSupported { operation }) }
    }

    /// Whether it is the kernel's software device, some calls of whose user library are unsound.
    pub(crate) fn is_soft_roce(&self) -> Result<bool, Error> {
        /// `RXE_VENDOR_ID` in the kernel's `rxe_param.h`, which no maker of hardware has.
        const VENDOR: u32 = 0xff_ffff;
        Ok(self.attributes()?.vendor_id == VENDOR)
    }

    pub(crate) fn same_as(self: &Arc<Self>, other: &Arc<Self>, operation: Operation) -> Result<(), Error> {
        if Arc::ptr_eq(self, other) { Ok(()) } else { Err(Error::OtherDevice { operation }) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: whatever was made with it held a reference, so that nothing is left. An error leaves the kernel's
            // part open, to the end of the process.
            unsafe { (self.functions.ibv_close_device)(self.raw.as_ptr()) };
        }
    }
}
