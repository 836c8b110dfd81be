//! Access to a slot in place.
//!
//! # Safety
//!
//! A grant borrows its handle, so nobody else of this side is at the slot. References into it exist only where
//! the region is [`TrustedRegion`]: there the other side keeps away from a slot until it was handed over.
#![allow(unsafe_code)]

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::memory::Slot;
use super::{Consumer, Producer};
use crate::sync::Access;
use crate::{Message, Region, TrustedRegion};

/// A free slot to write the next message in. Dropping it publishes nothing; leaking it costs nothing but that.
///
/// In a [`TrustedRegion`] region it is the message itself, by `Deref`; elsewhere it copies in, or hands out a pointer.
/// Until written, the slot holds an older message.
///
/// ```
/// # use std::sync::Arc;
/// # use ring_core::{HeapRegion, spsc};
/// # let layout = spsc::Layout::<[u64; 2]>::new(8)?;
/// # let (mut producer, mut consumer) = spsc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
/// let mut grant = producer.try_reserve().unwrap();
/// grant[0] = 1;
/// grant[1] = 2;
/// grant.commit();
///
/// let grant = consumer.try_peek().unwrap();
/// assert_eq!(*grant, [1, 2]);
/// grant.release();
/// # Ok::<(), ring_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it publishes nothing"]
pub struct WriteGrant<'a, T: Message, R: Region> {
    producer: &'a mut Producer<T, R>,
}

impl<'a, T: Message, R: Region> WriteGrant<'a, T, R> {
    pub(super) fn new(producer: &'a mut Producer<T, R>) -> Self {
        Self { producer }
    }

    /// Copies the message in.
    #[inline]
    pub fn write(&mut self, value: &T) {
        self.producer.slot().write(value);
    }

    /// Address of the slot, valid as long as the grant. In a region that an untrusted peer can write, access it
    /// with atomics or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<T> {
        self.producer.slot().message()
    }

    /// Publishes the message.
    #[inline]
    pub fn commit(self) {
        let slot = self.producer.slot();
        self.producer.publish(slot);
    }
}

impl<T: Message, R: TrustedRegion> Deref for WriteGrant<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: aligned, any bit pattern is a `T`, and until commit nobody else accesses a reserved slot.
        unsafe { self.as_ptr().as_ref() }
    }
}

impl<T: Message, R: TrustedRegion> DerefMut for WriteGrant<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let _access = self.producer.slot().writing();
        // SAFETY: aligned, any bit pattern is a `T`, and until commit nobody else accesses a reserved slot.
        unsafe { self.as_ptr().as_mut() }
    }
}

/// The next message, in its slot. Dropping it leaves the message there, releasing it pops it.
///
/// In a [`TrustedRegion`] region it is the message itself, by `Deref`; elsewhere it copies out, or hands out a pointer.
#[derive(Debug)]
#[must_use = "dropping it leaves the message in the ring"]
pub struct ReadGrant<'a, T: Message, R: Region> {
    consumer: &'a mut Consumer<T, R>,
    slot: Slot<T>,
    /// Tells loom how long the slot is read.
    access: Access,
}

impl<'a, T: Message, R: Region> ReadGrant<'a, T, R> {
    pub(super) fn new(consumer: &'a mut Consumer<T, R>, slot: Slot<T>) -> Self {
        let access = slot.reading();
        Self { consumer, slot, access }
    }

    /// Copies the message out. In a region that an untrusted peer can write, two calls may differ.
    #[inline]
    #[must_use]
    pub fn read(&self) -> T {
        self.slot.read()
    }

    /// Address of the message, valid as long as the grant. In a region that an untrusted peer can write, access
    /// it with atomics or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<T> {
        self.slot.message()
    }

    /// Pops the message. When its slot is free again depends on the consumer's [`Delivery`](super::Delivery).
    #[inline]
    pub fn release(self) {
        let Self { consumer, slot, access } = self;
        access.end();
        consumer.advance(slot.position, 1);
    }
}

impl<T: Message, R: TrustedRegion> Deref for ReadGrant<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: aligned, any bit pattern is a `T`, and the producer keeps away until credit is returned.
        unsafe { self.as_ptr().as_ref() }
    }
}
