//! When a consumer returns credit.

/// When a consumer returns credit, and so what its successor sees after it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Inside each pop: a message is popped once or, when the consumer is killed, lost with it. One that was looked
    /// at in place and not released yet was not popped.
    ///
    /// Each pop frees its room at once. The producer looks at the credit more often, which a shallow ring feels.
    AtMostOnce,
    /// At a later pop, once `batch` waits for it or the pop finds the ring empty: popping again says that the
    /// messages before are done with. A successor sees the uncredited ones again: `batch` at most, and what the
    /// last pop took.
    ///
    /// Until then what was popped looks taken to the producer. It can take a pop that finds the ring empty to free
    /// it, in a ring of one slot or for a message as long as a good part of the ring: whoever asks `is_empty` first
    /// and pops only then, waits for ever.
    AtLeastOnce {
        /// How much is credited at once, as positions count: messages in [`spsc`](crate::spsc), where 0 means 1 and a
        /// whole ring means one less; bytes in [`bytes`](crate::bytes), where half of the ring is the most.
        batch: u32,
    },
}
