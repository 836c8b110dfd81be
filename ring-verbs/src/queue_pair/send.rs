//! The send side of a queue pair.
//!
//! # Safety
//!
//! The links of the chain point at each other and at their own pieces, and stay where they are. They are the queue's own,
//! and borrowed for moments only, by way of the same pointers. A buffer is in the flight before the device has its
//! request, and comes out only if the device has refused it.
#![allow(unsafe_code)]

mod alone;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use core::slice;

use super::Posted;
use super::direct::Direct;
use super::rejected::{Rejected, Rejection};
use super::request::Request;
use crate::Errno;
use crate::buffer::{Buffer, PieceList, Pieces, piece_list};
use crate::completion::{Opcode, Ticket};
use crate::deadline::Deadline;
use crate::fixed::Fixed;
use crate::flight::{Entry, Flight, Poster};
use crate::sys::{SendFlags, ibv_context, ibv_qp, ibv_send_wr, ibv_sge};

/// Pieces and request, at one place.
pub(super) struct Link {
    pub(super) wr: ibv_send_wr,
    list: PieceList,
}

impl Link {
    /// The pieces of its request.
    #[inline(always)]
    pub(super) fn pieces(&self) -> &[ibv_sge] {
        let count = usize::try_from(self.wr.num_sge).unwrap_or(0);
        // SAFETY: so many were written, and have the layout of what they hold.
        unsafe { slice::from_raw_parts(self.list.as_ptr().cast(), count) }
    }
}

/// Posts requests, one at a time or chained.
pub(super) struct SendQueue<B> {
    poster: Poster<B, Posted>,
    /// The buffer of an unusual post, for a moment, and why it was rejected: in a place of their own, so that a usual post
    /// is made in registers.
    aside: Option<B>,
    reason: Rejection,
    /// Which request of a lone post the driver names as bad; null until it does.
    bad: *mut ibv_send_wr,
    links: Fixed<Link>,
    /// Links in front that the device has not got.
    filled: usize,
    pieces_max: usize,
    max_inline: u32,
    /// How many requests there are to each that has a completion of its own: a power of two, less one.
    signal_mask: u64,
    /// Of every request: that it is signaled, where each is.
    flags: SendFlags,
    context: NonNull<ibv_context>,
    /// Room for as many as can be in flight, so that it never grows.
    deadlines: Vec<Timed>,
    /// Where requests are built in the device's own form.
    direct: Option<Direct>,
}

/// A request that is to be done by then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    pub(super) ticket: Ticket,
    pub(super) deadline: Deadline,
}

// SAFETY: what the raw pointers in the links point at is the queue's own.
unsafe impl<B: Send> Send for SendQueue<B> {}

/// What a queue of requests is made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacities {
    pub(super) depth: u32,
    pub(super) pieces: u32,
    pub(super) max_inline: u32,
    pub(super) signal_every: u32,
    pub(super) batch: u32,
    pub(super) direct: Option<Direct>,
    pub(super) context: NonNull<ibv_context>,
}

impl<B> SendQueue<B> {
    /// # Safety
    ///
    /// Nothing else posts to the flight.
    pub(super) unsafe fn new(flight: Arc<Flight<B, Posted>>, capacities: &Capacities) -> Self {
        let signal_every = capacities.signal_every.clamp(1, capacities.depth.max(1));
        let link = |_| Link { wr: ibv_send_wr::default(), list: piece_list() };
        Self {
            // SAFETY: the caller's promise.
            poster: unsafe { Poster::new(flight, capacities.depth) },
            aside: None,
            reason: Rejection::Full,
            bad: ptr::null_mut(),
            links: Fixed::new((0..capacities.batch.max(1)).map(link).collect()),
            filled: 0,
            pieces_max: capacities.pieces.max(1) as usize,
            max_inline: capacities.max_inline,
            flags: if signal_every == 1 { SendFlags::SIGNALED } else { SendFlags::empty() },
            signal_mask: u64::from(1_u32 << signal_every.ilog2()) - 1,
            context: capacities.context,
            deadlines: Vec::with_capacity(capacities.depth as usize),
            direct: capacities.direct,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.poster.in_flight()
    }

    pub(super) fn depth(&self) -> u32 {
        self.poster.depth()
    }

    pub(super) fn max_inline(&self) -> u32 {
        self.max_inline
    }

    pub(super) fn leave(&mut self) {
        self.begin();
        self.poster.leave();
    }

    /// Begins anew with another flight, after a reset.
    ///
    /// # Safety
    ///
    /// As [`Self::new`]; the device has none of what is in the old one.
    pub(super) unsafe fn renew(&mut self, flight: Arc<Flight<B, Posted>>) {
        self.begin();
        // SAFETY: the caller's promise, and the chain is empty.
        unsafe { self.poster.renew(flight) };
        self.deadlines.clear();
    }

    /// Notes that the newest post is to be done by then.
    pub(super) fn note(&mut self, ticket: Ticket, deadline: Deadline) {
        if self.deadlines.len() == self.deadlines.capacity() {
            self.forget_ended();
        }
        self.deadlines.push(Timed { ticket, deadline });
    }

    /// A request whose deadline is over and that has not been seen to end. Each is told once.
    pub(super) fn overdue(&mut self) -> Option<Timed> {
        self.forget_ended();
        let index = self.deadlines.iter().position(|timed| timed.deadline.late().is_some())?;
        Some(self.deadlines.swap_remove(index))
    }

    fn forget_ended(&mut self) {
        let positions = self.poster.positions();
        self.deadlines.retain(|timed| positions.contains(&timed.ticket.0));
    }

    /// Makes sure that the chain is empty. One is left where a batch was forgotten (`mem::forget`), and bytes that its
    /// requests name may be gone.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        if self.filled > 0 {
            self.abandon(drop);
        }
        self.go_alone();
    }

    /// After the chain has become empty.
    fn go_alone(&mut self) {
        if self.direct.is_none() {
            self.poster.go_alone();
        } else {
            self.poster.look_closer();
        }
    }

    /// Whether a request can be added to the chain.
    #[inline(always)]
    pub(super) fn has_room(&mut self) -> bool {
        self.filled < self.links.count() && self.poster.has_room()
    }

    /// The flags of the request at a position: of each so many positions the last has a completion of its own.
    #[inline(always)]
    fn signal(&self, flags: SendFlags, position: u64) -> SendFlags {
        let flags = flags | self.flags;
        if flags.contains(SendFlags::SIGNALED) { flags } else { self.signal_some(flags, position) }
    }

    /// As [`Self::signal`], where not every request has one: a call, so that the others have no arithmetic.
    #[inline(never)]
    fn signal_some(&self, flags: SendFlags, position: u64) -> SendFlags {
        if position & self.signal_mask == self.signal_mask { flags | SendFlags::SIGNALED } else { flags }
    }

    #[cold]
    fn why_full(&self) -> Rejection {
        if self.filled == self.links.count() { Rejection::BatchFull } else { Rejection::Full }
    }

    /// Adds a request with a buffer to the chain.
    #[inline(always)]
    pub(super) fn push<T>(&mut self, request: &Request<T>, buffer: B) -> Result<Ticket, Rejected<B>>
    where
        B: Buffer,
    {
        if !self.has_room() {
            return Err(Rejected { buffer, reason: self.why_full() });
        }
        let most = self.pieces_max;
        // SAFETY: nobody else has borrowed the pieces.
        let list = unsafe { &mut (*self.links.at(self.filled)).list };
        let mut added = Pieces::new(list);
        buffer.add_pieces(&mut added);
        let (pieces, holds_a_word) = (added.count(), added.holds_a_word());
        if pieces > most {
            return Err(Rejected { buffer, reason: Rejection::TooManyPieces { pieces, most } });
        }
        if request.posted().is_special() {
            if let Err(reason) = self.check_special(request.posted(), holds_a_word) {
                return Err(Rejected { buffer, reason });
            }
        }
        Ok(self.fill(request, Some(buffer), pieces, SendFlags::empty()))
    }

    /// Adds a request that carries its bytes to the chain. They are read when it goes to the device.
    ///
    /// # Safety
    ///
    /// They are there until then.
    #[inline(always)]
    pub(super) unsafe fn push_inline<T>(
        &mut self,
        request: &Request<T>,
        bytes: &[u8],
    ) -> Result<Ticket, Rejection> {
        if !self.has_room() {
            return Err(self.why_full());
        }
        // Soft-RoCE's driver would take the bytes for a list of pieces, and let the device write there.
        if request.opcode() == Opcode::Read || request.posted().is_atomic() {
            return Err(Rejection::NeedsBuffer);
        }
        if request.posted().is_special() {
            self.check_special(request.posted(), false)?;
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if length > self.max_inline {
            return Err(Rejection::TooLong { bytes: bytes.len(), most: self.max_inline });
        }
        // SAFETY: nobody else has borrowed the pieces.
        let list = unsafe { &mut (*self.links.at(self.filled)).list };
        let mut added = Pieces::new(list);
        added.add(bytes.as_ptr(), length, 0);
        let pieces = added.count();
        Ok(self.fill(request, None, pieces, SendFlags::INLINE))
    }

    /// That an atomic has room for its result, and that an address handle is one of this device: a driver looks into it.
    #[cold]
    fn check_special(&self, posted: &Posted, holds_a_word: bool) -> Result<(), Rejection> {
        if posted.is_atomic() && !holds_a_word {
            return Err(Rejection::NeedsWord);
        }
        match posted.handle() {
            Some(handle) if handle.context() != self.context => Err(Rejection::OtherDevice),
            _ => Ok(()),
        }
    }

    /// Fills in the next link, whose pieces are there, and puts the buffer where polling finds it. There is room.
    #[inline(always)]
    fn fill<T>(
        &mut self,
        request: &Request<T>,
        buffer: Option<B>,
        pieces: usize,
        flags: SendFlags,
    ) -> Ticket {
        let position = self.poster.position();
        // SAFETY: no post of the request is under way: it is not shared between threads.
        let prepared = unsafe { *request.raw() };
        let flags = self.signal(flags | request.flags(), position);
        let link = self.links.at(self.filled);
        // SAFETY: the link is there.
        let wr = unsafe { &raw mut (*link).wr };
        // SAFETY: as above.
        let list = unsafe { &raw mut (*link).list };
        let wr_id = self.poster.wr_id(position);
        // SAFETY: nobody else has borrowed the request.
        write_request(unsafe { &mut *wr }, &prepared, wr_id, flags, list, pieces);
        if let Some(before) = self.filled.checked_sub(1) {
            // SAFETY: as above.
            unsafe { (*self.links.at(before)).wr.next = wr };
        }
        self.filled += 1;
        self.poster.look_closer();
        let operation = request.posted().clone();
        // SAFETY: there is room, as the callers have checked.
        unsafe { self.poster.write(Entry { buffer, operation }) };
        Ticket(position)
    }

    /// Gives the chain to the device. Where it refuses some, these come back, the last first; what comes before the
    /// refused ones is in flight.
    ///
    /// # Safety
    ///
    /// The queue pair is this queue's, and is in a state in which it takes requests.
    #[inline(always)]
    pub(super) unsafe fn ring(
        &mut self,
        pair: *mut ibv_qp,
        returned: impl FnMut(Option<B>),
    ) -> Result<(), Errno> {
        if self.filled == 0 {
            return Ok(());
        }
        self.poster.publish();
        // SAFETY: the first link is there.
        let first = unsafe { &raw mut (*self.links.first()).wr };
        let mut bad = ptr::null_mut();
        let code = match self.direct {
            Some(direct) if direct.takes(self.chain()) => {
                // Where it is sound, a failure means that none was taken; soft-RoCE's may have queued them.
                if direct.is_sound() {
                    bad = first;
                }
                // SAFETY: the queue pair is there, and so are the links, until the call returns.
                unsafe { direct.post(self.chain()) }
            }
            // SAFETY: the queue pair is there, and so is the chain, until the call returns.
            _ => unsafe { post_send(pair, first, &raw mut bad) },
        };
        if code == 0 {
            self.filled = 0;
            self.go_alone();
            return Ok(());
        }
        self.refused(code, bad, returned)
    }

    /// What is in the chain.
    fn chain(&self) -> &[Link] {
        // SAFETY: so many are filled, and nobody writes to them meanwhile.
        unsafe { slice::from_raw_parts(self.links.first(), self.filled) }
    }

    #[cold]
    fn refused(
        &mut self,
        code: i32,
        bad: *mut ibv_send_wr,
        mut returned: impl FnMut(Option<B>),
    ) -> Result<(), Errno> {
        let filled = self.filled;
        // Where the driver names none as the bad one, all may be in flight, and completions bring them back: soft-RoCE's
        // does so where it has queued the requests and could not say so to the kernel. The next post's call says it.
        let is_bad = |link: &Link| ptr::eq(&raw const link.wr, bad);
        let taken = self.chain().iter().position(is_bad).unwrap_or(filled);
        self.filled = 0;
        self.go_alone();
        for _ in taken..filled {
            // SAFETY: the driver has refused the newest ones, from the bad one on.
            let entry = unsafe { self.poster.take_back() };
            returned(entry.buffer);
        }
        Err(errno_of(code))
    }

    /// Drops what was added to the chain and not given to the device.
    #[cold]
    pub(super) fn abandon(&mut self, mut returned: impl FnMut(Option<B>)) {
        while self.filled > 0 {
            // Counted before the buffer is dropped, which may panic.
            self.filled -= 1;
            // SAFETY: the device has not got them.
            let entry = unsafe { self.poster.take_back() };
            returned(entry.buffer);
        }
    }
}

/// As the header's function, of a driver that has the operation.
///
/// # Safety
///
/// The queue pair is there, its driver has the operation, as was checked when it was made, and so are the requests.
#[inline(always)]
unsafe fn post_send(pair: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the caller's promise: the queue pair is there.
    let context = unsafe { (*pair).context };
    // SAFETY: its context is open for as long as it lives.
    let post = unsafe { (*context).ops.post_send };
    // SAFETY: the caller's promise.
    let post = unsafe { post.unwrap_unchecked() };
    // SAFETY: the caller's promise.
    unsafe { post(pair, wr, bad) }
}

/// All of a request. There are at most [`PIECES_MAX`](crate::PIECES_MAX) pieces, in the list's front.
#[inline(always)]
fn write_request(
    wr: &mut ibv_send_wr,
    prepared: &ibv_send_wr,
    wr_id: u64,
    flags: SendFlags,
    list: *mut PieceList,
    pieces: usize,
) {
    wr.wr_id = wr_id;
    wr.next = ptr::null_mut();
    wr.sg_list = list.cast();
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "there are few pieces")]
    let count = pieces as c_int;
    wr.num_sge = count;
    wr.opcode = prepared.opcode;
    wr.send_flags = flags;
    wr.imm = prepared.imm;
    wr.wr = prepared.wr;
}

/// Why a driver refuses.
fn errno_of(code: i32) -> Errno {
    Errno::check(code).err().unwrap_or(Errno(libc::EIO))
}
