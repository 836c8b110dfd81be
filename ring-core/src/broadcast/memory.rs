//! The ring's words in the region.
//!
//! # Safety
//!
//! A [`Memory`] is made only for a region whose length was checked against the ring's, and the handle that has
//! the `Memory` keeps the region. Depth and slot size are private copies, so every address formed here lies in
//! the region whatever a peer writes. References are made to atomics only, and messages are copied by atomic
//! accesses.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::layout::Layout;
use super::word::{self, Word, pending};
use crate::header::{Guard, Shape};
use crate::liveness::OwnerWord;
use crate::region::{check_room, start_of};
use crate::sync::{self, AtomicU64, Ordering, Racing};
use crate::{Error, Liveness, Message, Region, Role};

/// The lines before the slots. Only producers write them, and who makes the ring.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    pub(super) guard: Guard,
    /// Read by a consumer that finds nothing, written seldom.
    pub(super) producer: ProducerLine,
    /// Written while messages flow, so nobody polls it.
    pub(super) tail: TailLine,
}

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct ProducerLine {
    pub(super) owner: OwnerWord,
    /// How often the ring was made, shifted; [`MAKING`] while it is being made, [`CLOSED`] once it is closed.
    pub(super) state: AtomicU64,
    /// Position of the first message.
    pub(super) start: AtomicU64,
}

/// In the state word: the producer has closed the ring.
pub(super) const CLOSED: u64 = 1;
/// In the state word: the ring is being made.
const MAKING: u64 = 2;

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct TailLine {
    /// A position that the tail has reached, at most [`Memory::hint_every`] behind it.
    pub(super) hint: AtomicU64,
}

impl Header {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            guard: Guard::new(),
            producer: ProducerLine { owner: OwnerWord::new(), state: zero(), start: zero() },
            tail: TailLine { hint: zero() },
        }
    }

    /// Tells consumers that what they see from now on is not the ring that they have joined. The caller owns the ring.
    pub(super) fn begin_making(&self) {
        let state = &self.producer.state;
        // ORDERING: Relaxed: only who owns the ring writes it, and what the former owner wrote came with the role (A5).
        let making = (state.load(Ordering::Relaxed) | CLOSED | MAKING).wrapping_add(1) | MAKING;
        // ORDERING: Relaxed: the fence below is before all else that a consumer could see of the new ring.
        state.store(making, Ordering::Relaxed);
        // ORDERING: Release (R10): that the ring is being made; pairs with A10 in Memory::join_as.
        sync::fence(Ordering::Release);
    }

    /// Gives the state of a ring that is open to what was made since `begin_making`.
    pub(super) fn end_making(&self) {
        let state = &self.producer.state;
        // ORDERING: Relaxed: this side wrote it.
        let making = state.load(Ordering::Relaxed);
        // ORDERING: Release (R9): the ring as it is now; pairs with A9 in Memory::join_as.
        state.store(making & !(MAKING | CLOSED), Ordering::Release);
    }
}

/// The last bytes of a slot.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SlotEnd {
    word: AtomicU64,
    payload: Racing,
}

impl SlotEnd {
    fn new() -> Self {
        Self { word: AtomicU64::new(0), payload: Racing::new() }
    }
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
        let role = Self::seize(header, region, liveness)?;

        header.begin_making();
        Self::over(region, layout).empty(layout.start);
        header.guard.describe(&layout.shape());
        header.end_making();
        header.guard.publish();
        if let Some(owner) = role {
            header.producer.owner.release(owner);
        }
        Ok(())
    }

    /// Writes the words of a ring without a message.
    pub(super) fn empty(&self, start: u64) {
        let header = self.header();
        // ORDERING: Relaxed: the state word (R9) and the magic word (R4) publish the ring.
        header.producer.start.store(start, Ordering::Relaxed);
        // ORDERING: Relaxed: as above.
        header.tail.hint.store(start, Ordering::Relaxed);
        for position in (0..self.depth()).map(|offset| start.wrapping_add(offset)) {
            // SAFETY: the address lies in the region, aligned to 8 as slots and slot sizes are.
            let end = unsafe { sync::place(self.slot(position).end, SlotEnd::new) };
            // ORDERING: Relaxed: as above.
            end.word.store(pending(position), Ordering::Relaxed);
        }
    }

    /// Makes sure that nobody writes to the region and that nobody can begin to. Of a ring that is there it takes the
    /// producer's role, which is to be released once it is made anew.
    fn seize(header: &Header, region: &impl Region, liveness: &impl Liveness) -> Result<Option<u64>, Error> {
        let owner = &header.producer.owner;
        if header.guard.begin()? {
            owner.reset();
            return Ok(None);
        }
        // Where the owner word lies depends on the kind, which stays what it is as long as there is a ring.
        header.guard.check_kind(super::KIND)?;
        let mine = owner.claim(Role::Producer, region, liveness)?;
        header.guard.begin_anew();
        Ok(Some(mine))
    }

    /// Compares the guards in the region with this type.
    pub(super) fn check(region: &impl Region) -> Result<Shape, Error> {
        Self::header_in(region)?.guard.check(super::KIND, size_of::<T>(), align_of::<T>())
    }

    /// Attaches to the ring in the region and takes the producer's role. The word says that the caller owns it.
    pub(super) fn attach(region: &impl Region, liveness: &impl Liveness) -> Result<(Self, u64), Error> {
        let header = Self::header_in(region)?;
        header.guard.check_ready(super::KIND)?;
        let owner = header.producer.owner.claim(Role::Producer, region, liveness)?;
        // Only now that it has the role can nobody make the ring anew, in another shape.
        match Layout::<T>::read(region) {
            Ok(layout) => Ok((Self::over(region, &layout), owner)),
            Err(error) => {
                header.producer.owner.release(owner);
                Err(error)
            }
        }
    }

    /// Looks at the ring in the region without a role, and writes nothing: returns it with its state, first position
    /// and tail.
    pub(super) fn join(region: &impl Region) -> Result<(Self, Joined), Error> {
        Self::join_as(region, || Layout::<T>::read(region))
    }

    /// As `join`, with `read` to look at the layout.
    pub(super) fn join_as(
        region: &impl Region,
        read: impl FnOnce() -> Result<Layout<T>, Error>,
    ) -> Result<(Self, Joined), Error> {
        let header = Self::header_in(region)?;
        header.guard.check_ready(super::KIND)?;
        let state = &header.producer.state;
        // ORDERING: Acquire (A9): the ring that this state is of; pairs with R9 in Header::end_making.
        let before = state.load(Ordering::Acquire);
        let found = read().and_then(|layout| {
            let memory = Self::over(region, &layout);
            let tail = memory.find_tail(memory.hint())?;
            // ORDERING: Relaxed: the state word was read before (A9).
            let start = header.producer.start.load(Ordering::Relaxed);
            Ok((memory, Joined { state: before & !CLOSED, start, tail }))
        });
        // ORDERING: Acquire (A10): that the ring is being made anew, if a word read above is of the new one; pairs
        // with R10 in Header::begin_making.
        sync::fence(Ordering::Acquire);
        // ORDERING: Relaxed: the fence above (A10) keeps it behind the reads before.
        let after = state.load(Ordering::Relaxed);
        if before & MAKING != 0 || (before ^ after) & !CLOSED != 0 {
            return Err(Error::NotReady);
        }
        found
    }

    fn header_in<R: Region>(region: &R) -> Result<&Header, Error> {
        // SAFETY: a header is atomics.
        unsafe { start_of(region) }
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

    /// The slot of `position`.
    #[inline(always)]
    pub(super) fn slot(&self, position: u64) -> Slot<T> {
        #[expect(clippy::cast_possible_truncation, reason = "the mask is below 2^31")]
        let index = (position & self.mask) as usize;
        // SAFETY: the index is below the depth, so the slot lies in the region.
        let message = unsafe { self.slots.add(index * self.slot_bytes) };
        // SAFETY: a slot has room for its end, behind the message.
        let end = unsafe { message.add(self.slot_bytes - size_of::<SlotEnd>()) };
        Slot { position, depth: self.depth(), message: message.cast(), end: end.cast() }
    }

    /// How many messages there are for one tail hint: the tail is in reach of a search from the hint that ends
    /// before the slots come round again.
    #[inline(always)]
    pub(super) fn hint_every(&self) -> u64 {
        (self.depth() / 2).max(1)
    }

    /// The tail hint.
    pub(super) fn hint(&self) -> u64 {
        // ORDERING: Acquire (A8): the messages below it; pairs with R8 in Producer::leave_hint.
        self.header().tail.hint.load(Ordering::Acquire)
    }

    /// The tail, from a hint. Looks at log2(depth) slots or one more.
    ///
    /// Where a producer is at work, it lies between the tail at the call and the tail at the return. In
    /// `hint .. hint + depth` the published positions come first, so a binary search finds their end. When the producer
    /// runs through all of them meanwhile, the word that shows it is of a position beyond, which the tail has reached and
    /// had not at the call.
    pub(super) fn find_tail(&self, hint: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.depth());
        while low < high {
            let middle = low + (high - low) / 2;
            let position = hint.wrapping_add(middle);
            match self.slot(position).compare() {
                Word::Published => low = middle + 1,
                Word::Pending => high = middle,
                Word::Later { at, is_published } => return Ok(at.wrapping_add(is_published.into())),
                Word::Impossible => return Err(Error::Corrupted),
            }
        }
        Ok(hint.wrapping_add(low))
    }
}

/// What a consumer learns when it joins.
#[derive(Debug)]
pub(super) struct Joined {
    /// The state word of a ring that is open.
    pub(super) state: u64,
    pub(super) start: u64,
    pub(super) tail: u64,
}

/// The slot of one position. Used only while the handle that made it keeps the region.
#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) position: u64,
    depth: u64,
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
    pub(super) fn word(&self) -> &AtomicU64 {
        &self.end().word
    }

    /// The word, and with it what it speaks of.
    #[inline(always)]
    pub(super) fn look(&self) -> u64 {
        // ORDERING: Acquire (A1, A7): the message in the slot if the word is even, in any case those before; pairs
        // with R1 in Producer::publish and R7 in Producer::begin.
        self.word().load(Ordering::Acquire)
    }

    /// What the word says to whoever is at the slot's position.
    pub(super) fn compare(&self) -> Word {
        Word::at(self.position, self.look(), self.depth)
    }

    /// Whether `word`, which was in the slot, says that its message is not there yet.
    #[inline(always)]
    pub(super) fn is_pending(&self, word: u64) -> bool {
        word::is_pending(self.position, word, self.depth)
    }

    /// Address of the message.
    #[inline(always)]
    pub(super) fn message(&self) -> NonNull<T> {
        self.message
    }

    /// Copies a message in.
    #[inline(always)]
    pub(super) fn write(&self, value: &T) {
        // SAFETY: the slot lies in the region and holds a `T`; words are accessed as atomics.
        unsafe { sync::write_racing(self.message.cast(), &self.end().payload, value) }
    }

    /// Copies a message out, or parts of several: the word tells, afterwards.
    #[inline(always)]
    pub(super) fn read(&self) -> T {
        // SAFETY: the slot lies in the region and holds a `T`; words are accessed as atomics.
        unsafe { sync::read_racing(self.message.cast(), &self.end().payload) }
    }
}

#[cfg(not(loom))]
const _: () = {
    use memoffset::offset_of;
    use static_assertions::const_assert_eq;

    const_assert_eq!(offset_of!(Header, guard), 0);
    const_assert_eq!(offset_of!(Header, producer), 128);
    const_assert_eq!(offset_of!(ProducerLine, owner), 0);
    const_assert_eq!(offset_of!(ProducerLine, state), 8);
    const_assert_eq!(offset_of!(ProducerLine, start), 16);
    const_assert_eq!(offset_of!(Header, tail), 256);
    const_assert_eq!(offset_of!(TailLine, hint), 0);
    const_assert_eq!(size_of::<Header>(), 384);
    const_assert_eq!(size_of::<SlotEnd>(), 8);
    const_assert_eq!(offset_of!(SlotEnd, word), 0);
};
