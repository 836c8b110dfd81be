//! The devices of this machine.
//!
//! # Safety
//!
//! A list is freed once, after its last device was used: devices borrow from the list. A context is opened from a
//! device of a list that is still there, and needs it no more afterwards.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int};
use core::fmt;
use core::ptr::NonNull;

use crate::context::Context;
use crate::error::{DeviceName, Error, Operation};
use crate::sys::{ForkStatus, Functions, ibv_device};
use crate::{Errno, Guid};

/// The devices of this machine, as they were when it was made.
///
/// ```no_run
/// for device in ring_verbs::DeviceList::new()?.iter() {
///     println!("{} {}", device.name(), device.guid());
/// }
/// # Ok::<(), ring_verbs::Error>(())
/// ```
pub struct DeviceList {
    functions: &'static Functions,
    first: NonNull<*mut ibv_device>,
    count: usize,
}

// SAFETY: the library's list is read only, and its functions can be called from any thread.
unsafe impl Send for DeviceList {}
// SAFETY: as above.
unsafe impl Sync for DeviceList {}

impl DeviceList {
    /// Asks the library. An empty list is no error here.
    ///
    /// # Errors
    ///
    /// [`Error::Library`] where libibverbs is not installed; otherwise why the kernel's interface is not there.
    pub fn new() -> Result<Self, Error> {
        Self::from_functions(Functions::load()?)
    }

    pub(crate) fn from_functions(functions: &'static Functions) -> Result<Self, Error> {
        let mut count: c_int = 0;
        // SAFETY: `count` can be written.
        let first = unsafe { (functions.ibv_get_device_list)(&raw mut count) };
        let Some(first) = NonNull::new(first) else {
            return match Errno::last() {
                // The kernel has no RDMA at all.
                Errno(libc::ENOSYS) => Err(Error::NoDevice),
                errno => Err(Error::of(Operation::ListDevices, errno)),
            };
        };
        Ok(Self { functions, first, count: usize::try_from(count).unwrap_or(0) })
    }

    /// How many devices there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The devices, in the library's order.
    pub fn iter(&self) -> impl Iterator<Item = Device<'_>> {
        (0..self.count).map(|index| {
            // SAFETY: the list has `count` pointers.
            let at = unsafe { self.first.add(index) };
            // SAFETY: as above, and they were written by the library.
            Device { list: self, raw: unsafe { at.read() } }
        })
    }

    /// The device of a name, as `rxe0` or `mlx5_0`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where there is none at all, [`Error::NoSuchDevice`] where none has this name.
    pub fn named(&self, name: &str) -> Result<Device<'_>, Error> {
        if self.is_empty() {
            return Err(Error::NoDevice);
        }
        self.iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| Error::NoSuchDevice { name: DeviceName::new(name) })
    }
}

impl fmt::Debug for DeviceList {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.iter()).finish()
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the library made it, and no device that borrows from it is left.
        unsafe { (self.functions.ibv_free_device_list)(self.first.as_ptr()) };
    }
}

/// Has registered memory stay the parent's where this process forks. To be called before anything is registered, and
/// only by programs that fork and register memory of ordinary pages that is not [`PageMemory`](crate::PageMemory).
/// Nothing is done where the kernel takes care of it by itself, as from Linux 5.12 on.
///
/// # Errors
///
/// [`Error::Library`]; [`Error::Refused`] with EINVAL where something is registered already.
pub fn prepare_for_fork() -> Result<(), Error> {
    let functions = Functions::load()?;
    if let Some(status) = functions.ibv_is_fork_initialized {
        // SAFETY: it has no arguments.
        if unsafe { status() } != ForkStatus::DISABLED {
            return Ok(());
        }
    }
    // SAFETY: it has no arguments.
    let returned = unsafe { (functions.ibv_fork_init)() };
    Errno::check(returned).map_err(|errno| Error::of(Operation::PrepareForFork, errno))
}

/// One device of a list.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    list: &'a DeviceList,
    raw: *mut ibv_device,
}

impl Device<'_> {
    /// As `rxe0` or `mlx5_0`.
    pub fn name(&self) -> &str {
        // SAFETY: the device is in a list that is there.
        let name = unsafe { (self.list.functions.ibv_get_device_name)(self.raw) };
        if name.is_null() {
            return "";
        }
        // SAFETY: the library gives a name that ends with 0 and lives as long as the device.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
    }

    /// Its number, the same everywhere and for ever.
    pub fn guid(&self) -> Guid {
        // SAFETY: the device is in a list that is there.
        Guid(u64::from_be(unsafe { (self.list.functions.ibv_get_device_guid)(self.raw) }))
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`Error::Open`] with what to do about it.
    pub fn open(&self) -> Result<Context, Error> {
        // SAFETY: the device is in a list that is there.
        let raw = unsafe { (self.list.functions.ibv_open_device)(self.raw) };
        match NonNull::new(raw) {
            // SAFETY: just opened, and nobody else closes it.
            Some(raw) => Ok(unsafe { Context::from_raw(self.list.functions, raw) }),
            None => Err(Error::Open { device: DeviceName::new(self.name()), errno: Errno::last() }),
        }
    }
}

impl fmt::Debug for Device<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Device").field("name", &self.name()).field("guid", &self.guid()).finish()
    }
}
