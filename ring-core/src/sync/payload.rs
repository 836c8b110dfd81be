//! The payload of a slot: a message.
//!
//! In production it is a row of relaxed atomic words, since a peer in another program may write it at any time. Under
//! loom it is plain memory behind a tracked cell, so that a missing edge between its writer and its reader is a reported
//! race; where it may be read while it is written, it is atomics of loom's beside the slot.
//!
//! # Safety
//!
//! Every unsafe function here is called with the words of a slot that hold a message; the callers' `Memory` guarantees
//! that they lie in the region and that the slot was claimed by the ring's protocol.
#![allow(unsafe_code)]

#[cfg(loom)]
pub(crate) use model::{Access, Racing, Tracker, read, read_racing, write, write_racing};
#[cfg(not(loom))]
pub(crate) use native::{Access, Racing, Tracker, read, read_racing, write, write_racing};

#[cfg(not(loom))]
mod native {
    use core::mem::MaybeUninit;
    use core::ptr::NonNull;

    use crate::Message;
    use crate::sync::{AtomicU64, Ordering};

    /// Nothing: in production the payload needs no watching.
    #[derive(Debug)]
    pub(crate) struct Tracker;

    /// Nothing: see [`Tracker`].
    #[derive(Debug)]
    pub(crate) struct Access;

    impl Access {
        pub(crate) fn end(self) {}
    }

    impl Tracker {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn reading(&self) -> Access {
            Access
        }

        pub(crate) fn writing(&self) -> Access {
            Access
        }
    }

    /// Nothing: in production the words of a message lie in its slot.
    #[derive(Debug)]
    pub(crate) struct Racing;

    impl Racing {
        pub(crate) fn new() -> Self {
            Self
        }
    }

    /// As [`write`], to a slot that others may be reading.
    ///
    /// # Safety
    ///
    /// As for `write`.
    #[inline(always)]
    pub(crate) unsafe fn write_racing<T: Message>(words: NonNull<u64>, _: &Racing, value: &T) {
        // SAFETY: the caller's promise is the same.
        unsafe { write(words, &Tracker, value) }
    }

    /// As [`read`], from a slot that another may be writing: parts of several messages, at worst.
    ///
    /// # Safety
    ///
    /// As for `read`.
    #[inline(always)]
    pub(crate) unsafe fn read_racing<T: Message>(words: NonNull<u64>, _: &Racing) -> T {
        // SAFETY: the caller's promise is the same.
        unsafe { read(words, &Tracker) }
    }

    /// The word at `index`.
    ///
    /// # Safety
    ///
    /// `words` points to more than `index` words that are initialised and stay valid for `'a`.
    #[inline(always)]
    unsafe fn word<'a>(words: NonNull<u64>, index: usize) -> &'a AtomicU64 {
        // SAFETY: the caller's promise covers the address.
        let word = unsafe { words.add(index) };
        // SAFETY: the word is initialised and aligned, and all who touch it use atomics while it is shared.
        unsafe { AtomicU64::from_ptr(word.as_ptr()) }
    }

    /// Copies `value` into the words; the last one is filled up with zero bytes.
    ///
    /// A step is one load and one store, so that the loop is unrolled early and the message stays in registers.
    ///
    /// # Safety
    ///
    /// `words` points to so many initialised words as hold a `T`, in a slot that this side may write.
    #[inline(always)]
    pub(crate) unsafe fn write<T: Message>(words: NonNull<u64>, _: &Tracker, value: &T) {
        let whole = size_of::<T>() / 8;
        let from = NonNull::from(value).cast::<u64>();
        for index in 0..whole {
            // SAFETY: the word lies in the value.
            let chunk = unsafe { from.add(index) };
            // SAFETY: as above; a message has no padding, so all its bytes are initialised.
            let chunk = unsafe { chunk.read_unaligned() };
            // SAFETY: `index` is below the number of words.
            let word = unsafe { word(words, index) };
            // ORDERING: Relaxed: the slot's sequence word publishes the payload (R1).
            word.store(chunk, Ordering::Relaxed);
        }
        let rest = &value.as_bytes()[whole * 8..];
        if !rest.is_empty() {
            let mut chunk = [0; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            // SAFETY: a rest takes one word more.
            let word = unsafe { word(words, whole) };
            // ORDERING: Relaxed: as above.
            word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
    }

    /// Copies a message out of the words. As [`write`], one load and one store a step.
    ///
    /// # Safety
    ///
    /// `words` points to so many initialised words as hold a `T`.
    #[inline(always)]
    pub(crate) unsafe fn read<T: Message>(words: NonNull<u64>, _: &Tracker) -> T {
        let whole = size_of::<T>() / 8;
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr().cast::<u64>();
        for index in 0..whole {
            // SAFETY: `index` is below the number of words.
            let word = unsafe { word(words, index) };
            // ORDERING: Relaxed: the slot's sequence word was read before (A1).
            let chunk = word.load(Ordering::Relaxed);
            // SAFETY: the word lies in the value.
            let place = unsafe { to.add(index) };
            // SAFETY: as above.
            unsafe { place.write_unaligned(chunk) };
        }
        let rest = size_of::<T>() % 8;
        if rest > 0 {
            // SAFETY: a rest takes one word more.
            let word = unsafe { word(words, whole) };
            // ORDERING: Relaxed: as above.
            let chunk = word.load(Ordering::Relaxed).to_ne_bytes();
            // SAFETY: the rest lies behind the whole words of the value.
            let place = unsafe { to.add(whole) };
            // SAFETY: as above, and the chunk is on the stack.
            unsafe { place.cast::<u8>().copy_from_nonoverlapping(chunk.as_ptr(), rest) };
        }
        // SAFETY: every byte was written, and any bytes are a message.
        unsafe { value.assume_init() }
    }
}

#[cfg(loom)]
mod model {
    use core::ptr::NonNull;

    use loom::cell::{ConstPtr, MutPtr, UnsafeCell};

    use crate::Message;
    use crate::sync::{Ordering, death};

    /// Stands for the whole payload of a slot: loom sees who reads and who writes it.
    #[derive(Debug)]
    pub(crate) struct Tracker(UnsafeCell<()>);

    /// An access under way, as long as a grant lives.
    #[derive(Debug)]
    #[allow(dead_code)]
    pub(crate) enum Access {
        Reading(ConstPtr<()>),
        Writing(MutPtr<()>),
    }

    impl Access {
        /// Says that the access is over, before a word that hands the slot on is written.
        pub(crate) fn end(self) {}
    }

    impl Tracker {
        pub(crate) fn new() -> Self {
            Self(UnsafeCell::new(()))
        }

        pub(crate) fn reading(&self) -> Access {
            Access::Reading(self.0.get())
        }

        pub(crate) fn writing(&self) -> Access {
            assert!(death::spares_write(), "no destructor writes a payload");
            Access::Writing(self.0.get_mut())
        }
    }

    /// Most words that a message has in a model of a ring whose payload is read while it is written.
    const RACING_WORDS: usize = 2;

    /// The words of such a message: atomics of loom's, since its reader relies on no edge before it has read them.
    #[derive(Debug)]
    pub(crate) struct Racing([loom::sync::atomic::AtomicU64; RACING_WORDS]);

    impl Racing {
        pub(crate) fn new() -> Self {
            Self(core::array::from_fn(|_| loom::sync::atomic::AtomicU64::new(0)))
        }

        fn words<T>(&self) -> &[loom::sync::atomic::AtomicU64] {
            &self.0[..size_of::<T>().div_ceil(8)]
        }
    }

    /// As in production, word by word, beside the slot.
    ///
    /// # Safety
    ///
    /// None: it is unsafe as in production.
    pub(crate) unsafe fn write_racing<T: Message>(_: NonNull<u64>, racing: &Racing, value: &T) {
        for (word, bytes) in racing.words::<T>().iter().zip(value.as_bytes().chunks(8)) {
            let mut chunk = [0; 8];
            chunk[..bytes.len()].copy_from_slice(bytes);
            assert!(death::spares_write(), "no destructor writes a payload");
            // ORDERING: Relaxed: what orders it is the ring's to say.
            word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
    }

    /// As in production, word by word, beside the slot.
    ///
    /// # Safety
    ///
    /// None: it is unsafe as in production.
    pub(crate) unsafe fn read_racing<T: Message>(_: NonNull<u64>, racing: &Racing) -> T {
        let mut value = T::new_zeroed();
        for (word, bytes) in racing.words::<T>().iter().zip(value.as_mut_bytes().chunks_mut(8)) {
            // ORDERING: Relaxed: as above.
            let chunk = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&chunk[..bytes.len()]);
        }
        value
    }

    /// As in production, but plain and tracked.
    ///
    /// # Safety
    ///
    /// As in production.
    pub(crate) unsafe fn write<T: Message>(words: NonNull<u64>, tracker: &Tracker, value: &T) {
        let _access = tracker.writing();
        // SAFETY: the words hold a `T`; loom reports whoever else is at them.
        unsafe { words.cast::<T>().as_ptr().copy_from_nonoverlapping(value, 1) }
    }

    /// As in production, but plain and tracked.
    ///
    /// # Safety
    ///
    /// As in production.
    pub(crate) unsafe fn read<T: Message>(words: NonNull<u64>, tracker: &Tracker) -> T {
        let _access = tracker.reading();
        // SAFETY: the words hold a `T`, which any bit pattern is; loom reports whoever else is at them.
        unsafe { words.cast::<T>().read() }
    }
}
