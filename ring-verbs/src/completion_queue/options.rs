//! How a completion queue is made.
//!
//! # Safety
//!
//! The library's queue belongs to the `Shared` that it is put into.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr::{self, NonNull};

use super::channel::Channel;
use super::departures::Departures;
use super::{CompletionChannel, CompletionQueue, CompletionTarget, Registry, Shared};
use crate::Errno;
use crate::context::Context;
use crate::error::{Error, Operation};
use crate::fixed::Fixed;
use crate::lock::Lock;
use crate::sync::AtomicU64;
use crate::sys::{self, CqCreateFlags, CqInitAttrMask, CqWcFlags, ibv_cq, ibv_cq_init_attr_ex, ibv_wc};

/// The options of a completion queue.
#[derive(Debug, Clone)]
pub struct CompletionQueueOptions {
    entries: u32,
    batch: u32,
    vector: u32,
    channel: Option<Arc<Channel>>,
    is_solicited_only: bool,
    can_overflow: bool,
    timestamps: Option<Timestamps>,
    is_single_threaded: bool,
}

/// What clock completions are stamped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timestamps {
    /// The device's, which counts [`Context::clock_khz`] thousands a second.
    DeviceClock,
    /// That of the day, in nanoseconds since 1970.
    WallClock,
}

impl CompletionQueueOptions {
    /// With room for `entries` requests: those of all queues of all queue pairs that will use it.
    pub fn new(entries: u32) -> Self {
        Self {
            entries,
            batch: 16,
            vector: 0,
            channel: None,
            is_solicited_only: false,
            can_overflow: false,
            timestamps: None,
            is_single_threaded: false,
        }
    }

    /// How many completions are taken out of the library's queue at a time, at least 1. By default 16.
    pub fn batch(mut self, completions: u32) -> Self {
        self.batch = completions.max(1);
        self
    }

    /// Which of the device's [`completion_vectors`](Context::completion_vectors) its events take, and with it which CPU
    /// their interrupt goes to (`/proc/irq/*/smp_affinity_list`). By default 0.
    pub fn vector(mut self, vector: u32) -> Self {
        self.vector = vector;
        self
    }

    /// The vector for the CPU where its events are waited for, by the rule that drivers spread vectors over CPUs with:
    /// vector 0 to CPU 0, and from the start again where there are fewer. `/proc/interrupts` shows what is so here.
    pub fn vector_for_cpu(self, context: &Context, cpu: u32) -> Self {
        let vectors = context.completion_vectors().max(1);
        self.vector(cpu % vectors)
    }

    /// Where its events are waited for. By default nowhere: it is polled only.
    pub fn channel(mut self, channel: &CompletionChannel) -> Self {
        self.channel = Some(Arc::clone(channel.shared()));
        self
    }

    /// Events come only for receives whose sender asked for it, and for errors. By default for all.
    pub fn solicited_only(mut self, is_on: bool) -> Self {
        self.is_solicited_only = is_on;
        self
    }

    /// Lets queue pairs use it that may have more requests in flight than it has room for. When it overflows it is
    /// lost, with an asynchronous event, and so are its queue pairs. By default such a queue pair is refused.
    pub fn overcommit(mut self, is_on: bool) -> Self {
        self.can_overflow = is_on;
        self
    }

    /// Stamps each completion with the time at which the device saw it. By default none.
    pub fn timestamps(mut self, clock: Timestamps) -> Self {
        self.timestamps = Some(clock);
        self
    }

    /// Has the driver take no lock when it is polled. All queue pairs that use it are then made, posted to and dropped
    /// by the thread that polls it, or in turns. By default it takes one.
    ///
    /// # Safety
    ///
    /// So it is, and what is made with it too.
    pub unsafe fn single_threaded(mut self, is_on: bool) -> Self {
        self.is_single_threaded = is_on;
        self
    }

    /// Makes it.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] where the device has no queue of this size, or no such vector; [`Error::OtherDevice`] where
    /// the channel is of another opening of a device; [`Error::NotSupported`] where it has no time stamps.
    pub fn build<B>(&self, context: &Context) -> Result<CompletionQueue<B>, Error> {
        let operation = Operation::CreateCompletionQueue;
        context.open.require_operations(operation)?;
        if let Some(channel) = &self.channel {
            channel.open.same_as(&context.open, operation)?;
        }
        Error::at_most("entries of a completion queue", self.entries, context.attributes()?.max_cqe)?;
        let last = context.completion_vectors().saturating_sub(1);
        Error::at_most("completion vectors, counted from 0", self.vector, last)?;
        let raw = NonNull::new(self.make(context)).ok_or_else(|| Error::of(operation, Errno::last()))?;
        // SAFETY: just made, and only `resize` writes this.
        let room = u32::try_from(unsafe { (*raw.as_ptr()).cqe }).unwrap_or(0);
        let shared = Arc::new(Shared {
            raw,
            open: Arc::clone(&context.open),
            channel: self.channel.clone(),
            registry: Lock::new(Registry::new(room, self.can_overflow)),
            left: Departures::new(),
            missed: AtomicU64::new(0),
        });
        // SAFETY: nobody else knows the queue yet. The context is what an event comes with; `Shared` stays in its place.
        unsafe { (*raw.as_ptr()).cq_context = Arc::as_ptr(&shared).cast_mut().cast() };
        // There are never more in it.
        let batch = self.batch.min(room.max(1)) as usize;
        let zeroed = (0..batch).map(|_| ibv_wc::default()).collect();
        Ok(CompletionQueue {
            shared: CompletionTarget(shared),
            raw: raw.as_ptr(),
            queues: vec![Registry::nobodys()],
            shared_queues: Vec::new(),
            polled: Fixed::new(zeroed),
            batch: c_int::try_from(batch).unwrap_or(c_int::MAX),
            given: None,
            is_stamped: self.timestamps.is_some(),
            clock: self.timestamps.unwrap_or(Timestamps::DeviceClock),
            stamps: vec![0; batch].into_boxed_slice(),
            mask: 0,
            next: ptr::null(),
            taken: 0,
            reaped: 0,
            unknown: 0,
            is_armed: false,
            is_solicited_only: self.is_solicited_only,
            missed: 0,
            to_acknowledge: 0,
        })
    }

    /// Has the library make it: as an extended one only where that is needed, since the others are older and better
    /// tried.
    fn make(&self, context: &Context) -> *mut ibv_cq {
        let channel = self.channel.as_ref().map_or(ptr::null_mut(), |channel| channel.as_raw());
        if self.timestamps.is_none() && !self.is_single_threaded {
            // Both fit, as checked against numbers of this type.
            let entries = c_int::try_from(self.entries).unwrap_or(c_int::MAX);
            let vector = c_int::try_from(self.vector).unwrap_or(0);
            let create = context.open.functions.ibv_create_cq;
            // SAFETY: the context is open, and the channel is there or none.
            return unsafe { create(context.as_raw(), entries, ptr::null_mut(), channel, vector) };
        }
        let stamps = match self.timestamps {
            Some(Timestamps::DeviceClock) => CqWcFlags::COMPLETION_TIMESTAMP,
            Some(Timestamps::WallClock) => CqWcFlags::COMPLETION_TIMESTAMP_WALLCLOCK,
            None => CqWcFlags::empty(),
        };
        let mut attributes = ibv_cq_init_attr_ex {
            cqe: self.entries,
            channel,
            comp_vector: self.vector,
            wc_flags: CqWcFlags::STANDARD | stamps,
            ..ibv_cq_init_attr_ex::default()
        };
        if self.is_single_threaded {
            attributes.comp_mask = CqInitAttrMask::FLAGS;
            attributes.flags = CqCreateFlags::SINGLE_THREADED;
        }
        // SAFETY: the context is open, and so are the attributes.
        sys::cq_ex_to_cq(unsafe { sys::create_cq_ex(context.as_raw(), &raw mut attributes) })
    }
}
