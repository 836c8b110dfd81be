//! One line that says how far a run is.

use crate::say;

/// Says it, and takes it back at the end.
#[derive(Debug)]
pub(crate) struct Progress {
    suite: &'static str,
    rounds: u32,
}

impl Progress {
    pub(crate) fn new(suite: &'static str, rounds: u32) -> Self {
        Self { suite, rounds }
    }

    /// Says that a round begins; rounds count from 0.
    pub(crate) fn round(&self, round: u32) {
        say::progress(format_args!("{}: round {} of {}", self.suite, round + 1, self.rounds));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        say::progress(format_args!(""));
    }
}
