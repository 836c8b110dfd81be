//! Completion queues: where requests end.
//!
//! | edge | from | to |
//! |---|---|---|
//! | R1 → A1 | `Departures::say` counts a queue that was left | `Departures::so_far`: it is found to be left |
//!
//! # Safety
//!
//! The library's queue is destroyed after every queue pair that uses it: each holds it by a reference count. One
//! `CompletionQueue` polls each, alone, so it is the polling side of every flight that is registered with it.
#![allow(unsafe_code)]

mod adjust;
mod channel;
mod departures;
mod options;
mod registry;
mod stamped;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr::NonNull;
use core::{fmt, slice};

pub use channel::{Armable, CompletionChannel};
pub use options::{CompletionQueueOptions, Timestamps};
pub(crate) use registry::{Queue, Registry, SHARED, SharedQueue};

use crate::Errno;
use crate::completion::{Completion, PollError};
use crate::context::Open;
use crate::fixed::Fixed;
use crate::flight::Flight;
use crate::lock::Lock;
use crate::queue_pair::Posted;
use crate::sync::AtomicU64;
use crate::sys::{ibv_cq, ibv_wc};
use channel::Channel;
use departures::Departures;

/// Where the requests of some queue pairs end. `B` is what their buffers are.
///
/// One thread polls it; others may post to its queue pairs meanwhile, and drop queue pairs, and make some for its
/// [`target`](Self::target). It
/// has room for every request of every queue pair that uses it, so that it cannot overflow.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// use ring_verbs::{CompletionQueue, CompletionQueueOptions, Slab};
///
/// let mut queue: CompletionQueue<Slab> = CompletionQueueOptions::new(64).build(&context)?;
/// while let Some(completion) = queue.poll()? {
///     match completion.result() {
///         Ok(()) => println!("{:?} of queue pair {}", completion.opcode(), completion.queue_pair()),
///         Err(failure) => eprintln!("{failure}"),
///     }
/// }
/// # Ok::<(), ring_verbs::Error>(())
/// ```
pub struct CompletionQueue<B> {
    shared: CompletionTarget<B>,
    /// A copy: a poll follows one pointer less.
    raw: *mut ibv_cq,
    /// What the registry held when it was last looked at, by the lower bits of a key. Their number is a power of two, and a
    /// queue of nobody fills the places between.
    queues: Vec<Queue<B>>,
    /// Their number less one.
    mask: u32,
    shared_queues: Vec<SharedQueue<B>>,
    /// Room for what is taken out of the library's queue.
    polled: Fixed<ibv_wc>,
    /// How many there is room for.
    batch: i32,
    /// Whether they are stamped, by what clock, and the stamps.
    is_stamped: bool,
    clock: Timestamps,
    stamps: Box<[u64]>,
    /// In `polled`: taken out, and not yet given to the caller, are so many from here on.
    next: *const ibv_wc,
    taken: u32,
    /// What an unusual poll has found, for a moment.
    given: Option<Completion<B>>,
    /// Queues that were left so far, when everything of them was given to the caller.
    reaped: u64,
    unknown: u64,
    /// Whether an event was asked for and has not come.
    is_armed: bool,
    is_solicited_only: bool,
    /// Events that came while others were waited for, as far as they were seen.
    missed: u64,
    /// Events that came and are not yet acknowledged.
    to_acknowledge: u32,
}

/// Where the requests of a queue pair are to end: what making one needs of a completion queue, also in another thread than
/// the one that polls.
#[derive(Debug)]
pub struct CompletionTarget<B>(pub(crate) Arc<Shared<B>>);

impl<B> Clone for CompletionTarget<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B> AsRef<Self> for CompletionTarget<B> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<B> AsRef<CompletionTarget<B>> for CompletionQueue<B> {
    fn as_ref(&self) -> &CompletionTarget<B> {
        &self.shared
    }
}

/// What queue pairs hold of it.
#[repr(C)]
pub(crate) struct Shared<B> {
    /// Events that came for it while other queues of its channel were waited for. In front, for those who do not know
    /// what `B` is.
    missed: AtomicU64,
    raw: NonNull<ibv_cq>,
    pub(crate) open: Arc<Open>,
    channel: Option<Arc<Channel>>,
    pub(crate) registry: Lock<Registry<B>>,
    left: Departures,
}

// SAFETY: the library's verbs can be called from any thread.
unsafe impl<B: Send> Send for Shared<B> {}
// SAFETY: as above; the registry has a lock, and buffers are only moved.
unsafe impl<B: Send> Sync for Shared<B> {}
// SAFETY: as above; the pointers are into its own room, and to the library's queue.
unsafe impl<B: Send> Send for CompletionQueue<B> {}
// SAFETY: shared, it gives numbers.
unsafe impl<B: Send> Sync for CompletionQueue<B> {}

/// How a poll goes on where its way is not the usual one.
enum Turn {
    /// From the start.
    Look,
    /// Something was put down to be given to the caller.
    Give,
    /// With nothing, or an error.
    End(Errno),
}

impl<B> CompletionQueue<B> {
    /// The next request that has ended, of whatever queue pair; none where nothing has.
    ///
    /// Requests of one queue of one queue pair end in the order in which they were posted. One that did not ask for a
    /// completion of its own is given out, as done, when a later one's comes.
    ///
    /// # Errors
    ///
    /// [`PollError`]: the device is gone or broken, or has lost a queue that overflowed. What is in flight comes back when
    /// its queue pair is dropped.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Completion<B>>, PollError> {
        loop {
            if self.taken == 0 {
                let count = self.refill();
                if count <= 0 {
                    if count == 0 && !self.has_left() {
                        return Ok(None);
                    }
                    match self.nothing_came(count) {
                        Turn::Look => continue,
                        Turn::Give => return Ok(self.given.take()),
                        Turn::End(Errno(0)) => return Ok(None),
                        Turn::End(errno) => return Err(PollError::new(errno)),
                    }
                }
            }
            // SAFETY: something was taken out that stands at `next`.
            let wc = unsafe { &*self.next };
            #[allow(clippy::cast_possible_truncation, reason = "the halves are meant")]
            let (key, low) = ((wc.wr_id >> 32) as u32, wc.wr_id as u32);
            let queue = self.queue(key);
            let found = if queue.key() == key { queue.find(low) } else { None };
            let Some((head, position)) = found else {
                match self.other(key, low) {
                    Turn::Give => return Ok(self.given.take()),
                    _ => continue,
                }
            };
            // SAFETY: this is the only poller, and `find` has said that something is in flight from the head on.
            let entry = unsafe { queue.take(head) };
            if head != position {
                return Ok(Some(Completion::implied(entry, queue.queue_pair(), head)));
            }
            let completion = Completion::ended(wc, entry, head, self.stamp());
            self.go_on();
            return Ok(Some(completion));
        }
    }

    /// Completions of requests that nobody knows: those of queue pairs that were dropped, and whose buffers have come
    /// back already.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// How many completions it holds.
    pub fn capacity(&self) -> u32 {
        // SAFETY: the queue is there, and only `resize` writes this.
        u32::try_from(unsafe { (*self.shared.0.raw.as_ptr()).cqe }).unwrap_or(0)
    }

    /// For calls that this crate does not have. It is destroyed with the last queue pair that uses it.
    pub fn as_raw(&self) -> *mut ibv_cq {
        self.shared.0.raw.as_ptr()
    }

    /// What making a queue pair needs of it, for a thread that does not poll.
    pub fn target(&self) -> CompletionTarget<B> {
        self.shared.clone()
    }

    /// Takes what is there out of the library's queue, of which nothing is left here: how many, or less than 0 as the
    /// library says it.
    #[inline(always)]
    fn refill(&mut self) -> i32 {
        let count = if self.is_stamped {
            self.poll_stamped()
        } else {
            // SAFETY: the queue is there, and there is room for as many completions as are asked for.
            unsafe { poll(self.raw, self.batch, self.polled.first()) }
        };
        if count > 0 {
            self.next = self.polled.first();
            self.taken = count.unsigned_abs();
        }
        count
    }

    /// Whether something was taken out that is not yet given to the caller.
    fn has_taken(&self) -> bool {
        self.taken > 0
    }

    /// To the next of what was taken out, where something is left.
    #[inline(always)]
    fn go_on(&mut self) {
        self.taken -= 1;
        // SAFETY: what it points at was taken out, so that it points at the end of the room at most.
        self.next = unsafe { self.next.add(1) };
    }

    /// The queue that a key has, or any other.
    #[inline(always)]
    fn queue(&self, key: u32) -> &Flight<B, Posted> {
        // SAFETY: the mask is their number less one.
        unsafe { self.queues.get_unchecked((key & self.mask) as usize) }
    }

    #[cold]
    fn poll_stamped(&mut self) -> i32 {
        let raw = self.raw.cast();
        // SAFETY: there are so many, and nothing is left of what was taken out, so that nobody else has them.
        let polled = unsafe { slice::from_raw_parts_mut(self.polled.first(), self.polled.count()) };
        // SAFETY: queues with time stamps are extended, and made for this clock.
        match unsafe { stamped::poll(raw, self.clock, polled, &mut self.stamps) } {
            Ok(count) => i32::try_from(count).unwrap_or(self.batch),
            Err(code) => -code.saturating_abs(),
        }
    }

    /// A completion whose queue is not known, or whose post is not in flight.
    #[inline(never)]
    fn other(&mut self, key: u32, low: u32) -> Turn {
        if !self.knows(key) {
            self.learn();
            if self.knows(key) {
                return Turn::Look;
            }
        }
        let shared = self.shared_queues.iter().find(|queue| queue.key() == key);
        let taken = shared.and_then(|queue| queue.take(low));
        let turn = match taken {
            Some((entry, ticket)) => {
                // SAFETY: it is looked at, so it was taken out.
                let wc = unsafe { &*self.next };
                self.given = Some(Completion::ended(wc, entry, ticket.0, self.stamp()));
                Turn::Give
            }
            None => {
                self.unknown += 1;
                Turn::Look
            }
        };
        self.go_on();
        turn
    }

    /// The time stamp of the completion that is looked at; 0: none.
    #[inline(always)]
    fn stamp(&self) -> u64 {
        // SAFETY: it points into the room.
        let index = unsafe { self.next.offset_from(self.polled.first()) };
        // SAFETY: there are as many as completions that can be taken out.
        unsafe { *self.stamps.get_unchecked(index.unsigned_abs()) }
    }

    fn knows(&self, key: u32) -> bool {
        if key & SHARED != 0 {
            return self.shared_queues.iter().any(|queue| queue.key() == key);
        }
        self.queue(key).key() == key
    }

    /// Looks which queues have come. The heap is used here: once for each queue pair.
    #[cold]
    fn learn(&mut self) {
        self.shared_queues.clear();
        self.shared.0.registry.with(|registry| registry.copy_to(&mut self.queues, &mut self.shared_queues));
        // They are at most 2^16.
        self.mask = u32::try_from(self.queues.len() - 1).unwrap_or(0);
    }

    /// Whether a queue was left of which not everything was given to the caller.
    fn has_left(&self) -> bool {
        self.shared.0.left.are_more_than(self.reaped)
    }

    /// After a poll that took nothing out: what queues that were left have in flight, since nothing of theirs is in the
    /// library's queue any more, or nothing can be taken out of it.
    #[cold]
    fn nothing_came(&mut self, count: i32) -> Turn {
        let left = self.shared.0.left.so_far();
        self.learn();
        let is_left = |queue: &Queue<B>| queue.is_left();
        while let Some(index) = self.queues.iter().position(is_left) {
            // What is there now may have come before the queue was left.
            if self.refill() > 0 {
                return Turn::Look;
            }
            let queue = &self.queues[index];
            if let Some(head) = queue.oldest() {
                // SAFETY: this is the only poller, and something is in flight at the head.
                let entry = unsafe { queue.take(head) };
                self.given = Some(Completion::discarded(entry, queue.queue_pair(), head));
                return Turn::Give;
            }
            let key = queue.key();
            drop(self.shared.0.registry.with(|registry| registry.remove(key)));
            self.learn();
        }
        if self.shared.0.registry.with(Registry::mark_unused) {
            // As above.
            if self.refill() > 0 {
                return Turn::Look;
            }
            drop(self.shared.0.registry.with(Registry::remove_marked));
            self.learn();
        }
        self.reaped = left;
        Turn::End(match count {
            0.. => Errno(0),
            // Providers that follow the manual page say no more than this; `errno` may be old.
            -1 => Errno(libc::EIO),
            number => Errno(number.saturating_neg()),
        })
    }
}

impl<B> Shared<B> {
    pub(crate) fn as_raw(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// After queues of it were left.
    pub(crate) fn say_left(&self, queues: u64) {
        self.left.say(queues);
    }

    /// After a queue pair with receives of a shared queue was destroyed, or was not made after all.
    pub(crate) fn leave_shared(&self, key: u32) {
        if self.registry.with(|registry| registry.leave_shared(key)) {
            self.say_left(1);
        }
    }
}

impl<B> Drop for Shared<B> {
    fn drop(&mut self) {
        if self.open.is_ours() {
            // SAFETY: no queue pair uses it any more, and its handle is gone, which has acknowledged every event. What
            // could not be destroyed has leaked its reference, so that this is not reached then.
            let is_destroyed = unsafe { (self.open.functions.ibv_destroy_cq)(self.raw.as_ptr()) } == 0;
            if !is_destroyed {
                // Its events may come still: they find nobody, and what it was made with stays.
                // SAFETY: it is there, and its handle is gone.
                unsafe { (*self.raw.as_ptr()).cq_context = core::ptr::null_mut() };
                core::mem::forget((Arc::clone(&self.open), self.channel.clone()));
            }
        }
    }
}

impl<B> fmt::Debug for Shared<B> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Shared").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl<B> fmt::Debug for CompletionQueue<B> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("CompletionQueue")
            .field("capacity", &self.capacity())
            .field("has_taken", &self.has_taken())
            .field("unknown", &self.unknown)
            .finish_non_exhaustive()
    }
}

/// As the header's function, of a driver that has the operation.
///
/// # Safety
///
/// The queue is there, its driver has the operation, as was checked when it was made, and there is room for so many.
#[inline(always)]
unsafe fn poll(queue: *mut ibv_cq, most: c_int, room: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's promise: the queue is there.
    let context = unsafe { (*queue).context };
    // SAFETY: its context is open for as long as it lives.
    let poll = unsafe { (*context).ops.poll_cq };
    // SAFETY: the caller's promise.
    let poll = unsafe { poll.unwrap_unchecked() };
    // SAFETY: the caller's promise.
    unsafe { poll(queue, most, room) }
}
