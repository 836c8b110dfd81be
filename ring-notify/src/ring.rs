//! What waiting needs to know of the handles of each ring.

mod broadcast;
mod bytes;
mod mpmc;
mod spsc;

pub(crate) use bytes::{pop as pop_bytes, push as push_bytes};
use ring_core::sync::{AtomicU64, WaitWords, Waitable};
use ring_core::{Liveness, Message, Owner, Region, Role};

/// What a handle waits for; whoever has the other end of the ring waits for the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A consumer waits for messages.
    Messages,
    /// A producer waits for room.
    Room,
}

impl Direction {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Messages => Self::Room,
            Self::Room => Self::Messages,
        }
    }

    #[inline(always)]
    pub(crate) fn word(self, words: &WaitWords) -> &AtomicU64 {
        match self {
            Self::Messages => &words.messages,
            Self::Room => &words.room,
        }
    }
}

/// What one try gave.
#[derive(Debug)]
pub enum Try<T> {
    /// It is over, well or not.
    Done(T),
    /// There is nothing yet, and whoever changes that wakes who sleeps.
    Nothing,
    /// Another handle is in the way. Perhaps nobody wakes who sleeps.
    Busy,
}

/// How it is with the other side.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeerState {
    /// Nobody is there any more.
    pub(crate) is_gone: bool,
    /// What somebody had claimed who has died can be had by others now.
    pub(crate) left_something: bool,
}

/// A handle of ring-core: a consumer or a producer of any of its rings, in any region.
///
/// Not to be implemented elsewhere.
pub trait Handle: Waitable + sealed::Sealed {
    /// What it waits for.
    #[doc(hidden)]
    const DIRECTION: Direction;

    /// Whether the other side ever waits for it.
    #[doc(hidden)]
    const IS_WAITED_FOR: bool = true;

    /// Whether handles of the same kind may wait for it as well: one that has claimed a message can put it back.
    #[doc(hidden)]
    const IS_ONE_OF_MANY: bool = false;

    /// Counts messages. None: this handle does not.
    #[doc(hidden)]
    #[inline(always)]
    fn position(&self) -> Option<u64> {
        None
    }

    /// Whether a try is worth it.
    #[doc(hidden)]
    fn is_ready(&mut self) -> bool;

    /// How it is with the other side. Where there are many, what the dead left is cleared up meanwhile, and the question
    /// is whether some have died and nobody else is left.
    #[doc(hidden)]
    fn peer_state(&mut self, liveness: &impl Liveness) -> PeerState;
}

/// A consumer of any ring.
///
/// Not to be implemented elsewhere.
pub trait Consumer: Handle {}

/// A producer of any ring.
///
/// Not to be implemented elsewhere.
pub trait Producer: Handle {}

/// A consumer of messages of one size.
///
/// Not to be implemented elsewhere.
pub trait Pop: Consumer {
    /// The messages.
    type Message: Message;
    /// Why nothing was popped, such as [`spsc::PopError`](ring_core::spsc::PopError).
    type Error;

    #[doc(hidden)]
    fn pop(&mut self) -> Try<Result<Self::Message, Self::Error>>;

    #[doc(hidden)]
    fn pop_slice(&mut self, values: &mut [Self::Message]) -> Try<Result<usize, Self::Error>>;

    /// Whether it says that the ring is closed and nothing is left in it.
    #[doc(hidden)]
    fn is_end(error: &Self::Error) -> bool;
}

/// A producer of messages of one size.
///
/// Not to be implemented elsewhere.
pub trait Push: Producer {
    /// The messages.
    type Message: Message;
    /// Why nothing was pushed, such as [`spsc::PushError`](ring_core::spsc::PushError). The message is in it.
    type Error;
    /// Why none of several messages was pushed.
    type SliceError;

    /// Gives the message back where there is no room.
    #[doc(hidden)]
    fn push(&mut self, value: Self::Message) -> Result<(), NotPushed<Self::Error, Self::Message>>;

    /// Some of them, from the front. An error comes without a message.
    #[doc(hidden)]
    fn push_slice(&mut self, values: &[Self::Message]) -> Try<Result<usize, Self::SliceError>>;
}

/// Why a message was not pushed.
#[derive(Debug)]
pub enum NotPushed<E, M> {
    /// For good.
    Error(E),
    /// There is no room yet.
    Full(M),
    /// Another handle is in the way.
    Busy(M),
}

pub(crate) mod sealed {
    use ring_core::{Message, Region, broadcast, bytes, mpmc, spsc};

    pub trait Sealed {}

    impl<T: Message, R: Region> Sealed for spsc::Producer<T, R> {}
    impl<T: Message, R: Region> Sealed for spsc::Consumer<T, R> {}
    impl<R: Region> Sealed for bytes::Producer<R> {}
    impl<R: Region> Sealed for bytes::Consumer<R> {}
    impl<T: Message, R: Region> Sealed for mpmc::Producer<T, R> {}
    impl<T: Message, R: Region> Sealed for mpmc::Consumer<T, R> {}
    impl<T: Message, R: Region> Sealed for broadcast::Producer<T, R> {}
    impl<T: Message, R: Region> Sealed for broadcast::Consumer<T, R> {}
}

/// Whether the owner of the one role on the other side has died, or has given the role back. Not where nobody ever had it.
fn is_gone(region: &impl Region, role: Role, owner: Owner, liveness: &impl Liveness) -> PeerState {
    let is_gone = owner.incarnation > 0 && liveness.is_gone(region.base(), role, owner);
    PeerState { is_gone, left_something: false }
}
