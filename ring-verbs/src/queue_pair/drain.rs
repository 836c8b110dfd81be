//! Ending a queue pair with an account of every buffer.

use core::time::Duration;

use super::QueuePair;
use super::kinds::Errored;
use crate::completion::{Completion, PollError};
use crate::completion_queue::CompletionQueue;
use crate::deadline::Deadline;
use crate::system;

impl<T, B> QueuePair<T, Errored, B> {
    /// Polls `queues`, those of its sends and receives, until nothing of its own is in flight, at most for `timeout`, and
    /// gives each completion to `each`: others' too, where others use the queues. Says whether nothing is left. What
    /// is, comes back when the queue pair is dropped. Receives of a shared queue stay there.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::poll`].
    pub fn drain(
        &mut self,
        queues: &mut [&mut CompletionQueue<B>],
        timeout: Duration,
        mut each: impl FnMut(Completion<B>),
    ) -> Result<bool, PollError> {
        let deadline = Deadline::after(timeout);
        while self.sends_in_flight() > 0 || self.receives_in_flight() > 0 {
            let mut is_idle = true;
            for queue in &mut *queues {
                // What can be there at a time: others may post as fast as this polls.
                for _ in 0..queue.capacity() {
                    let Some(completion) = queue.poll()? else { break };
                    each(completion);
                    is_idle = false;
                }
            }
            if deadline.late().is_some() {
                return Ok(self.sends_in_flight() == 0 && self.receives_in_flight() == 0);
            }
            if is_idle {
                system::yield_now();
            }
        }
        Ok(true)
    }
}
