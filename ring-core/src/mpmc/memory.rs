//! The ring's words in the region.
//!
//! # Safety
//!
//! A [`Memory`] is made only for a region whose length was checked against the ring's, and the handle that has
//! the `Memory` keeps the region. Depth, slot size and participants are private copies, so every address formed here
//! lies in the region whatever a peer writes. References are made to atomics only. A slot is written only by the
//! participant whose claim its word holds.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::header::{Entry, Header, table_bytes};
use super::layout::{Layout, UnfinishedPops};
use super::word::{Laps, State};
use crate::header::Shape;
use crate::region::{check_room, start_of};
use crate::sync::{self, Access, AtomicU64, Ordering, Tracker};
use crate::{Error, Liveness, Message, Region, Role};

/// The last bytes of a slot.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SlotEnd {
    word: AtomicU64,
    tracker: Tracker,
}

impl SlotEnd {
    fn new() -> Self {
        Self { word: AtomicU64::new(0), tracker: Tracker::new() }
    }
}

/// Addresses and private copies of the shape. The handle that has it keeps the region.
#[derive(Debug)]
pub(super) struct Memory<T> {
    header: NonNull<Header>,
    slots: NonNull<u8>,
    mask: u64,
    slot_bytes: usize,
    is_deep: bool,
    laps: Laps,
    participants: u16,
    unfinished: UnfinishedPops,
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
        let is_first = header.guard.begin()?;
        if !is_first {
            // Where the table lies depends on the kind, which stays what it is as long as there is a ring.
            header.guard.check_kind(super::KIND)?;
            // So do the participants: an owner word that became a slot could be claimed by who comes late.
            let found = header.participants()?;
            if found != layout.participants {
                return Err(Error::WrongParticipants { found: found.into() });
            }
        }
        let memory = Self::over(region, layout);
        for id in 1..=layout.participants {
            // SAFETY: the region holds the table, aligned to 8.
            let entry = unsafe { sync::place(memory.entry_address(id), Entry::new) };
            if is_first {
                entry.reset();
            }
        }
        if !is_first {
            memory.seize(region, liveness)?;
            header.guard.begin_anew();
        }
        header.set(layout.participants, layout.unfinished, layout.start);
        for position in (0..layout.slots.depth).map(|offset| layout.start.wrapping_add(offset)) {
            // SAFETY: the address lies in the region, aligned to 8 as slots and slot sizes are.
            let end = unsafe { sync::place(memory.slot(position).end, SlotEnd::new) };
            // ORDERING: Relaxed: the magic word publishes the ring (R4).
            end.word.store(memory.word(position, State::Free), Ordering::Relaxed);
        }
        header.guard.describe(&layout.shape());
        header.guard.publish();
        if !is_first {
            memory.leave(layout.participants);
        }
        Ok(())
    }

    /// Takes every role of a ring that is there: nobody uses it, and nobody can begin to.
    fn seize(&self, region: &impl Region, liveness: &impl Liveness) -> Result<(), Error> {
        for id in 1..=self.participants {
            if let Err(error) = self.entry(id).owner.claim(Role::Participant(id), region, liveness) {
                self.leave(id - 1);
                return Err(error);
            }
        }
        for id in 1..=self.participants {
            // ORDERING: Relaxed: the owner words that the maker releases publish it (R5).
            self.entry(id).keeper.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the roles up to `last` back, which `seize` took.
    fn leave(&self, last: u16) {
        for id in 1..=last {
            let owner = &self.entry(id).owner;
            owner.release(owner.state().word());
        }
    }

    /// Compares the guards in the region with this type.
    pub(super) fn check(region: &impl Region) -> Result<Shape, Error> {
        Self::header_in(region)?.guard.check(super::KIND, size_of::<T>(), align_of::<T>())
    }

    /// What this kind of ring has beyond a shape.
    pub(super) fn options(region: &impl Region) -> Result<(u16, UnfinishedPops), Error> {
        let header = Self::header_in(region)?;
        // ORDERING: Relaxed: the magic word was read before, which brought it.
        let unfinished = match header.state.unfinished.load(Ordering::Relaxed) {
            0 => UnfinishedPops::Redeliver,
            1 => UnfinishedPops::Skip,
            _ => return Err(Error::Corrupted),
        };
        Ok((header.participants()?, unfinished))
    }

    /// The number of participants of the ring in the region, before a role in it was taken.
    pub(super) fn participants_in(region: &impl Region) -> Result<u16, Error> {
        let header = Self::header_in(region)?;
        header.guard.check_ready(super::KIND)?;
        let participants = header.participants()?;
        check_room(region, size_of::<Header>() + table_bytes(participants))?;
        Ok(participants)
    }

    /// Attaches to the ring in the region and takes a role. The word says that the caller owns it.
    pub(super) fn attach(
        region: &impl Region,
        id: u16,
        liveness: &impl Liveness,
    ) -> Result<(Self, u64), Error> {
        let participants = Self::participants_in(region)?;
        if id == 0 || id > participants {
            return Err(Error::NoSuchParticipant { id, participants });
        }
        // SAFETY: the region holds the table, which has that many entries.
        let entry = unsafe { Self::table(region.base().cast()).add(usize::from(id) - 1) };
        // SAFETY: as above; an entry is atomics.
        let entry = unsafe { entry.as_ref() };
        let owner = entry.owner.claim(Role::Participant(id), region, liveness)?;
        // Only now that it has a role can nobody make the ring anew, in another shape.
        match Layout::<T>::read(region) {
            Ok(layout) if id <= layout.participants => Ok((Self::over(region, &layout), owner)),
            other => {
                entry.owner.release(owner);
                Err(other.err().unwrap_or(Error::Corrupted))
            }
        }
    }

    fn header_in<R: Region>(region: &R) -> Result<&Header, Error> {
        // SAFETY: a header is atomics.
        unsafe { start_of(region) }
    }

    /// The addresses for a region that is known to be long enough.
    pub(super) fn over(region: &impl Region, layout: &Layout<T>) -> Self {
        // SAFETY: the region holds what comes before the slots, and the slots.
        let slots = unsafe { region.base().add(layout.slots_offset()) };
        Self {
            header: region.base().cast(),
            slots,
            mask: layout.slots.depth - 1,
            slot_bytes: layout.slots.slot_bytes,
            is_deep: layout.slots.is_deep(),
            laps: Laps::new(layout.slots.depth),
            participants: layout.participants,
            unfinished: layout.unfinished,
            marker: PhantomData,
        }
    }

    /// Where the region begins.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.header.cast()
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lies in the region; it consists of atomics.
        unsafe { self.header.as_ref() }
    }

    fn table(header: NonNull<Header>) -> NonNull<Entry> {
        // SAFETY: the table lies behind the header, in a region that holds both.
        unsafe { header.add(1) }.cast()
    }

    fn entry_address(&self, id: u16) -> NonNull<Entry> {
        assert!(1 <= id && id <= self.participants);
        // SAFETY: the number was checked just now.
        unsafe { Self::table(self.header).add(usize::from(id) - 1) }
    }

    /// The words of a participant.
    ///
    /// # Panics
    ///
    /// For a number beyond the participants.
    pub(super) fn entry(&self, id: u16) -> &Entry {
        // SAFETY: the entry lies in the region; it consists of atomics.
        unsafe { self.entry_address(id).as_ref() }
    }

    pub(super) fn participants(&self) -> u16 {
        self.participants
    }

    pub(super) fn unfinished(&self) -> UnfinishedPops {
        self.unfinished
    }

    #[inline(always)]
    pub(super) fn depth(&self) -> u64 {
        self.mask + 1
    }

    pub(super) fn laps(&self) -> Laps {
        self.laps
    }

    /// The word of the slot of `position` in `state`.
    #[inline(always)]
    pub(super) fn word(&self, position: u64, state: State) -> u64 {
        self.laps.word(position, state)
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

    /// Starts to bring the slot of a position near, which is claimed soon. `xtask bench --suite stream` is the judge of
    /// the distance.
    ///
    /// In a ring that fits the first-level cache it brings nothing, and takes lines from those who work there.
    #[inline(always)]
    pub(super) fn prefetch(&self, position: u64) {
        if self.is_deep {
            self.slot(position).prefetch();
        }
    }

    /// What a slot is in that holds `word`.
    pub(super) fn state(&self, word: u64) -> State {
        match State::of(word) {
            State::Writing(id) | State::Reading(id) if id > self.participants => State::Odd,
            state => state,
        }
    }

    /// Whether a word really is in a slot where it cannot be, or what is there instead.
    ///
    /// What a load returns may be older than the position that led to the slot. An exchange sees the last word.
    pub(super) fn confirm(slot: &Slot<T>, word: u64) -> Result<(), u64> {
        // ORDERING: Relaxed: nothing changes hands.
        // ORDERING: Relaxed on failure: as above.
        slot.word().compare_exchange(word, word, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    /// How many slots carry a message that waits.
    pub(super) fn count(&self) -> u64 {
        let is_full = |index: &u64| {
            // ORDERING: Relaxed: a number for the caller.
            let word = self.slot(*index).word().load(Ordering::Relaxed);
            State::of(word) == State::Full
        };
        (0..self.depth()).filter(is_full).count() as u64
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
    pub(super) fn word(&self) -> &AtomicU64 {
        &self.end().word
    }

    /// Address of the message.
    #[inline(always)]
    pub(super) fn message(&self) -> NonNull<T> {
        self.message
    }

    /// Copies a message in. The slot must be claimed.
    #[inline(always)]
    pub(super) fn write(&self, value: &T) {
        // SAFETY: the slot lies in the region and holds a `T`, and its word holds the caller's claim.
        unsafe { sync::write(self.message.cast(), &self.end().tracker, value) }
    }

    /// Copies the message out. The slot must be claimed.
    #[inline(always)]
    pub(super) fn read(&self) -> T {
        // SAFETY: the slot lies in the region and holds a `T`; words are accessed as atomics.
        unsafe { sync::read(self.message.cast(), &self.end().tracker) }
    }

    /// Starts to bring the slot near, to be claimed.
    #[inline(always)]
    fn prefetch(&self) {
        sync::prefetch_write(self.end);
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

#[cfg(not(loom))]
const _: () = {
    use memoffset::offset_of;
    use static_assertions::const_assert_eq;

    const_assert_eq!(size_of::<SlotEnd>(), 8);
    const_assert_eq!(offset_of!(SlotEnd, word), 0);
};
