//! Which work queues end in a completion queue, and how much of it they may fill.

use alloc::sync::Arc;
use alloc::vec::Vec;

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
    /// Shared receive queues whose receives may end here. They stay: what they have in flight may be in the completion
    /// queue also when the last queue pair is gone.
    shared: Vec<SharedQueue<B>>,
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

    /// Enters a shared receive queue, if it is not here yet, with room for all of its receives.
    pub(crate) fn enter_shared(&mut self, queue: &SharedQueue<B>) -> Result<(), Error> {
        if !self.shared.iter().any(|known| known.key() == queue.key()) {
            self.claim(queue.depth())?;
            self.shared.push(Arc::clone(queue));
        }
        Ok(())
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

    /// Brings a copy up to date: by index, with a queue of nobody in between and up to a power of two.
    pub(crate) fn copy_to(&self, queues: &mut Vec<Queue<B>>, shared: &mut Vec<SharedQueue<B>>) {
        let count = self.places.len().next_power_of_two();
        let nobodys = Self::nobodys();
        let queue = |index| self.places.get(index).and_then(|place: &Place<B>| place.queue.as_ref());
        queues.clear();
        queues.extend((0..count).map(|index| Arc::clone(queue(index).unwrap_or(&nobodys))));
        shared.clone_from(&self.shared);
    }

    /// A queue that nothing is posted to: its key is that of no other, since generations begin with 1.
    pub(crate) fn nobodys() -> Queue<B> {
        Arc::new(Flight::new(0, 0, 1))
    }
}
