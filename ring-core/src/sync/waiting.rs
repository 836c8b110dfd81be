//! What a ring has for those who wait on it, and who wake them: they agree by two words, whose meaning is theirs.

use super::AtomicU64;

/// At offset 64 of every ring, in a line that nobody writes while nobody sleeps.
#[derive(Debug)]
#[repr(C)]
pub struct WaitWords {
    /// Of those who wait for messages.
    pub messages: AtomicU64,
    /// Of those who wait for room.
    pub room: AtomicU64,
}

impl Default for WaitWords {
    fn default() -> Self {
        Self { messages: AtomicU64::new(0), room: AtomicU64::new(0) }
    }
}

/// A handle of a ring, on which somebody may wait.
pub trait Waitable {
    /// The words of its ring.
    fn wait_words(&self) -> &WaitWords;

    /// Changes whenever the other side may see something new. None: the handle cannot tell.
    fn mark(&self) -> Option<u64>;

    /// Whether the next message is popped without showing the other side anything new.
    fn is_next_pop_silent(&self) -> bool {
        false
    }

    /// Shows the other side now what dropping the handle would show it.
    fn settle(&mut self);
}

/// A handle that can close its ring.
pub trait Closable: Waitable {
    /// Closes the ring for good, and leaves the handle, so that whoever waits can be woken by it.
    fn close_ring(&mut self);
}
