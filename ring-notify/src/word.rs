//! The word by which those who wait for the same thing, and those who wake them, agree.
//!
//! There is one for those who wait for messages and one for those who wait for room, in the ring's header. Its lower
//! half is the epoch, on which the kernel lets threads sleep; the upper half says who sleeps, and how.
//!
//! | whoever waits | whoever wakes |
//! |---|---|
//! | says that it is about to sleep, and reads the epoch, in one exchange | publishes |
//! | heavy barrier | light barrier |
//! | looks at the ring once more | looks at the word |
//! | sleeps while the epoch is that one | if somebody sleeps: takes that back and raises the epoch, in one exchange; wakes all |
//!
//! Either the second look of the one finds what the other has published, or the look of the other finds that the one is
//! about to sleep: that is what the barriers are for, and no other ordering is needed. Because the epoch is raised in
//! the step that takes the notice back, whoever is between its notice and its sleep does not fall asleep, and of
//! several who sleep none is forgotten. A waker that is killed between its exchange and the wake leaves them asleep:
//! whoever attaches raises and wakes in any case, and sleepers look again by themselves after a while.
//!
//! Whatever a word holds when a ring is made, or a hostile peer writes to it, costs a needless wake-up or a lost one.

use ring_core::sync::{AtomicU64, Ordering};

/// The half that the kernel compares.
const EPOCH: u64 = u32::MAX as u64;
/// Somebody sleeps on the epoch.
const ON_FUTEX: u64 = 1 << 32;
/// Somebody sleeps until the event is signalled.
const ON_EVENT: u64 = 1 << 33;
/// Stays: somebody who sleeps cannot have fences issued in other processes, so whoever wakes issues its own.
pub(crate) const FENCE: u64 = 1 << 34;
/// Stays: somebody who wakes issues no fences, and may not have seen [`FENCE`] yet.
pub(crate) const LIGHT: u64 = 1 << 35;
/// The last wake came from the CPU on which somebody had gone to sleep.
const NEIGHBOUR: u64 = 1 << 36;
/// The CPU on which somebody went to sleep last.
const CPU_SHIFT: u32 = 48;
const CPU: u64 = u64::MAX << CPU_SHIFT;

/// Somebody sleeps.
pub(crate) const ASLEEP: u64 = ON_FUTEX | ON_EVENT;
/// Somebody sleeps whom a handle can wake that knows of no event.
pub(crate) const ASLEEP_ON_FUTEX: u64 = ON_FUTEX;

/// What to sleep on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bed {
    Futex,
    Event,
}

/// Whom to wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asleep(u64);

impl Asleep {
    pub(crate) const ALL: Self = Self(ASLEEP);

    pub(crate) fn is_in(self, bed: Bed) -> bool {
        self.0 & flag(bed) != 0
    }
}

/// Whose events whoever wakes knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    /// Of all who may sleep.
    OfAll,
    /// Perhaps of some only, or of none.
    OfSome,
}

fn flag(bed: Bed) -> u64 {
    match bed {
        Bed::Futex => ON_FUTEX,
        Bed::Event => ON_EVENT,
    }
}

/// Changes the word, and returns what it held.
fn update(word: &AtomicU64, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    // ORDERING: Relaxed: the exchange decides.
    let mut found = word.load(Ordering::Relaxed);
    loop {
        let next = change(found)?;
        // ORDERING: Relaxed: the barriers on both sides of it order the word and the ring.
        // ORDERING: Relaxed on failure: another look decides.
        match word.compare_exchange(found, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(found),
            Err(other) => found = other,
        }
    }
}

/// Says that the caller is about to sleep, and returns the epoch to sleep on.
pub(crate) fn announce(word: &AtomicU64, bed: Bed, cpu: u64) -> u32 {
    let kept = EPOCH | ASLEEP | FENCE | LIGHT;
    // Also where somebody else has said so already: of a word that was only looked at nobody knows how old it is.
    let found = update(word, |found| Some(found & kept | flag(bed) | cpu << CPU_SHIFT));
    epoch(found.unwrap_or_default())
}

#[expect(clippy::cast_possible_truncation, reason = "it is the lower half")]
fn epoch(word: u64) -> u32 {
    word as u32
}

/// What the word holds.
#[inline(always)]
pub(crate) fn look(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed: the barrier before it orders it after what was published.
    word.load(Ordering::Relaxed)
}

/// Takes back that somebody sleeps and raises the epoch. Whoever does so wakes whom it tells of. None: nobody sleeps.
///
/// That somebody sleeps on an event stays where whoever wakes may not know all events: others do, and would signal none
/// without that.
pub(crate) fn raise(word: &AtomicU64, cpu: u64, events: Events) -> Option<Asleep> {
    let found = update(word, |found| (found & ASLEEP != 0).then(|| raised(found, cpu, events)))?;
    Some(Asleep(found & ASLEEP))
}

/// The same, whether somebody sleeps or not.
pub(crate) fn raise_anyway(word: &AtomicU64, cpu: u64, events: Events) {
    update(word, |found| Some(raised(found, cpu, events)));
}

fn raised(found: u64, cpu: u64, events: Events) -> u64 {
    let kept = match events {
        Events::OfSome if found & ON_EVENT != 0 => FENCE | LIGHT | ON_EVENT | CPU,
        _ => FENCE | LIGHT,
    };
    // Where nobody sleeps the number is of nobody: zero, in a ring that is new.
    let is_neighbour = found & ASLEEP != 0 && found >> CPU_SHIFT == cpu;
    let neighbour = if is_neighbour { NEIGHBOUR } else { 0 };
    u64::from(epoch(found).wrapping_add(1)) | found & kept | neighbour
}

/// Whether the last wake came from the CPU on which its sleeper had gone to sleep: then to spin only keeps the other
/// side from running.
pub(crate) fn was_neighbour(word: &AtomicU64) -> bool {
    look(word) & NEIGHBOUR != 0
}

/// Sets [`FENCE`] or [`LIGHT`] for good, and returns what the word held.
pub(crate) fn declare(word: &AtomicU64, flag: u64) -> u64 {
    update(word, |found| Some(found | flag)).unwrap_or_default()
}
