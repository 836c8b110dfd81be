//! One line that says how far a run is, where somebody watches.

use std::io::{IsTerminal, Write, stderr};

/// Says it on a terminal, and nothing elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    suite: &'static str,
    rounds: u32,
    is_watched: bool,
}

impl Progress {
    pub(crate) fn new(suite: &'static str, rounds: u32) -> Self {
        Self { suite, rounds, is_watched: stderr().is_terminal() }
    }

    /// Says that a round begins; rounds count from 0.
    pub(crate) fn round(&self, round: u32) {
        if self.is_watched {
            eprint!("\r\x1b[K{}: round {} of {}", self.suite, round + 1, self.rounds);
            let _ = stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_watched {
            eprint!("\r\x1b[K");
        }
    }
}
