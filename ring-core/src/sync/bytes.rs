//! The words of a byte ring: one and the same memory serves as headers of frames and as payload.
//!
//! In production a word is 8 bytes, and both are relaxed atomic words. Under loom a word is an atomic for headers and
//! a tracker for payload, and the bytes lie behind all words in one piece, so that grants can hand them out.
//!
//! # Safety
//!
//! A [`Words`] lies over a region that has [`Words::region_bytes`] bytes for it, and every unsafe function here is
//! called with a word, or a range of bytes, in the ring. Which side may write it is the ring's protocol.

#[cfg(loom)]
pub(crate) use model::{Access, Word, Words};
#[cfg(all(test, not(loom)))]
pub(crate) use native::record;
#[cfg(not(loom))]
pub(crate) use native::{Access, Word, Words};

/// Bytes of a word of the ring, as positions count them.
pub(crate) const WORD_BYTES: usize = 8;

#[cfg(not(loom))]
mod native {
    use core::ptr::NonNull;

    use super::WORD_BYTES;
    use crate::sync::{AtomicU64, Ordering, copy};

    /// A word of the ring, as a header.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct Word(AtomicU64);

    impl Word {
        #[inline(always)]
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        #[inline(always)]
        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
            #[cfg(test)]
            record::store(self, value);
        }

        /// Replaces the bytes from `from` on, of a word that only this side writes.
        fn patch(&self, from: usize, bytes: &[u8]) {
            // ORDERING: Relaxed: only this side writes it.
            let mut chunk = self.load(Ordering::Relaxed).to_ne_bytes();
            chunk[from..from + bytes.len()].copy_from_slice(bytes);
            // ORDERING: Relaxed: the frame's header publishes the payload (R1).
            self.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
    }

    /// Nothing: in production the payload needs no watching.
    #[derive(Debug)]
    pub(crate) struct Access;

    impl Access {
        pub(crate) fn end(self) {}
    }

    /// Where the words of a ring lie.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Words(NonNull<Word>);

    impl Words {
        /// Bytes of the region that a ring of so many bytes takes.
        pub(crate) const fn region_bytes(ring_bytes: usize) -> usize {
            ring_bytes
        }

        pub(crate) fn over(base: NonNull<u8>, _ring_bytes: usize) -> Self {
            Self(base.cast())
        }

        /// Makes words of initialised memory, which is nothing to do.
        pub(crate) unsafe fn make(self, _ring_bytes: usize) {}

        /// The word at an index.
        ///
        /// # Safety
        ///
        /// It is a word of the ring, which is kept for `'a`.
        #[inline(always)]
        pub(crate) unsafe fn word<'a>(self, index: usize) -> &'a Word {
            // SAFETY: the caller's promise covers the address.
            let word = unsafe { self.0.add(index) };
            // SAFETY: initialised, aligned, and all who touch it use atomics while it is shared.
            unsafe { word.as_ref() }
        }

        /// The address of a byte of the ring.
        ///
        /// # Safety
        ///
        /// The offset is not beyond the ring's end.
        #[inline(always)]
        pub(crate) unsafe fn address(self, offset: usize) -> NonNull<u8> {
            // SAFETY: the caller's promise.
            unsafe { self.0.cast::<u8>().add(offset) }
        }

        /// Copies bytes in from a word's start. What else is in a word that they do not fill stays, or becomes 0.
        ///
        /// # Safety
        ///
        /// The words lie in the ring, `offset` is a multiple of 8, and this side may write them.
        #[inline(always)]
        pub(crate) unsafe fn write(self, offset: usize, bytes: &[u8]) {
            // A short message was often built a moment ago, by stores that are still on their way to the cache. A load
            // wider than they were would wait for all of them; one of a word is served by the store itself.
            let is_short = bytes.len() < copy::FEWEST.max(128);
            #[cfg(test)]
            let is_short = is_short || record::is_on();
            if is_short {
                // SAFETY: the caller's promise.
                unsafe { self.write_words(offset, bytes) };
                return;
            }
            // SAFETY: the caller's promise.
            let to = unsafe { self.address(offset) };
            // SAFETY: both ranges have that length. What this side writes and what it was given to read never overlap.
            unsafe { copy::copy(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
        }

        /// # Safety
        ///
        /// As [`write`](Self::write).
        #[inline(always)]
        unsafe fn write_words(self, offset: usize, bytes: &[u8]) {
            let first = offset / WORD_BYTES;
            let whole = bytes.len() / WORD_BYTES;
            let from = NonNull::from(bytes).cast::<u64>();
            for index in 0..whole {
                // SAFETY: the word lies in the bytes.
                let chunk = unsafe { from.add(index) };
                // SAFETY: as above.
                let chunk = unsafe { chunk.read_unaligned() };
                // SAFETY: the caller's promise.
                let word = unsafe { self.word(first + index) };
                // ORDERING: Relaxed: the frame's header publishes the payload (R1).
                word.store(chunk, Ordering::Relaxed);
            }
            let rest = &bytes[whole * WORD_BYTES..];
            if !rest.is_empty() {
                let mut chunk = [0; WORD_BYTES];
                chunk[..rest.len()].copy_from_slice(rest);
                // SAFETY: the caller's promise.
                let word = unsafe { self.word(first + whole) };
                // ORDERING: Relaxed: as above.
                word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
            }
        }

        /// Copies bytes in from anywhere in a word, and leaves the other bytes of the first and the last one.
        ///
        /// # Safety
        ///
        /// The words lie in the ring, and this side may write them.
        pub(crate) unsafe fn write_at(self, offset: usize, bytes: &[u8]) {
            let within = offset % WORD_BYTES;
            let (first, bytes) = bytes.split_at(bytes.len().min((WORD_BYTES - within) % WORD_BYTES));
            if !first.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { self.word(offset / WORD_BYTES) }.patch(within, first);
            }
            let offset = offset + first.len();
            let (whole, last) = bytes.split_at(bytes.len() / WORD_BYTES * WORD_BYTES);
            // SAFETY: the caller's promise; unless all is written already, the offset is at a word's start.
            unsafe { self.write(offset, whole) };
            if !last.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { self.word((offset + whole.len()) / WORD_BYTES) }.patch(0, last);
            }
        }

        /// Copies bytes out from a word's start.
        ///
        /// # Safety
        ///
        /// The words lie in the ring, and `offset` is a multiple of 8.
        #[inline(always)]
        pub(crate) unsafe fn read(self, offset: usize, bytes: &mut [u8]) {
            if bytes.len() >= copy::FEWEST {
                // SAFETY: the caller's promise.
                let from = unsafe { self.address(offset) };
                // SAFETY: both ranges have that length. What this side writes and what it was given to read never overlap.
                unsafe { copy::copy(bytes.as_mut_ptr(), from.as_ptr(), bytes.len()) };
                return;
            }
            let first = offset / WORD_BYTES;
            let whole = bytes.len() / WORD_BYTES;
            let to = NonNull::from(&mut *bytes).cast::<u64>();
            for index in 0..whole {
                // SAFETY: the caller's promise.
                let word = unsafe { self.word(first + index) };
                // ORDERING: Relaxed: the frame's header was read before (A1).
                let chunk = word.load(Ordering::Relaxed);
                // SAFETY: the word lies in the bytes.
                let place = unsafe { to.add(index) };
                // SAFETY: as above.
                unsafe { place.write_unaligned(chunk) };
            }
            let rest = &mut bytes[whole * WORD_BYTES..];
            if !rest.is_empty() {
                // SAFETY: the caller's promise.
                let word = unsafe { self.word(first + whole) };
                // ORDERING: Relaxed: as above.
                let chunk = word.load(Ordering::Relaxed).to_ne_bytes();
                rest.copy_from_slice(&chunk[..rest.len()]);
            }
        }

        /// Tells loom that a grant reads the bytes; here there is nobody to tell.
        pub(crate) unsafe fn reading(self, _offset: usize, _len: usize) -> Access {
            Access
        }

        /// As [`reading`](Self::reading), writes.
        pub(crate) unsafe fn writing(self, _offset: usize, _len: usize) -> Access {
            Access
        }
    }

    /// Keeps every store of this thread to the words of a ring, for tests that cut it short after each of them.
    #[cfg(test)]
    pub(crate) mod record {
        use core::cell::RefCell;
        use std::vec::Vec;

        use super::Word;

        std::thread_local! {
            static STORES: RefCell<Option<Vec<(usize, u64)>>> = const { RefCell::new(None) };
        }

        pub(crate) fn is_on() -> bool {
            STORES.with_borrow(Option::is_some)
        }

        pub(super) fn store(word: &Word, value: u64) {
            STORES.with_borrow_mut(|stores| {
                if let Some(stores) = stores {
                    stores.push((core::ptr::from_ref(word).addr(), value));
                }
            });
        }

        /// The stores of `body` in program order: address and value.
        pub(crate) fn stores_of(body: impl FnOnce()) -> Vec<(usize, u64)> {
            STORES.set(Some(Vec::new()));
            body();
            STORES.take().unwrap()
        }
    }
}

#[cfg(loom)]
mod model {
    use core::ptr::NonNull;
    use std::vec::Vec;

    use super::WORD_BYTES;
    use crate::sync::{self, AtomicU64, Ordering, Tracker};

    /// A word of the ring: as a header an atomic, as payload tracked bytes, which lie behind all words.
    #[derive(Debug)]
    #[repr(C)]
    pub(crate) struct Word {
        header: AtomicU64,
        tracker: Tracker,
    }

    impl Word {
        fn new() -> Self {
            Self { header: AtomicU64::new(0), tracker: Tracker::new() }
        }

        #[track_caller]
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.header.load(order)
        }

        /// It ends the word's life as payload, so whoever still reads that is reported.
        #[track_caller]
        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.tracker.writing().end();
            self.header.store(value, order);
        }
    }

    /// Accesses to all words of a payload, as long as a grant lives.
    #[derive(Debug)]
    #[allow(dead_code)]
    pub(crate) struct Access(Vec<sync::Access>);

    impl Access {
        /// Says that the access is over, before a word that hands the payload on is written.
        pub(crate) fn end(self) {}
    }

    /// Where the words of a ring lie, and behind them their bytes.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Words {
        first: NonNull<Word>,
        count: usize,
    }

    impl Words {
        pub(crate) const fn region_bytes(ring_bytes: usize) -> usize {
            ring_bytes / WORD_BYTES * size_of::<Word>() + ring_bytes
        }

        pub(crate) fn over(base: NonNull<u8>, ring_bytes: usize) -> Self {
            Self { first: base.cast(), count: ring_bytes / WORD_BYTES }
        }

        pub(crate) unsafe fn make(self, _ring_bytes: usize) {
            for index in 0..self.count {
                // SAFETY: a word of the ring.
                let word = unsafe { self.first.add(index) };
                // SAFETY: it lies in the region, aligned, and has an atomic in front.
                unsafe { sync::place(word, Word::new) };
            }
        }

        pub(crate) unsafe fn word<'a>(self, index: usize) -> &'a Word {
            assert!(index < self.count);
            // SAFETY: a word of the ring.
            let word = unsafe { self.first.add(index) };
            // SAFETY: made before, and shared.
            unsafe { word.as_ref() }
        }

        pub(crate) unsafe fn address(self, offset: usize) -> NonNull<u8> {
            assert!(offset <= self.count * WORD_BYTES);
            // SAFETY: the bytes begin behind the words.
            let bytes = unsafe { self.first.add(self.count) }.cast::<u8>();
            // SAFETY: not beyond their end.
            unsafe { bytes.add(offset) }
        }

        pub(crate) unsafe fn write(self, offset: usize, bytes: &[u8]) {
            // SAFETY: the caller's promise.
            unsafe { self.write_at(offset, bytes) };
        }

        pub(crate) unsafe fn write_at(self, offset: usize, bytes: &[u8]) {
            // SAFETY: the caller's promise.
            let _access = unsafe { self.writing(offset, bytes.len()) };
            // SAFETY: the caller's promise.
            let to = unsafe { self.address(offset) };
            // SAFETY: in the ring; loom reports whoever else is at it.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }

        pub(crate) unsafe fn read(self, offset: usize, bytes: &mut [u8]) {
            // SAFETY: the caller's promise.
            let _access = unsafe { self.reading(offset, bytes.len()) };
            // SAFETY: the caller's promise.
            let from = unsafe { self.address(offset) };
            // SAFETY: in the ring; loom reports whoever else is at it.
            unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *bytes).cast(), bytes.len()) };
        }

        pub(crate) unsafe fn reading(self, offset: usize, len: usize) -> Access {
            self.access(offset, len, Tracker::reading)
        }

        pub(crate) unsafe fn writing(self, offset: usize, len: usize) -> Access {
            self.access(offset, len, Tracker::writing)
        }

        fn access(self, offset: usize, len: usize, kind: fn(&Tracker) -> sync::Access) -> Access {
            assert!(offset + len <= self.count * WORD_BYTES);
            let words = offset / WORD_BYTES..(offset + len).div_ceil(WORD_BYTES);
            // SAFETY: the words lie in the ring.
            Access(words.map(|index| kind(unsafe { &self.word(index).tracker })).collect())
        }
    }
}
