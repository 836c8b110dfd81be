//! What a handle has done so far, for whoever watches.

use alloc::sync::Arc;
// Not those of the models: nothing depends on the figures.
use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What a handle has done since it was made.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        /// The figures while the handle is at work. Only the handle writes.
        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            $(pub(crate) $name: Count,)+
        }

        impl Tally {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Looks at the ring while spinning, with a pause before each.
    spins,
    /// Looks at the ring after another thread was let run.
    yields,
    /// Times that it went to sleep.
    sleeps,
    /// Sleeps that ended because somebody woke it.
    wakes_received,
    /// Of those, after how many there was nothing to be had.
    spurious_wakes,
    /// Messages, or room, found when a slice of sleep was over and nobody had woken it: the other side does not wake,
    /// or was killed while it did.
    found_unwoken,
    /// Times that it woke those who slept on the other side.
    wakes_sent,
    /// Times that it had something for the other side, and nobody there slept.
    wakes_saved,
}

/// A number that one thread raises and any reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        // ORDERING: Relaxed: a figure, and only this handle writes it.
        let value = self.0.load(Ordering::Relaxed);
        // ORDERING: Relaxed: as above.
        self.0.store(value.wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // ORDERING: Relaxed: a figure.
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads the counters of a handle from any thread, while the handle works or waits, and afterwards.
///
/// ```
/// use ring_core::{HeapRegion, spsc};
/// use ring_notify::Options;
///
/// let layout = spsc::Layout::<u64>::new(4)?;
/// let region = HeapRegion::new(layout.bytes());
/// let (producer, _consumer) = spsc::create(&region, &layout)?;
/// let mut sender = Options::new().sender(producer)?;
/// let watch = sender.watch();
/// sender.send(1).unwrap();
/// assert_eq!(watch.counters().wakes_saved, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Watch(pub(crate) Arc<Tally>);

impl Watch {
    /// The figures now. Each is exact; they may be of slightly different moments.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.0.read()
    }
}
