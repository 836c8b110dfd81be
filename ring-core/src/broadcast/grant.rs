//! Writing a message in steps.

use core::ptr::NonNull;

use super::Producer;
use super::memory::Slot;
use crate::{Message, Region};

/// The next slot, to write a message in. Dropping it publishes nothing; leaking it costs nothing but that.
///
/// The message that the slot held, a whole ring older than the one to come, is gone as soon as the grant is there:
/// consumers that have not read it yet lose it, also when the grant is dropped.
///
/// It gives no reference to the slot, in trusted regions neither, since consumers may be reading there: they find out
/// afterwards that what they read is no message.
///
/// ```
/// # use std::sync::Arc;
/// # use ring_core::{HeapRegion, broadcast};
/// # let layout = broadcast::Layout::<[u64; 2]>::new(8)?;
/// # let (mut producer, mut consumer) = broadcast::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
/// let mut grant = producer.reserve();
/// grant.write(&[1, 2]);
/// grant.commit();
/// assert_eq!(consumer.try_pop(), Ok([1, 2]));
/// # Ok::<(), ring_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it publishes nothing, and the oldest message is gone"]
pub struct WriteGrant<'a, T: Message, R: Region> {
    producer: &'a mut Producer<T, R>,
    slot: Slot<T>,
}

impl<'a, T: Message, R: Region> WriteGrant<'a, T, R> {
    pub(super) fn new(producer: &'a mut Producer<T, R>, slot: Slot<T>) -> Self {
        Self { producer, slot }
    }

    /// Copies the message in. Until then the slot holds an older one, or parts of several.
    #[inline]
    pub fn write(&mut self, value: &T) {
        self.slot.write(value);
    }

    /// Address of the slot, valid as long as the grant. Consumers may be reading there, so write with relaxed
    /// atomics, or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<T> {
        self.slot.message()
    }

    /// Publishes the message.
    #[inline]
    pub fn commit(self) {
        let Self { producer, slot } = self;
        producer.publish(slot);
    }
}
