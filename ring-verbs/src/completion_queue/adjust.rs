//! Changing a completion queue.
//!
//! # Safety
//!
//! The library's queue is there as long as its handle.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::time::Duration;

use super::CompletionQueue;
use crate::Errno;
use crate::error::{Error, Operation};
use crate::sys::{self, CqAttrMask, ibv_moderate_cq, ibv_modify_cq_attr};

impl<B> CompletionQueue<B> {
    /// Has an event wait until so many completions are there, or so much time has passed since the first, as far as the
    /// device can. Microseconds count, up to 65,535; 0 completions or no time: at once, as it is at first.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`], [`Error::Refused`] with EINVAL for more than the device can.
    pub fn moderate(&mut self, completions: u16, period: Duration) -> Result<(), Error> {
        let cq_period = u16::try_from(period.as_micros()).unwrap_or(u16::MAX);
        let mut attributes = ibv_modify_cq_attr {
            attr_mask: CqAttrMask::MODERATE,
            moderate: ibv_moderate_cq { cq_count: completions, cq_period },
        };
        // SAFETY: the queue is there, and so are the attributes.
        let returned = unsafe { sys::modify_cq(self.as_raw(), &raw mut attributes) };
        Errno::check(returned).map_err(|errno| Error::of(Operation::Moderate, errno))
    }

    /// Makes it larger, or smaller as far as nobody needs it.
    ///
    /// # Errors
    ///
    /// [`Error::CompletionQueueFull`] for less than the queue pairs that use it need, [`Error::NotSupported`],
    /// [`Error::Refused`] with EINVAL for more than the device can, or less than is in it.
    pub fn resize(&mut self, entries: u32) -> Result<(), Error> {
        let asked = c_int::try_from(entries).unwrap_or(c_int::MAX);
        self.shared.0.registry.with(|registry| {
            let needed = registry.needed();
            if entries < needed {
                return Err(Error::CompletionQueueFull { room: entries, needed });
            }
            // SAFETY: the queue is there.
            let returned =
                unsafe { (self.shared.0.open.functions.ibv_resize_cq)(self.shared.0.as_raw(), asked) };
            Errno::check(returned).map_err(|errno| Error::of(Operation::Resize, errno))?;
            // SAFETY: as above; only this writes it, under the lock.
            registry.resize(u32::try_from(unsafe { (*self.shared.0.as_raw()).cqe }).unwrap_or(0));
            Ok(())
        })
    }
}
