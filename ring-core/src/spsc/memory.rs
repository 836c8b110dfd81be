//! The ring's words in the region.
//!
//! # Safety
//!
//! A [`Memory`] is made only for a region whose length was checked against the ring's, and the handle that has
//! the `Memory` keeps the region. Depth and slot size are private copies, so every address formed here lies in
//! the region whatever a peer writes. References are made to atomics only.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::layout::Layout;
use crate::header::{Guard, Shape};
use crate::liveness::OwnerWord;
use crate::region::check_room;
use crate::sync::{self, Access, AtomicU64, Ordering, Tracker};
use crate::{Error, Liveness, Message, Region, Role};

/// The lines before the slots. Each has one writer; hot and cold words are 128 bytes apart.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    guard: Guard,
    /// Written by the producer, seldom.
    pub(super) producer: ProducerLine,
    /// Written by the consumer while messages flow.
    pub(super) credit: CreditLine,
    /// Written by the consumer, seldom.
    pub(super) consumer: ConsumerLine,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct ProducerLine {
    pub(super) owner: OwnerWord,
    /// 1 once the producer has closed the ring.
    pub(super) closed: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct CreditLine {
    /// Positions below it are free to be written again, a lap later.
    pub(super) credit: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct ConsumerLine {
    pub(super) owner: OwnerWord,
}

impl Header {
    fn new() -> Self {
        Self {
            guard: Guard::new(),
            producer: ProducerLine { owner: OwnerWord::new(), closed: AtomicU64::new(0) },
            credit: CreditLine { credit: AtomicU64::new(0) },
            consumer: ConsumerLine { owner: OwnerWord::new() },
        }
    }

    pub(super) fn owner(&self, role: Role) -> &OwnerWord {
        match role {
            Role::Producer => &self.producer.owner,
            Role::Consumer => &self.consumer.owner,
            Role::Participant(_) => unreachable!("the roles of this ring are two"),
        }
    }
}

/// The last bytes of a slot.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SlotEnd {
    sequence: AtomicU64,
    tracker: Tracker,
}

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
        check_room(region, layout.bytes())?;
        // SAFETY: the region is that long, and aligned and initialised by its contract.
        let header = unsafe { sync::place(region.base().cast::<Header>(), Header::new) };
        let roles = Self::seize(header, liveness)?;

        let memory = Self::over(region, layout);
        // ORDERING: Relaxed: the magic word publishes the ring (R4).
        header.producer.closed.store(0, Ordering::Relaxed);
        // ORDERING: Relaxed: as above.
        header.credit.credit.store(layout.start, Ordering::Relaxed);
        for position in (0..layout.slots.depth).map(|offset| layout.start.wrapping_add(offset)) {
            // SAFETY: the address lies in the region, aligned to 8 as slots and slot sizes are.
            let end = unsafe { sync::place(memory.slot(position).end, SlotEnd::new) };
            // ORDERING: Relaxed: as above.
            end.sequence.store(memory.lap_before(position), Ordering::Relaxed);
        }
        header.guard.describe(&layout.shape());
        header.guard.publish();
        if let Some((producer, consumer)) = roles {
            header.producer.owner.release(producer);
            header.consumer.owner.release(consumer);
        }
        Ok(())
    }

    /// Makes sure that nobody uses the region and that nobody can begin to. Of a ring that is there it takes both
    /// roles, which are to be released once it is made anew.
    fn seize(header: &Header, liveness: &impl Liveness) -> Result<Option<(u64, u64)>, Error> {
        let (producer, consumer) = (&header.producer.owner, &header.consumer.owner);
        if header.guard.begin()? {
            producer.reset();
            consumer.reset();
            return Ok(None);
        }
        // Where the owner words lie depends on the kind, which stays what it is as long as there is a ring.
        header.guard.check_kind(super::KIND)?;
        let as_producer = producer.claim(Role::Producer, liveness)?;
        match consumer.claim(Role::Consumer, liveness) {
            Ok(as_consumer) => {
                header.guard.begin_anew();
                Ok(Some((as_producer, as_consumer)))
            }
            Err(error) => {
                producer.release(as_producer);
                Err(error)
            }
        }
    }

    /// Compares the guards in the region with this type.
    pub(super) fn check(region: &impl Region) -> Result<Shape, Error> {
        Self::header_in(region)?.guard.check(super::KIND, size_of::<T>(), align_of::<T>())
    }

    /// Attaches to the ring in the region and takes a role. The word says that the caller owns it.
    pub(super) fn attach(
        region: &impl Region,
        role: Role,
        liveness: &impl Liveness,
    ) -> Result<(Self, u64), Error> {
        let header = Self::header_in(region)?;
        header.guard.check_ready(super::KIND)?;
        let owner = header.owner(role).claim(role, liveness)?;
        // Only now that it has a role can nobody make the ring anew, in another shape.
        match Layout::<T>::read(region) {
            Ok(layout) => Ok((Self::over(region, &layout), owner)),
            Err(error) => {
                header.owner(role).release(owner);
                Err(error)
            }
        }
    }

    fn header_in<R: Region>(region: &R) -> Result<&Header, Error> {
        check_room(region, size_of::<Header>())?;
        // SAFETY: the region is that long, and aligned and initialised by its contract; a header is atomics.
        Ok(unsafe { region.base().cast::<Header>().as_ref() })
    }

    /// The addresses for a region that is known to be long enough.
    fn over(region: &impl Region, layout: &Layout<T>) -> Self {
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

    /// Whether the slots do not fit a first-level cache: what helps a stream then hurts in a smaller ring.
    pub(super) fn is_deep(&self) -> bool {
        self.depth() * self.slot_bytes as u64 >= 32 * 1024
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
    ///
    /// In `from .. from + depth` the published positions come first, so a binary search finds their end.
    pub(super) fn published_from(&self, from: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.depth());
        while low < high {
            let middle = low + (high - low) / 2;
            let position = from.wrapping_add(middle);
            // ORDERING: Acquire (A1): with this word all before it, so that what is counted can be popped; pairs with
            // R1 in Producer::publish.
            match self.slot(position).sequence().load(Ordering::Acquire) {
                word if word == position => low = middle + 1,
                word if word == self.lap_before(position) => high = middle,
                _ => return Err(Error::Corrupted),
            }
        }
        Ok(low)
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
        // SAFETY: the slot lies in the region and holds a `T`; words are accessed as atomics.
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

    const_assert_eq!(offset_of!(Header, guard), 0);
    const_assert_eq!(offset_of!(Header, producer), 128);
    const_assert_eq!(offset_of!(ProducerLine, owner), 0);
    const_assert_eq!(offset_of!(ProducerLine, closed), 8);
    const_assert_eq!(offset_of!(Header, credit), 256);
    const_assert_eq!(offset_of!(CreditLine, credit), 0);
    const_assert_eq!(offset_of!(Header, consumer), 384);
    const_assert_eq!(offset_of!(ConsumerLine, owner), 0);
    const_assert_eq!(size_of::<Header>(), 512);
    const_assert_eq!(size_of::<SlotEnd>(), 8);
    const_assert_eq!(offset_of!(SlotEnd, sequence), 0);
};
