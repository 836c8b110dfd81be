//! How long CPUs may take to wake up.
//!
//! # Safety
//!
//! The unsafe block changes the flags of a descriptor that this file owns.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use core::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::{Errno, Error};

/// Where user space asks for it; the kernel's `Documentation/power/pm_qos_interface.rst`.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// What the kernel takes for no limit, PM_QOS_CPU_LATENCY_DEFAULT_VALUE, in µs.
const NO_LIMIT_US: c_int = 2_000_000_000;

/// Keeps all CPUs of the machine from idle states that they take longer to leave than this, as long as it lives.
///
/// Of the limits of all programs the lowest counts. A limit of 0 µs has idle CPUs spin, which costs power, and takes
/// execution units from the siblings of a core and turbo from its neighbours; 1 or 2 µs leave the first idle state.
///
/// ```
/// use ring_tune::{Error, LatencyLimit};
///
/// match LatencyLimit::hold(20) {
///     Ok(limit) => assert!(limit.effective_us()? <= 20),
///     // Not for this user, or not on this machine: the error says which.
///     Err(error) => assert!(matches!(
///         error,
///         Error::LatencyLimit { limit_us: 20, .. } | Error::LatencyLimitAbsent { limit_us: 20, .. }
///     )),
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropped at once, it limits nothing"]
pub struct LatencyLimit {
    /// The limit goes when it is closed.
    device: File,
    limit_us: u32,
}

impl LatencyLimit {
    /// Limits the wake-up latency of all CPUs, in µs.
    ///
    /// # Errors
    ///
    /// [`Error::LatencyLimitAbsent`] where the machine has no such device, [`Error::LatencyLimit`] where it is not for
    /// this user or the limit is above 2,000,000,000 µs, which is none.
    pub fn hold(limit_us: u32) -> Result<Self, Error> {
        let refused = |errno: c_int| Error::LatencyLimit { limit_us, source: Errno(errno) };
        let value = c_int::try_from(limit_us).ok().filter(|&value| value <= NO_LIMIT_US);
        let value = value.ok_or(refused(libc::EINVAL))?;
        let device =
            File::options().read(true).write(true).open(DEVICE).map_err(|error| match number(&error) {
                source @ (libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
                    Error::LatencyLimitAbsent { limit_us, source: Errno(source) }
                }
                source => refused(source),
            })?;
        let limit = Self { device, limit_us };
        limit.device.write_all_at(&value.to_ne_bytes(), 0).map_err(|error| refused(number(&error)))?;
        Ok(limit)
    }

    /// What was asked for, in µs.
    #[must_use]
    pub fn limit_us(&self) -> u32 {
        self.limit_us
    }

    /// What counts now, in µs: the lowest limit of all programs.
    ///
    /// # Errors
    ///
    /// [`Error::LatencyLimit`] where the device cannot be read.
    pub fn effective_us(&self) -> Result<u32, Error> {
        let mut bytes = [0; size_of::<c_int>()];
        let refused = |errno| Error::LatencyLimit { limit_us: self.limit_us, source: Errno(errno) };
        self.device.read_exact_at(&mut bytes, 0).map_err(|error| refused(number(&error)))?;
        u32::try_from(c_int::from_ne_bytes(bytes)).map_err(|_| refused(libc::EIO))
    }

    /// Leaves the limit to the program that this process goes on to execute: it holds as long as that program, or a
    /// child that inherits the descriptor, has it open.
    ///
    /// # Errors
    ///
    /// [`Error::LatencyLimit`] where a sandbox forbids fcntl(2).
    ///
    /// ```no_run
    /// use std::os::unix::process::CommandExt;
    ///
    /// ring_tune::LatencyLimit::hold(2)?.keep_through_exec()?;
    /// println!("cannot start: {}", std::process::Command::new("./server").exec());
    /// # Ok::<(), ring_tune::Error>(())
    /// ```
    pub fn keep_through_exec(self) -> Result<(), Error> {
        // SAFETY: the descriptor is open as long as `self` lives; 0 takes its one flag away, FD_CLOEXEC.
        if unsafe { libc::fcntl(self.device.as_raw_fd(), libc::F_SETFD, 0) } != 0 {
            return Err(Error::LatencyLimit { limit_us: self.limit_us, source: Errno::last() });
        }
        core::mem::forget(self);
        Ok(())
    }
}

fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}
