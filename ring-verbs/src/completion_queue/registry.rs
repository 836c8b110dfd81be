//! Which work queues end in a completion queue, and how much of it they may fill.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use crate::error::Error;
use crate::flight::Flight;
use crate::queue_pair::Posted;
use crate::shared_receive_queue::SharedFlight;

#[cfg(all(test, not(loom)))]
mod tests;

/// A work queue, as polling knows it.
pub(crate) type Queue<B> = Arc<Flight<B, Posted>>;

/// A queue of receives that several queue pairs share, as polling knows it.
pub(crate) type SharedQueue<B> = Arc<SharedFlight<B>>;

/// In the upper half of a `wr_id`: it is one of a shared receive queue.
pub(crate) const SHARED: u32 = 1 << 31;

/// Work queues that one completion queue can have: what half of a `wr_id`'s upper half can say.
const QUEUES_MAX: usize = 1 << 16;

/// Changed under a lock, when a queue pair is made or gone.
#[derive(Debug)]
pub(crate) struct Registry<B> {
    places: Vec<Place<B>>,
    shared: Vec<SharedPlace<B>>,
    /// Completions that queues have claimed: more than there are, where it may overflow.
    claimed: u64,
    /// Completions in all.
    entries: u32,
    can_overflow: bool,
}

#[derive(Debug)]
struct Place<B> {
    queue: Option<Queue<B>>,
    /// Counts the queues that had this place, so that a late completion of one is not taken for another's.
    generation: u16,
    /// What the queue has claimed.
    depth: u32,
}

/// A shared receive queue whose receives may end here. It has claimed room for all of them.
#[derive(Debug)]
struct SharedPlace<B> {
    queue: SharedQueue<B>,
    /// Queue pairs that use it and end here, and those that are about to be made.
    users: u32,
    /// Whether there was one, so that something may be in the completion queue when all are gone.
    was_used: bool,
    /// Whether nobody has used it since [`Registry::mark_unused`].
    is_marked: bool,
}

impl<B> Registry<B> {
    pub(crate) fn new(entries: u32, can_overflow: bool) -> Self {
        Self { places: Vec::new(), shared: Vec::new(), claimed: 0, entries, can_overflow }
    }

    /// Where a key's queue stands.
    #[inline(always)]
    pub(crate) fn index(key: u32) -> usize {
        (key & 0xffff) as usize
    }

    /// Claims room for a queue that is about to be made.
    pub(crate) fn claim(&mut self, depth: u32) -> Result<(), Error> {
        let claimed = self.claimed + u64::from(depth);
        if claimed > u64::from(self.entries) && !self.can_overflow {
            let room = u64::from(self.entries).saturating_sub(self.claimed);
            // It is not more than there are entries.
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            return Err(Error::CompletionQueueFull { room, needed: depth });
        }
        self.claimed = claimed;
        Ok(())
    }

    /// Gives room back that no queue uses.
    pub(crate) fn unclaim(&mut self, depth: u32) {
        self.claimed -= u64::from(depth);
    }

    /// Completions that there must be room for: none, where it may overflow.
    pub(crate) fn needed(&self) -> u32 {
        let claimed = if self.can_overflow { 0 } else { self.claimed };
        u32::try_from(claimed).unwrap_or(u32::MAX)
    }

    /// There are so many from now on, not fewer than are needed.
    pub(crate) fn resize(&mut self, entries: u32) {
        self.entries = entries;
    }

    /// Enters a queue that has claimed room; `make` gets its key.
    pub(crate) fn enter(
        &mut self,
        depth: u32,
        make: impl FnOnce(u32) -> Queue<B>,
    ) -> Result<Queue<B>, Error> {
        let free = self.places.iter().position(|place| place.queue.is_none());
        let index = free.unwrap_or(self.places.len());
        if index == QUEUES_MAX {
            let most = QUEUES_MAX as u64;
            return Err(Error::TooMany { what: "work queues of a completion queue", asked: most + 1, most });
        }
        if index == self.places.len() {
            self.places.push(Place { queue: None, generation: 0, depth: 0 });
        }
        let place = &mut self.places[index];
        // The uppermost bit of a key is for shared queues.
        place.generation = place.generation % 0x7fff + 1;
        place.depth = depth;
        // Checked above: it is below 2^16.
        let key = u32::from(place.generation) << 16 | u32::try_from(index).unwrap_or(0);
        let queue = make(key);
        place.queue = Some(Arc::clone(&queue));
        Ok(queue)
    }

    /// Enters a shared receive queue for a queue pair that is about to be made, with room for all of its receives if it is
    /// not here yet.
    pub(crate) fn enter_shared(&mut self, queue: &SharedQueue<B>) -> Result<(), Error> {
        if let Some(place) = self.shared_place(queue.key()) {
            place.users += 1;
            place.is_marked = false;
            return Ok(());
        }
        self.claim(queue.depth())?;
        self.shared.push(SharedPlace {
            queue: Arc::clone(queue),
            users: 1,
            was_used: false,
            is_marked: false,
        });
        Ok(())
    }

    /// A queue pair for which a shared receive queue was entered is there.
    pub(crate) fn use_shared(&mut self, key: u32) {
        if let Some(place) = self.shared_place(key) {
            place.was_used = true;
        }
    }

    /// A queue pair for which a shared receive queue was entered is gone, or was not made; whether it was the last, so that
    /// the room is to be had back once the completion queue was seen empty. It is at once where there never was any.
    pub(crate) fn leave_shared(&mut self, key: u32) -> bool {
        let Some(place) = self.shared_place(key) else { return false };
        place.users -= 1;
        let (users, was_used) = (place.users, place.was_used);
        if users == 0 && !was_used {
            // Whoever leaves has it as well: so it does not end here.
            drop(self.remove_shared(|place| place.queue.key() == key));
        }
        users == 0 && was_used
    }

    /// Marks the shared receive queues that no queue pair uses any more; whether there are any.
    pub(crate) fn mark_unused(&mut self) -> bool {
        self.shared.iter_mut().for_each(|place| place.is_marked = place.users == 0);
        self.shared.iter().any(|place| place.is_marked)
    }

    /// Takes out those that were marked and not used since: the completion queue was seen empty meanwhile. They are for the
    /// caller to drop, as in [`Self::remove`].
    #[must_use]
    pub(crate) fn remove_marked(&mut self) -> Vec<SharedQueue<B>> {
        self.remove_shared(|place| place.is_marked)
    }

    fn shared_place(&mut self, key: u32) -> Option<&mut SharedPlace<B>> {
        self.shared.iter_mut().find(|place| place.queue.key() == key)
    }

    fn remove_shared(&mut self, is_over: impl Fn(&SharedPlace<B>) -> bool) -> Vec<SharedQueue<B>> {
        let (over, kept): (Vec<_>, _) = mem::take(&mut self.shared).into_iter().partition(is_over);
        self.shared = kept;
        over.iter().for_each(|place| self.unclaim(place.queue.depth()));
        over.into_iter().map(|place| place.queue).collect()
    }

    /// Takes a queue out of which nothing can come any more. It is for the caller to drop, without the lock: buffers of
    /// a batch that was forgotten go with it, and what their drop does is not ours to know.
    #[must_use]
    pub(crate) fn remove(&mut self, key: u32) -> Option<Queue<B>> {
        let place = self.places.get_mut(Self::index(key))?;
        let queue = place.queue.take_if(|queue| queue.key() == key)?;
        let depth = place.depth;
        self.unclaim(depth);
        Some(queue)
    }

    /// Brings a copy up to date: by index, with a queue of nobody in between and up to a power of two. The shared ones are
    /// added to none.
    pub(crate) fn copy_to(&self, queues: &mut Vec<Queue<B>>, shared: &mut Vec<SharedQueue<B>>) {
        let count = self.places.len().next_power_of_two();
        let nobodys = Self::nobodys();
        let queue = |index| self.places.get(index).and_then(|place: &Place<B>| place.queue.as_ref());
        queues.clear();
        queues.extend((0..count).map(|index| Arc::clone(queue(index).unwrap_or(&nobodys))));
        shared.extend(self.shared.iter().map(|place| Arc::clone(&place.queue)));
    }

    /// A queue that nothing is posted to: its key is that of no other, since generations begin with 1.
    pub(crate) fn nobodys() -> Queue<B> {
        Arc::new(Flight::new(0, 0, 1))
    }
}
