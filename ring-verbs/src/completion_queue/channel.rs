//! Waiting for completions instead of polling.
//!
//! An event is asked for once, and comes once: at the next completion after it was asked for. So a queue is armed,
//! then looked at, and only then slept on. Events are acknowledged in batches, since that takes a lock.
//!
//! # Safety
//!
//! The library's channel is destroyed after its queues: each holds it by a reference count. One thread at a time reads
//! its events. A queue that an event came for is there until the event is acknowledged: destroying it waits for that.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::time::Duration;

use super::{CompletionQueue, Shared};
use crate::Errno;
use crate::context::{Context, Open};
use crate::deadline::Deadline;
use crate::error::{Error, Operation};
use crate::sync::Ordering;
use crate::sys::{self, ibv_comp_channel, ibv_cq};
use crate::system;

/// Events that a queue collects before they are acknowledged.
const BATCH: u32 = 32;

/// A descriptor that is readable when a queue that was armed has got a completion. Several queues can share it.
///
/// ```no_run
/// # let context = ring_verbs::Context::open("rxe0")?;
/// use ring_verbs::{CompletionChannel, CompletionQueue, CompletionQueueOptions, Slab};
///
/// let mut channel = CompletionChannel::new(&context)?;
/// let options = CompletionQueueOptions::new(64).channel(&channel);
/// let mut queue: CompletionQueue<Slab> = options.build(&context)?;
/// while queue.wait(&mut channel, None)? {
///     while let Some(completion) = queue.poll()? {
///         println!("{completion:?}");
///     }
/// }
/// # Ok::<(), ring_verbs::Error>(())
/// ```
#[derive(Debug)]
pub struct CompletionChannel {
    shared: Arc<Channel>,
}

/// Destroyed with the last reference.
#[derive(Debug)]
pub(super) struct Channel {
    raw: NonNull<ibv_comp_channel>,
    pub(super) open: Arc<Open>,
}

// SAFETY: the library's verbs can be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above, from several at the same time.
unsafe impl Sync for Channel {}

/// A completion queue that one waits for, whatever its buffers are.
pub trait Armable: sealed::Sealed {}

impl<B> Armable for CompletionQueue<B> {}

mod sealed {
    use super::{Error, ibv_cq};

    pub trait Sealed {
        /// Asks for an event, where none is on the way, and says whether completions are there already.
        fn arm(&mut self) -> Result<bool, Error>;

        /// What events name it by.
        fn raw(&self) -> *mut ibv_cq;

        /// The event has come, and is to be acknowledged.
        fn event_came(&mut self);
    }
}

impl CompletionChannel {
    /// A channel that no queue uses yet: name it when one is made.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the process has too many descriptors.
    pub fn new(context: &Context) -> Result<Self, Error> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.open.functions.ibv_create_comp_channel)(context.as_raw()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::of(Operation::CreateChannel, Errno::last()))?;
        let channel = Channel { raw, open: Arc::clone(&context.open) };
        system::set_nonblocking(channel.fd()).map_err(|errno| Error::of(Operation::CreateChannel, errno))?;
        Ok(Self { shared: Arc::new(channel) })
    }

    pub(super) fn shared(&self) -> &Arc<Channel> {
        &self.shared
    }

    /// Waits until one of `queues` has completions, at most for `timeout` (none: without end); says whether one has.
    /// Queues of other channels, or of none, are polled only, before it sleeps.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn wait(
        &mut self,
        queues: &mut [&mut dyn Armable],
        timeout: Option<Duration>,
    ) -> Result<bool, Error> {
        let deadline = timeout.map(Deadline::after);
        loop {
            if self.arm(queues)? {
                return Ok(true);
            }
            match system::wait_readable(self.shared.fd(), deadline) {
                Ok(true) => self.clear(queues)?,
                Ok(false) => return Ok(false),
                Err(errno) => return Err(Error::of(Operation::Wait, errno)),
            }
        }
    }

    /// Makes the descriptor readable when one of `queues` gets a completion, for a poll or epoll loop of one's own.
    /// True where completions are there already: then poll them and call this again before sleeping.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn arm(&mut self, queues: &mut [&mut dyn Armable]) -> Result<bool, Error> {
        let mut is_ready = false;
        for queue in queues {
            is_ready |= queue.arm()?;
        }
        Ok(is_ready)
    }

    /// Takes the events that are there, after the descriptor was readable. Poll all queues afterwards, and arm them
    /// again.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn clear(&mut self, queues: &mut [&mut dyn Armable]) -> Result<(), Error> {
        while let Some(event) = self.shared.next_event()? {
            match queues.iter_mut().find(|queue| queue.raw() == event.queue) {
                Some(queue) => queue.event_came(),
                None => event.leave(&self.shared),
            }
        }
        Ok(())
    }
}

#[cfg(feature = "std")]
impl std::os::fd::AsFd for CompletionChannel {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        // SAFETY: the descriptor is the channel's, which outlives the borrow.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.shared.fd()) }
    }
}

/// Which queue has got a completion.
struct Event {
    queue: *mut ibv_cq,
    /// Its `Shared`, whatever its buffers are: the word behind this is at the same place in all.
    context: *mut c_void,
}

impl Channel {
    pub(super) fn as_raw(&self) -> *mut ibv_comp_channel {
        self.raw.as_ptr()
    }

    fn fd(&self) -> c_int {
        // SAFETY: the channel is there, and nobody writes this.
        unsafe { (*self.raw.as_ptr()).fd }
    }

    /// The next event, where one is there.
    fn next_event(&self) -> Result<Option<Event>, Error> {
        let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is there, and both can be written.
        let returned = unsafe {
            (self.open.functions.ibv_get_cq_event)(self.as_raw(), &raw mut queue, &raw mut context)
        };
        if returned == 0 {
            return Ok(Some(Event { queue, context }));
        }
        match Errno::last() {
            Errno(libc::EAGAIN | libc::EINTR) => Ok(None),
            errno => Err(Error::of(Operation::Wait, errno)),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.open.is_ours() {
            // SAFETY: no queue uses it any more.
            unsafe { (self.open.functions.ibv_destroy_comp_channel)(self.as_raw()) };
        }
    }
}

impl Event {
    /// Of a queue that is not waited for now: it will find that its event has come.
    fn leave(self, channel: &Channel) {
        // SAFETY: the queue, and so what its context points at, is there until the event is acknowledged. The layout is
        // fixed, with this word in front, whatever the buffers are. It is null where the library could not destroy it.
        if let Some(shared) = unsafe { self.context.cast::<Shared<()>>().as_ref() } {
            // ORDERING: Relaxed: who waits for the queue later has `&mut` of the channel, handed over by an edge of its own.
            shared.missed.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: an event of this queue came, and is acknowledged once.
        unsafe { (channel.open.functions.ibv_ack_cq_events)(self.queue, 1) };
    }
}

impl<B> sealed::Sealed for CompletionQueue<B> {
    fn arm(&mut self) -> Result<bool, Error> {
        if self.has_taken() {
            return Ok(true);
        }
        // ORDERING: Relaxed: as in Event::leave.
        let missed = self.shared.0.missed.load(Ordering::Relaxed);
        if missed != self.missed {
            self.missed = missed;
            self.is_armed = false;
        }
        if !self.is_armed && self.shared.0.channel.is_some() {
            let solicited = c_int::from(self.is_solicited_only);
            // SAFETY: the queue is there, and has a channel.
            let returned = unsafe { sys::req_notify_cq(self.shared.0.as_raw(), solicited) };
            Errno::check(returned).map_err(|errno| Error::of(Operation::Arm, errno))?;
            self.is_armed = true;
        }
        // What came before it was armed makes no event.
        // An error shows in the poll that follows.
        Ok(self.refill() != 0 || self.has_left())
    }

    fn raw(&self) -> *mut ibv_cq {
        self.shared.0.as_raw()
    }

    fn event_came(&mut self) {
        self.is_armed = false;
        self.to_acknowledge += 1;
        if self.to_acknowledge == BATCH {
            self.acknowledge();
        }
    }
}

impl<B> CompletionQueue<B> {
    /// Acknowledges the events that came, which takes the library's lock once for all of them.
    fn acknowledge(&mut self) {
        let count = core::mem::take(&mut self.to_acknowledge);
        if count > 0 && self.shared.0.open.is_ours() {
            // SAFETY: so many events of this queue came and were not acknowledged.
            unsafe { (self.shared.0.open.functions.ibv_ack_cq_events)(self.shared.0.as_raw(), count) };
        }
    }

    /// Waits until there are completions, at most for `timeout` (none: without end); says whether there are.
    ///
    /// A queue pair that is dropped meanwhile makes no event, and its buffers are given out when something else ends the
    /// wait: drive it to [error](crate::QueuePair::into_error) first.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the device is gone.
    pub fn wait(
        &mut self,
        channel: &mut CompletionChannel,
        timeout: Option<Duration>,
    ) -> Result<bool, Error> {
        channel.wait(&mut [self], timeout)
    }
}

impl<B> Drop for CompletionQueue<B> {
    fn drop(&mut self) {
        self.acknowledge();
    }
}
