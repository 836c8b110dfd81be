//! The ring's words in the region.
//!
//! # Safety
//!
//! A [`Memory`] is made only for a region whose length was checked against the ring's, and the handle that has
//! the `Memory` keeps the region. Depth and slot size are private copies, so every address formed here lies in
//! the region whatever a peer writes. References are made to atomics only. A slot is written by the producer alone, and
//! only between the tail and the limit, where no consumer looks.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::layout::Layout;
use crate::header::Shape;
use crate::pair::Header;
use crate::slots::SlotShape;
use crate::sync::{self, Access, AtomicU64, Ordering, Tracker};
use crate::{Error, Liveness, Message, Region, Role};

/// The last bytes of a slot.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SlotEnd {
    sequence: AtomicU64,
    tracker: Tracker,
}

/// A distance between positions that leads forward is at most this; a longer one leads back.
const LAST_AHEAD: u64 = u64::MAX / 2;

/// Addresses and private copies of the shape. The handle that has it keeps the region.
#[derive(Debug)]
pub(super) struct Memory<T> {
    header: NonNull<Header>,
    slots: NonNull<u8>,
    mask: u64,
    slot_bytes: usize,
    marker: PhantomData<fn(T)>,
}

// SAFETY: the pointers are into the region, which the handle keeps and sends along. A `T` crosses threads as bytes,
// from which any thread could make one in safe code, so it need not be `Send`.
unsafe impl<T> Send for Memory<T> {}

impl<T: Message> Memory<T> {
    /// Makes an empty ring.
    pub(super) fn create(
        region: &impl Region,
        layout: &Layout<T>,
        liveness: &impl Liveness,
    ) -> Result<(), Error> {
        let Layout { slots, start, .. } = *layout;
        Header::create(region, layout.bytes(), &layout.shape(), start, liveness, || {
            let memory = Self::over(region, layout);
            for position in (0..slots.depth).map(|offset| start.wrapping_add(offset)) {
                // SAFETY: the address lies in the region, aligned to 8 as slots and slot sizes are.
                let end = unsafe { sync::place(memory.slot(position).end, SlotEnd::new) };
                // ORDERING: Relaxed: the magic word publishes the ring (R4).
                end.sequence.store(memory.lap_before(position), Ordering::Relaxed);
            }
        })
    }

    /// Compares the guards in the region with this type.
    pub(super) fn check(region: &impl Region) -> Result<Shape, Error> {
        Header::check(region, super::KIND, size_of::<T>(), align_of::<T>())
    }

    /// Attaches to the ring in the region and takes a role. The word says that the caller owns it.
    pub(super) fn attach(
        region: &impl Region,
        role: Role,
        liveness: &impl Liveness,
    ) -> Result<(Self, u64), Error> {
        let read = || Layout::<T>::read(region);
        let (layout, owner) = Header::attach(region, super::KIND, role, liveness, read)?;
        Ok((Self::over(region, &layout), owner))
    }

    /// The addresses for a region that is known to be long enough.
    pub(super) fn over(region: &impl Region, layout: &Layout<T>) -> Self {
        let header = region.base().cast::<Header>();
        // SAFETY: the region holds the header and the slots.
        let slots = unsafe { header.add(1) }.cast();
        Self {
            header,
            slots,
            mask: layout.slots.depth - 1,
            slot_bytes: layout.slots.slot_bytes,
            marker: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lies in the region; it consists of atomics.
        unsafe { self.header.as_ref() }
    }

    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        self.mask + 1
    }

    /// As [`SlotShape::is_deep`].
    pub(super) fn is_deep(&self) -> bool {
        SlotShape { depth: self.depth(), slot_bytes: self.slot_bytes }.is_deep()
    }

    /// What the sequence word of `position` holds until it is published.
    #[inline(always)]
    pub(super) fn lap_before(&self, position: u64) -> u64 {
        position.wrapping_sub(self.depth())
    }

    /// The slot of `position`.
    #[inline(always)]
    pub(super) fn slot(&self, position: u64) -> Slot<T> {
        #[expect(clippy::cast_possible_truncation, reason = "the mask is below 2^31")]
        let index = (position & self.mask) as usize;
        // SAFETY: the index is below the depth, so the slot lies in the region.
        let message = unsafe { self.slots.add(index * self.slot_bytes) };
        // SAFETY: a slot has room for its end, behind the message.
        let end = unsafe { message.add(self.slot_bytes - size_of::<SlotEnd>()) };
        Slot { position, message: message.cast(), end: end.cast() }
    }

    /// Number of published messages from `from` on, where nobody overwrites them meanwhile.
    pub(super) fn published_from(&self, from: u64) -> Result<u64, Error> {
        let published = self.find_tail(from)?.wrapping_sub(from);
        if published > self.depth() { Err(Error::Corrupted) } else { Ok(published) }
    }

    /// The tail, from a position `from` that was credited, and may be credited no longer. Looks at log2(depth) slots or
    /// one more.
    ///
    /// In `from .. from + depth` the published positions come first, so a binary search finds their end. When both sides
    /// go on meanwhile, the word of a later position can be there. Nobody could publish it before a position behind
    /// `from` was credited, so the tail has reached it since.
    pub(super) fn find_tail(&self, from: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.depth());
        while low < high {
            let middle = low + (high - low) / 2;
            let position = from.wrapping_add(middle);
            // ORDERING: Acquire (A1): with this word all before it, so that what is counted can be popped; pairs with
            // R1 in Producer::publish.
            match self.slot(position).sequence().load(Ordering::Acquire) {
                word if word == position => low = middle + 1,
                word if word == self.lap_before(position) => high = middle,
                word => match word.wrapping_sub(position) {
                    ahead @ 1..=LAST_AHEAD if ahead & self.mask == 0 => return Ok(word.wrapping_add(1)),
                    _ => return Err(Error::Corrupted),
                },
            }
        }
        Ok(from.wrapping_add(low))
    }
}

/// The slot of one position. Used only while the handle that made it keeps the region.
#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) position: u64,
    message: NonNull<T>,
    end: NonNull<SlotEnd>,
}

impl<T: Message> Slot<T> {
    #[inline(always)]
    fn end(&self) -> &SlotEnd {
        // SAFETY: it lies in the region, is aligned, and holds atomics.
        unsafe { self.end.as_ref() }
    }

    /// The word that says what the slot holds.
    #[inline(always)]
    pub(super) fn sequence(&self) -> &AtomicU64 {
        &self.end().sequence
    }

    /// Address of the message.
    #[inline(always)]
    pub(super) fn message(&self) -> NonNull<T> {
        self.message
    }

    /// Copies a message in. The slot must be free.
    #[inline(always)]
    pub(super) fn write(&self, value: &T) {
        // SAFETY: the slot lies in the region and holds a `T`, and it is free, so this side may write it.
        unsafe { sync::write(self.message.cast(), &self.end().tracker, value) }
    }

    /// Copies the message out.
    #[inline(always)]
    pub(super) fn read(&self) -> T {
        // SAFETY: the slot lies in the region and holds a `T`; words are accessed as atomics.
        unsafe { sync::read(self.message.cast(), &self.end().tracker) }
    }

    /// Starts to bring the slot near, to be read.
    #[inline(always)]
    pub(super) fn prefetch_read(&self) {
        sync::prefetch_read(self.message);
    }

    /// Starts to bring the slot near, to be written.
    #[inline(always)]
    pub(super) fn prefetch_write(&self) {
        sync::prefetch_write(self.message);
    }

    /// Tells loom that a grant reads the message for as long as the result lives.
    pub(super) fn reading(&self) -> Access {
        self.end().tracker.reading()
    }

    /// Tells loom that a grant writes the message.
    pub(super) fn writing(&self) -> Access {
        self.end().tracker.writing()
    }
}

impl SlotEnd {
    fn new() -> Self {
        Self { sequence: AtomicU64::new(0), tracker: Tracker::new() }
    }
}

#[cfg(not(loom))]
const _: () = {
    use memoffset::offset_of;
    use static_assertions::const_assert_eq;

    const_assert_eq!(size_of::<SlotEnd>(), 8);
    const_assert_eq!(offset_of!(SlotEnd, sequence), 0);
};
