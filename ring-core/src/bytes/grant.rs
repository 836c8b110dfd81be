//! Access to a message in place.
//!
//! # Safety
//!
//! A grant borrows its handle, so nobody else of this side is at the message. References into it exist only where
//! the region is [`TrustedRegion`]: there the other side keeps away from a message until it was handed over.
#![allow(unsafe_code)]

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::frame::Frame;
use super::{Consumer, Producer};
use crate::sync::bytes::Access;
use crate::{Region, TrustedRegion};

/// Room to write the next message in. Dropping it publishes nothing; leaking it costs nothing but that.
///
/// In a [`TrustedRegion`] it is the bytes themselves, by `Deref`; elsewhere it copies in, or hands out a pointer.
/// Until written, it holds bytes of older messages.
///
/// ```
/// # use std::sync::Arc;
/// # use ring_core::{HeapRegion, bytes};
/// # let layout = bytes::Layout::new(4096)?;
/// # let (mut producer, mut consumer) = bytes::create(Arc::new(HeapRegion::new(layout.bytes())), &layout)?;
/// let mut grant = producer.try_reserve(100).unwrap();
/// grant[..6].copy_from_slice(b"a line");
/// grant.commit_shortened(6);
///
/// let grant = consumer.try_peek().unwrap();
/// assert_eq!(*grant, *b"a line");
/// grant.release();
/// # Ok::<(), ring_core::Error>(())
/// ```
#[must_use = "dropping it publishes nothing"]
pub struct WriteGrant<'a, R: Region> {
    producer: &'a mut Producer<R>,
    frame: Frame,
}

impl<'a, R: Region> WriteGrant<'a, R> {
    pub(super) fn new(producer: &'a mut Producer<R>, frame: Frame) -> Self {
        Self { producer, frame }
    }

    /// Bytes of the message, as they were reserved: 1 or more.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Copies the whole message in.
    ///
    /// # Panics
    ///
    /// When it has another length than the grant.
    #[inline]
    pub fn write(&mut self, message: &[u8]) {
        self.frame.write(message);
    }

    /// Copies a part of the message in, from byte `offset` on.
    ///
    /// # Panics
    ///
    /// When it goes beyond the grant's end.
    #[inline]
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        self.frame.write_at(offset, bytes);
    }

    /// Address of the message, a multiple of 8, valid as long as the grant. In a region that an untrusted peer can
    /// write, access it with atomics or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.frame.address()
    }

    /// Publishes the message.
    #[inline]
    pub fn commit(self) {
        self.producer.publish(&self.frame);
    }

    /// Publishes the first `len` bytes as the message, and gives the rest back.
    ///
    /// # Panics
    ///
    /// When `len` is 0, or more than was reserved. Nothing is published then.
    #[inline]
    pub fn commit_shortened(mut self, len: usize) {
        assert!(0 < len && len <= self.len(), "{len} bytes of a grant of {}", self.len());
        self.frame.shorten(len);
        self.commit();
    }
}

impl<R: TrustedRegion> Deref for WriteGrant<'_, R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = NonNull::slice_from_raw_parts(self.as_ptr(), self.len());
        // SAFETY: initialised, and until commit nobody else accesses reserved bytes.
        unsafe { bytes.as_ref() }
    }
}

impl<R: TrustedRegion> DerefMut for WriteGrant<'_, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let _access = self.frame.writing();
        let mut bytes = NonNull::slice_from_raw_parts(self.as_ptr(), self.len());
        // SAFETY: initialised, and until commit nobody else accesses reserved bytes.
        unsafe { bytes.as_mut() }
    }
}

impl<R: Region> fmt::Debug for WriteGrant<'_, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WriteGrant").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The next message, in the ring. Dropping it leaves the message there, releasing it pops it.
///
/// In a [`TrustedRegion`] it is the message itself, by `Deref`; elsewhere it copies out, or hands out a pointer.
#[must_use = "dropping it leaves the message in the ring"]
pub struct ReadGrant<'a, R: Region> {
    consumer: &'a mut Consumer<R>,
    frame: Frame,
    /// Tells loom how long the message is read.
    access: Access,
}

impl<'a, R: Region> ReadGrant<'a, R> {
    pub(super) fn new(consumer: &'a mut Consumer<R>, frame: Frame) -> Self {
        let access = frame.reading();
        Self { consumer, frame, access }
    }

    /// Bytes of the message: 1 or more. It stays the same whatever the peer does.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Copies the message to the front of `bytes`, as much of it as fits, and returns how many bytes. In a region
    /// that an untrusted peer can write, two calls may differ.
    #[inline]
    pub fn read(&self, bytes: &mut [u8]) -> usize {
        self.frame.read(bytes)
    }

    /// Address of the message, a multiple of 8, valid as long as the grant. In a region that an untrusted peer can
    /// write, access it with atomics or with means that tolerate a race.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.frame.address()
    }

    /// Pops the message. When its room is free again depends on the consumer's [`Delivery`](super::Delivery).
    #[inline]
    pub fn release(self) {
        let Self { consumer, frame, access } = self;
        access.end();
        consumer.advance(&frame);
    }
}

impl<R: TrustedRegion> Deref for ReadGrant<'_, R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = NonNull::slice_from_raw_parts(self.as_ptr(), self.len());
        // SAFETY: initialised, and the producer keeps away until credit is returned.
        unsafe { bytes.as_ref() }
    }
}

impl<R: Region> fmt::Debug for ReadGrant<'_, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReadGrant").field("len", &self.len()).finish_non_exhaustive()
    }
}
