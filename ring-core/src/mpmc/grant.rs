//! Access to a slot in place.
//!
//! # Safety
//!
//! A grant has claimed its slot, and everybody else keeps away from it until the grant has ended, or until a
//! [`Liveness`](crate::Liveness) has promised that its owner is gone. References into the slot exist only where the
//! region is [`TrustedRegion`], whose users keep to this.
#![allow(unsafe_code)]

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::memory::Slot;
use super::{Consumer, Producer};
use crate::sync::Access;
use crate::{Message, Region, TrustedRegion};

/// A claimed slot to write a message in. Dropping it publishes nothing and leaves the slot empty for this lap.
///
/// Leaking it has consumers wait at the slot until the handle is used again or dropped.
///
/// In a [`TrustedRegion`] region it is the message itself, by `Deref`; elsewhere it copies in, or hands out a pointer.
/// Until written, the slot holds an older message.
///
/// ```
/// # use std::sync::Arc;
/// # use ring_core::{HeapRegion, mpmc};
/// # let layout = mpmc::Layout::<[u64; 2]>::new(8)?;
/// # let (mut producer, mut consumer) = mpmc::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
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
#[must_use = "dropping it publishes nothing and leaves the slot empty for this lap"]
pub struct WriteGrant<'a, T: Message, R: Region> {
    producer: &'a mut Producer<T, R>,
    slot: Slot<T>,
}

impl<'a, T: Message, R: Region> WriteGrant<'a, T, R> {
    pub(super) fn new(producer: &'a mut Producer<T, R>, slot: Slot<T>) -> Self {
        producer.seat.lent = Some(slot.position);
        Self { producer, slot }
    }

    /// Copies the message in.
    #[inline]
    pub fn write(&mut self, value: &T) {
        self.slot.write(value);
    }

    /// Address of the slot, valid as long as the grant. In a region that an untrusted peer can write, access it
    /// with atomics or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<T> {
        self.slot.message()
    }

    /// Publishes the message.
    #[inline]
    pub fn commit(self) {
        self.producer.seat.lent = None;
        self.producer.publish(&self.slot);
    }
}

impl<T: Message, R: TrustedRegion> Deref for WriteGrant<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: aligned, any bit pattern is a `T`, and nobody else accesses a claimed slot.
        unsafe { self.as_ptr().as_ref() }
    }
}

impl<T: Message, R: TrustedRegion> DerefMut for WriteGrant<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let _access = self.slot.writing();
        // SAFETY: aligned, any bit pattern is a `T`, and nobody else accesses a claimed slot.
        unsafe { self.as_ptr().as_mut() }
    }
}

impl<T: Message, R: Region> Drop for WriteGrant<'_, T, R> {
    fn drop(&mut self) {
        self.producer.seat.take_back();
    }
}

/// The next message, claimed, in its slot. Releasing it pops the message, dropping it puts it back.
///
/// Leaking it puts the message back once the handle is used again or dropped.
///
/// In a [`TrustedRegion`] region it is the message itself, by `Deref`; elsewhere it copies out, or hands out a pointer.
#[derive(Debug)]
#[must_use = "dropping it puts the message back, and it may come late"]
pub struct ReadGrant<'a, T: Message, R: Region> {
    consumer: &'a mut Consumer<T, R>,
    slot: Slot<T>,
    /// Tells loom how long the slot is read.
    access: Option<Access>,
}

impl<'a, T: Message, R: Region> ReadGrant<'a, T, R> {
    pub(super) fn new(consumer: &'a mut Consumer<T, R>, slot: Slot<T>) -> Self {
        consumer.seat.lent = Some(slot.position);
        let access = Some(slot.reading());
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

    /// Pops the message.
    #[inline]
    pub fn release(mut self) {
        self.access.take().into_iter().for_each(Access::end);
        self.consumer.seat.lent = None;
        self.consumer.finish(&self.slot);
    }
}

impl<T: Message, R: TrustedRegion> Deref for ReadGrant<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: aligned, any bit pattern is a `T`, and nobody else accesses a claimed slot.
        unsafe { self.as_ptr().as_ref() }
    }
}

impl<T: Message, R: Region> Drop for ReadGrant<'_, T, R> {
    fn drop(&mut self) {
        self.access.take().into_iter().for_each(Access::end);
        self.consumer.seat.take_back();
    }
}
