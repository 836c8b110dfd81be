//! The buffers that a work queue has in flight, in the order in which they were posted.
//!
//! One thread posts and one polls. Completions of a work queue come in the order of its posts, so a completion at a
//! position also ends everything before it, and the buffers lie in a ring: no search, no list of free places. The
//! position travels in the request's `wr_id` and is checked when it comes back.
//!
//! | edge | from | to |
//! |---|---|---|
//! | R1 → A1 | `Poster::publish` and `Poster::put` raise the tail, `Poster::take_back` lowers it | `Flight::count`: the entry is there to be taken |
//! | R2 → A2 | `Flight::take` raises the head | `Poster::has_room`: the entry's place is free |
//! | R3 → A3 | `Poster::leave` says that the queue is destroyed | `Flight::is_left`: nobody posts any more |
//!
//! # Safety
//!
//! - Entries in `head..tail` belong to the polling side, the others to the posting side; only the poster writes the
//!   tail, only the poller the head.
//! - There is one `Poster` of a flight, and one completion queue asks it (whose `poll` takes `&mut`).
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem::MaybeUninit;
use core::ops::Range;

use crate::sync::{AtomicU64, Cell, Ordering};

/// What is remembered of one post until its end.
#[derive(Debug)]
pub(crate) struct Entry<B, O> {
    /// None where the bytes were copied into the request.
    pub(crate) buffer: Option<B>,
    /// The device does not say it of what failed.
    pub(crate) operation: O,
}

/// Where an entry lies, if one is in flight there.
type Place<B, O> = Cell<MaybeUninit<Entry<B, O>>>;

/// A line of its own, so that one side's writes do not take the other's line.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

/// The ring of one work queue.
#[derive(Debug)]
pub(crate) struct Flight<B, O> {
    /// The upper half of each `wr_id`: which queue of the completion queue, in which generation.
    key: u32,
    /// The number of the queue pair.
    queue_pair: u32,
    mask: u64,
    entries: Box<[Place<B, O>]>,
    tail: Line<AtomicU64>,
    head: Line<AtomicU64>,
    left: AtomicU64,
}

impl<B, O> Flight<B, O> {
    /// A ring for `depth` posts, at least one.
    pub(crate) fn new(key: u32, queue_pair: u32, depth: u32) -> Self {
        let places = u64::from(depth).next_power_of_two();
        let entries = (0..places).map(|_| Cell::new(MaybeUninit::uninit())).collect();
        let zero = || Line(AtomicU64::new(0));
        Self {
            key,
            queue_pair,
            mask: places - 1,
            entries,
            tail: zero(),
            head: zero(),
            left: AtomicU64::new(0),
        }
    }

    pub(crate) fn key(&self) -> u32 {
        self.key
    }

    pub(crate) fn queue_pair(&self) -> u32 {
        self.queue_pair
    }

    #[inline(always)]
    fn entry(&self, position: u64) -> &Place<B, O> {
        #[allow(clippy::cast_possible_truncation, reason = "the mask is the length of a slice less one")]
        let index = (position & self.mask) as usize;
        // SAFETY: the mask is the length less one.
        unsafe { self.entries.get_unchecked(index) }
    }

    /// The position of the oldest post that has not ended. For the polling side.
    #[inline(always)]
    fn head(&self) -> u64 {
        // ORDERING: Relaxed: only this side writes it.
        self.head.0.load(Ordering::Relaxed)
    }

    /// The position of the oldest post, and the whole position that a `wr_id` carries the lower half of, where such a
    /// post is in flight. For the polling side.
    #[inline(always)]
    pub(crate) fn find(&self, low: u32) -> Option<(u64, u64)> {
        let head = self.head();
        // The distance counts modulo 2^32, and no ring is that deep.
        #[allow(clippy::cast_possible_truncation, reason = "the distance of the lower halves is meant")]
        let distance = u64::from(low.wrapping_sub(head as u32));
        (distance < self.count(head)).then(|| (head, head.wrapping_add(distance)))
    }

    /// How many posts have not ended, from the head on. For the polling side.
    #[inline(always)]
    fn count(&self, head: u64) -> u64 {
        // ORDERING: Acquire (A1): the entries were written before; pairs with R1 in Poster::publish, Poster::put and
        // Poster::take_back.
        self.tail.0.load(Ordering::Acquire).wrapping_sub(head)
    }

    /// The position of the oldest post that has not ended, if there is one. For the polling side.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let head = self.head();
        (self.count(head) > 0).then_some(head)
    }

    /// Takes the oldest post's entry. For the polling side.
    ///
    /// # Safety
    ///
    /// This is the only poller, `head` is the head, and [`Self::find`] or [`Self::oldest`] has found something in flight.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, head: u64) -> Entry<B, O> {
        // SAFETY: what is in flight belongs to the polling side, and the caller is all of it.
        let entry = unsafe { self.take_out(head) };
        // ORDERING: Release (R2): the entry was taken out before its place is free; pairs with A2 in Poster::has_room.
        self.head.0.store(head.wrapping_add(1), Ordering::Release);
        entry
    }

    /// # Safety
    ///
    /// An entry was written there and not taken out since, and it is the caller's.
    #[inline(always)]
    unsafe fn take_out(&self, position: u64) -> Entry<B, O> {
        let nothing = MaybeUninit::uninit();
        // SAFETY: the caller's promise: nobody else touches it.
        let entry = unsafe { self.entry(position).with(|place| core::mem::replace(place, nothing)) };
        // SAFETY: the caller's promise: one was written.
        unsafe { entry.assume_init() }
    }

    /// Whether the queue is destroyed and nothing can be posted any more. For the polling side.
    pub(crate) fn is_left(&self) -> bool {
        // ORDERING: Acquire (A3): every post and every completion of it came before; pairs with R3 in Poster::leave.
        self.left.load(Ordering::Acquire) != 0
    }
}

impl<B, O> Drop for Flight<B, O> {
    fn drop(&mut self) {
        while let Some(head) = self.oldest() {
            // SAFETY: nobody else has the flight, and something is in flight at the head.
            drop(unsafe { self.take(head) });
        }
    }
}

/// The posting side of a flight.
#[derive(Debug)]
pub(crate) struct Poster<B, O> {
    flight: Arc<Flight<B, O>>,
    /// The flight's key, where a `wr_id` has it.
    numbers: u64,
    /// The limit that was asked for: the ring may have more places.
    depth: u64,
    /// Where the ring is full, by the head when it was last looked at.
    limit: u64,
    /// The position from which on a lone post has to look closer: the limit, or the next position, as at first.
    limit_alone: u64,
    /// Entries written beyond the tail, not yet published.
    written: u64,
}

impl<B, O> Poster<B, O> {
    /// # Safety
    ///
    /// There is no other poster of this flight.
    pub(crate) unsafe fn new(flight: Arc<Flight<B, O>>, depth: u32) -> Self {
        let numbers = u64::from(flight.key) << 32;
        Self { flight, numbers, depth: depth.into(), limit: depth.into(), limit_alone: 0, written: 0 }
    }

    /// Whether one more entry can be written.
    #[inline(always)]
    pub(crate) fn has_room(&mut self) -> bool {
        let position = self.position();
        if position != self.limit {
            return true;
        }
        // ORDERING: Acquire (A2): who took the entry out is done with its place; pairs with R2 in Flight::take.
        self.limit = self.flight.head.0.load(Ordering::Acquire).wrapping_add(self.depth);
        position != self.limit
    }

    /// The position of the next entry, and whether there is room as far as was seen, and lone posts need not look closer.
    #[inline(always)]
    pub(crate) fn next_alone(&self) -> (u64, bool) {
        let tail = self.tail();
        (tail, tail != self.limit_alone)
    }

    /// Lone posts go on to where the ring is full.
    #[inline(always)]
    pub(crate) fn go_alone(&mut self) {
        self.limit_alone = self.limit;
    }

    /// The next lone post looks closer.
    #[inline(always)]
    pub(crate) fn look_closer(&mut self) {
        self.limit_alone = self.tail();
    }

    /// Writes and publishes an entry, where nothing else is written, at the next position.
    ///
    /// # Safety
    ///
    /// There is room, and nothing is written that is not published.
    #[inline(always)]
    pub(crate) unsafe fn put(&mut self, position: u64, entry: Entry<B, O>) {
        // SAFETY: places outside of `head..tail` belong to this side; this one is, since there is room.
        unsafe { self.flight.entry(position).with(|place| _ = place.write(entry)) };
        // ORDERING: Release (R1): the entry was written before; pairs with A1 in Flight::count.
        self.flight.tail.0.store(position.wrapping_add(1), Ordering::Release);
    }

    /// Entries that are in flight: posted, and not seen to have ended.
    pub(crate) fn in_flight(&self) -> u32 {
        // ORDERING: Relaxed: a count, and nothing is done with the places.
        let head = self.flight.head.0.load(Ordering::Relaxed);
        u32::try_from(self.tail().wrapping_sub(head)).unwrap_or(u32::MAX)
    }

    /// How many can be in flight.
    pub(crate) fn depth(&self) -> u32 {
        u32::try_from(self.depth).unwrap_or(u32::MAX)
    }

    /// The position of the next entry.
    #[inline(always)]
    pub(crate) fn position(&self) -> u64 {
        self.tail().wrapping_add(self.written)
    }

    /// The position of the next entry to be published.
    #[inline(always)]
    fn tail(&self) -> u64 {
        // ORDERING: Relaxed: only this side writes it.
        self.flight.tail.0.load(Ordering::Relaxed)
    }

    /// What a request at a position has for its `wr_id`.
    #[inline(always)]
    pub(crate) fn wr_id(&self, position: u64) -> u64 {
        self.numbers | position & 0xffff_ffff
    }

    /// Writes the next entry, which nobody sees before it is published. `has_room` has said yes since the last one.
    ///
    /// # Safety
    ///
    /// There is room.
    #[inline(always)]
    pub(crate) unsafe fn write(&mut self, entry: Entry<B, O>) {
        // SAFETY: places outside of `head..tail` belong to this side; this one is, since there is room.
        unsafe { self.flight.entry(self.position()).with(|place| _ = place.write(entry)) };
        self.written += 1;
    }

    /// Shows what was written to the polling side. The request goes to the device afterwards.
    #[inline(always)]
    pub(crate) fn publish(&mut self) {
        let tail = self.position();
        self.written = 0;
        // ORDERING: Release (R1): the entries were written before; pairs with A1 in Flight::count.
        self.flight.tail.0.store(tail, Ordering::Release);
    }

    /// Takes back the newest entry, written or published, which the device has not taken.
    ///
    /// # Safety
    ///
    /// There is one, and the device has no request for it, so that the polling side never asks for it.
    pub(crate) unsafe fn take_back(&mut self) -> Entry<B, O> {
        if self.written > 0 {
            self.written -= 1;
        } else {
            let tail = self.tail().wrapping_sub(1);
            // ORDERING: Release (R1): who reads this tail takes the entries below it, which were written before, and a
            // plain store ends what an earlier one published; pairs with A1 in Flight::count.
            self.flight.tail.0.store(tail, Ordering::Release);
        }
        // SAFETY: it lies outside of `head..tail` now, the polling side never touched it, and it was written.
        unsafe { self.flight.take_out(self.position()) }
    }

    /// The positions that have not been seen to end, from the oldest on.
    pub(crate) fn positions(&self) -> Range<u64> {
        // ORDERING: Relaxed: positions only, and nothing is done with the places.
        self.flight.head.0.load(Ordering::Relaxed)..self.tail()
    }

    /// Goes on with another flight, of the same depth; what is in this one is left to the polling side.
    ///
    /// # Safety
    ///
    /// There is no other poster of `flight`, nothing is written that is not published, and the device has none of what
    /// is in the old one.
    pub(crate) unsafe fn renew(&mut self, flight: Arc<Flight<B, O>>) {
        self.leave();
        // SAFETY: the caller's promise.
        *self = unsafe { Self::new(flight, self.depth()) };
    }

    /// Says that the queue is destroyed: the polling side may take everything.
    pub(crate) fn leave(&self) {
        // ORDERING: Release (R3): the last post came before; pairs with A3 in Flight::is_left.
        self.flight.left.store(1, Ordering::Release);
    }
}
