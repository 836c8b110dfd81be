//! A device without hardware, which does what a test tells it, behind the tables that a driver fills.
//!
//! It notes what is asked of it, refuses what the kernel would refuse because something is still used, and completes
//! nothing by itself.
//!
//! # Safety
//!
//! A context is the last part of a `Device`, which is never freed. Objects are boxes that this file makes and frees,
//! each once. Between two calls nobody but the crate touches them.
#![allow(unsafe_code)]

mod calls;
mod state;

use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring_verbs::Context;
use ring_verbs::sys::{
    AccessFlags, EventType, Functions, ReregMrFlags, WcOpcode, WcStatus, WrOpcode, ibv_async_event,
    ibv_context, ibv_cq, ibv_qp, ibv_qp_attr, ibv_srq, ibv_wc, verbs_context,
};

use state::Event;
pub(crate) use state::{Answer, Bad, Call, Kind, Posted, Refusal, Stamped, State};

use crate::table::UNSCRIPTED;

/// What is behind a context.
#[repr(C)]
pub(crate) struct Device {
    verbs: verbs_context,
    state: Mutex<State>,
}

/// What the clock of the day says when the device's says 0.
pub(crate) const WALL_CLOCK_NS: u64 = 1_700_000_000_000_000_000;

/// Every call that a test needs. More are entered here.
static FUNCTIONS: Functions = Functions {
    ibv_get_device_name: calls::get_device_name,
    ibv_close_device: calls::close_device,
    ibv_get_async_event: calls::events::get_async_event,
    ibv_ack_async_event: calls::events::ack_async_event,
    ibv_query_device: calls::query_device,
    ibv_alloc_pd: calls::memory::alloc_pd,
    ibv_dealloc_pd: calls::memory::dealloc_pd,
    ibv_reg_mr: calls::memory::reg_mr,
    ibv_reg_mr_iova2: Some(calls::memory::reg_mr_iova2),
    ibv_rereg_mr: calls::memory::rereg_mr,
    ibv_dereg_mr: calls::memory::dereg_mr,
    ibv_create_cq: calls::completion_queue::create_cq,
    ibv_destroy_cq: calls::completion_queue::destroy_cq,
    ibv_create_srq: calls::shared_queue::create_srq,
    ibv_modify_srq: calls::shared_queue::modify_srq,
    ibv_destroy_srq: calls::shared_queue::destroy_srq,
    ibv_create_qp: calls::queue_pair::create_qp,
    ibv_modify_qp: calls::queue_pair::modify_qp,
    ibv_query_qp: calls::queue_pair::query_qp,
    ibv_destroy_qp: calls::queue_pair::destroy_qp,
    ..UNSCRIPTED
};

/// How a test speaks with the device.
#[derive(Clone, Copy)]
pub(crate) struct Scripted {
    device: NonNull<Device>,
}

impl Scripted {
    /// A device, and what the crate knows of it.
    pub(crate) fn open() -> (Self, Context) {
        Self::open_as(verbs_context {
            query_device_ex: Some(calls::query_device_ex),
            alloc_td: Some(calls::memory::alloc_td),
            dealloc_td: Some(calls::memory::dealloc_td),
            alloc_parent_domain: Some(calls::memory::alloc_parent_domain),
            create_cq_ex: Some(calls::completion_queue::create_cq_ex),
            modify_cq: Some(calls::completion_queue::modify_cq),
            ..verbs_context::default()
        })
    }

    /// A device whose driver has nothing that came after the first version of the interface.
    pub(crate) fn open_plain() -> (Self, Context) {
        Self::open_as(verbs_context::default())
    }

    fn open_as(mut verbs: verbs_context) -> (Self, Context) {
        verbs.sz = size_of::<verbs_context>();
        // What tells that there is more before the context.
        verbs.context.abi_compat = ptr::without_provenance_mut(usize::MAX);
        // Its paths are empty: nothing is known of where it is.
        verbs.context.device = Box::into_raw(Box::default());
        verbs.context.num_comp_vectors = 2;
        verbs.context.async_fd = -1;
        verbs.context.ops.post_send = Some(calls::post::post_send);
        verbs.context.ops.post_recv = Some(calls::post::post_recv);
        verbs.context.ops.post_srq_recv = Some(calls::post::post_srq_recv);
        verbs.context.ops.poll_cq = Some(calls::completion_queue::poll_cq);
        let device = Box::new(Device { verbs, state: Mutex::new(State::default()) });
        let device = NonNull::from(Box::leak(device));
        // SAFETY: the device is never freed.
        let context = unsafe { &raw mut (*device.as_ptr()).verbs.context };
        let context = NonNull::new(context).expect("it is part of a box");
        // SAFETY: the table is this device's, and the context is given away here only.
        (Self { device }, unsafe { Context::from_raw(&FUNCTIONS, context) })
    }

    /// The device of a context.
    ///
    /// # Safety
    ///
    /// It came from `open`.
    unsafe fn of(context: *mut ibv_context) -> Self {
        let device = context.wrapping_byte_sub(offset_of!(Device, verbs.context)).cast();
        Self { device: NonNull::new(device).expect("a context lies in a device") }
    }

    /// What was seen, and what is to come.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // SAFETY: the device is never freed, and the state is shared by its lock only.
        let state = unsafe { &(*self.device.as_ptr()).state };
        // A test that fails says so itself.
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call of this function answers so.
    pub(crate) fn answer(&self, call: Call, answer: Answer) {
        self.state().answers.push((call, answer));
    }

    /// The next post is refused so.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.state().refusal = Some(refusal);
    }

    /// The requests that the device has got, and that were not asked for yet.
    pub(crate) fn posted(&self) -> Vec<Posted> {
        core::mem::take(&mut self.state().posted)
    }

    /// Completes a request, as a driver does.
    pub(crate) fn complete(&self, posted: &Posted, status: WcStatus) {
        let opcode = match posted.opcode {
            None => WcOpcode::RECV,
            Some(WrOpcode::RDMA_WRITE | WrOpcode::RDMA_WRITE_WITH_IMM) => WcOpcode::RDMA_WRITE,
            Some(WrOpcode::RDMA_READ) => WcOpcode::RDMA_READ,
            Some(_) => WcOpcode::SEND,
        };
        let mut wc = ibv_wc { wr_id: posted.wr_id, status, qp_num: posted.queue_pair, ..ibv_wc::default() };
        if status == WcStatus::SUCCESS {
            (wc.opcode, wc.byte_len) = (opcode, posted.bytes());
        } else {
            // Drivers leave anything here.
            (wc.opcode, wc.byte_len, wc.vendor_err) = (WcOpcode(77), 1 << 30, 0x55);
        }
        self.push(posted.completion_queue, wc);
    }

    /// Has a completion come out of a queue.
    pub(crate) fn push(&self, completion_queue: u32, wc: ibv_wc) {
        let mut state = self.state();
        let ticks = state.ticks;
        state.ticks += 1;
        state.completions.entry(completion_queue).or_default().push_back(Stamped { wc, ticks });
    }

    /// Has a descriptor for asynchronous events from now on, which is the context's.
    pub(crate) fn tell_events(&self) {
        // SAFETY: it takes no memory.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC) };
        assert!(descriptor >= 0);
        // SAFETY: the device is never freed, and nobody else touches this before it is set.
        unsafe { (*self.device.as_ptr()).verbs.context.async_fd = descriptor };
    }

    /// Something happens.
    pub(crate) fn happen(&self, kind: EventType, about: About) {
        let mut raw = ibv_async_event { event_type: kind, ..ibv_async_event::default() };
        let mut pair = None;
        match about {
            About::Nothing => {}
            About::Port(number) => raw.element.port_num = number,
            About::CompletionQueue(queue) => raw.element.cq = queue,
            About::SharedQueue(queue) => raw.element.srq = queue,
            About::QueuePair(number) => {
                let made = Box::into_raw(Box::new(ibv_qp { qp_num: number, ..ibv_qp::default() }));
                (raw.element.qp, pair) = (made, Some(made));
            }
        }
        self.state().events.push_back(Event { raw, pair });
        // SAFETY: as above; only that writes it.
        let descriptor = unsafe { (*self.device.as_ptr()).verbs.context.async_fd };
        let one = 1_u64;
        // SAFETY: the number can be read.
        let put = unsafe { libc::write(descriptor, (&raw const one).cast(), size_of::<u64>()) };
        assert_eq!(usize::try_from(put), Ok(size_of::<u64>()));
    }

    /// That everything was ended, in an order that no kernel refuses.
    pub(crate) fn require_ended(&self) {
        let state = self.state();
        assert_eq!(state.busy, 0, "something was still used: {:?}", state.ended);
        assert!(state.is_closed, "the device is open, with {:?}", state.live());
        assert_eq!(state.live(), []);
    }
}

/// What `modify` was told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modified {
    pub(crate) attributes: ibv_qp_attr,
    pub(crate) mask: ring_verbs::sys::QpAttrMask,
}

/// What something that happens is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About {
    Nothing,
    Port(c_int),
    CompletionQueue(*mut ibv_cq),
    SharedQueue(*mut ibv_srq),
    /// One of this number, which is gone as soon as the event is acknowledged.
    QueuePair(u32),
}

/// What a registration was to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reregistered {
    pub(crate) flags: ReregMrFlags,
    /// The addresses of both.
    pub(crate) domain: usize,
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) access: AccessFlags,
}

/// What was registered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) access: AccessFlags,
    /// Whether the function that takes optional flags was called.
    pub(crate) is_optional: bool,
}

fn set_errno(errno: c_int) {
    // SAFETY: it gives the address of a word of this thread.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: that word can be written.
    unsafe { at.write(errno) };
}
