//! Room in a completion queue, on the way to a work queue that ends there.

use alloc::sync::Arc;

use crate::completion_queue::{Queue, Shared, SharedQueue};
use crate::error::Error;
use crate::flight::Flight;

/// Room that was claimed, and is given back if nothing comes of it.
pub(super) struct Claim<B> {
    shared: Arc<Shared<B>>,
    depth: u32,
    is_used: bool,
}

impl<B> Claim<B> {
    pub(super) fn new(shared: &Arc<Shared<B>>, depth: u32) -> Result<Self, Error> {
        shared.registry.with(|registry| registry.claim(depth))?;
        Ok(Self { shared: Arc::clone(shared), depth, is_used: false })
    }

    /// Enters a work queue of the queue pair of a number, which has the room from now on.
    pub(super) fn enter(mut self, queue_pair: u32) -> Result<Entered<B>, Error> {
        let depth = self.depth;
        let make = |key| Arc::new(Flight::new(key, queue_pair, depth));
        let queue = self.shared.registry.with(|registry| registry.enter(depth, make))?;
        self.is_used = true;
        Ok(Entered { shared: Arc::clone(&self.shared), queue, is_used: false })
    }
}

impl<B> Drop for Claim<B> {
    fn drop(&mut self) {
        if !self.is_used {
            self.shared.registry.with(|registry| registry.unclaim(self.depth));
        }
    }
}

/// A work queue that is known to its completion queue, and is taken out if nothing comes of it.
pub(super) struct Entered<B> {
    shared: Arc<Shared<B>>,
    queue: Queue<B>,
    is_used: bool,
}

impl<B> Entered<B> {
    pub(super) fn take(mut self) -> Queue<B> {
        self.is_used = true;
        Arc::clone(&self.queue)
    }
}

impl<B> Drop for Entered<B> {
    fn drop(&mut self) {
        if !self.is_used {
            drop(self.shared.registry.with(|registry| registry.remove(self.queue.key())));
        }
    }
}

/// Room for the receives of a shared queue, on behalf of one queue pair that uses it, and given back if nothing comes of that.
pub(super) struct SharedClaim<B> {
    shared: Arc<Shared<B>>,
    key: u32,
    is_used: bool,
}

impl<B> SharedClaim<B> {
    pub(super) fn new(shared: &Arc<Shared<B>>, queue: &SharedQueue<B>) -> Result<Self, Error> {
        shared.registry.with(|registry| registry.enter_shared(queue))?;
        Ok(Self { shared: Arc::clone(shared), key: queue.key(), is_used: false })
    }

    /// The queue pair has it from now on.
    pub(super) fn take(mut self) {
        self.is_used = true;
        self.shared.registry.with(|registry| registry.use_shared(self.key));
    }
}

impl<B> Drop for SharedClaim<B> {
    fn drop(&mut self) {
        if !self.is_used {
            self.shared.leave_shared(self.key);
        }
    }
}
