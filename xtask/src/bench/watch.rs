//! The watch over the peer: one that dies or hangs ends the run, within a bound.
//!
//! The lead spins on words that only its peer writes, with no time-out in its loops, which would be measured
//! with the rest. So a thread sleeps beside it, wakes when the connection breaks or a time is up, and then ends
//! the whole process. The peer, for its part, is killed by the kernel when its parent is gone.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::say::warn;

/// Between two looks at the progress. Rare, since the watch may run on a core that is being measured.
const LOOK: Duration = Duration::from_secs(5);

/// Looks without progress that make a hang.
const PATIENCE: u32 = 2;

/// What the watch and the watched share.
#[derive(Debug, Default)]
struct Shared {
    progress: AtomicU64,
    over: AtomicBool,
}

/// Held while the peer is expected to live and to get on.
#[derive(Debug)]
pub(crate) struct Watch(Arc<Shared>);

impl Watch {
    /// Watches the process at the other end of a connection.
    pub(crate) fn begin(control: UnixStream) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        thread::Builder::new().name("watch".into()).spawn(move || watch(&control, &watched))?;
        Ok(Self(shared))
    }

    /// Says that the run gets on.
    pub(crate) fn progress(&self) {
        // ORDERING: Relaxed: a number that changes; nothing is read because of it.
        self.0.progress.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the peer is dismissed by a system call after this one.
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn watch(control: &UnixStream, shared: &Shared) {
    let timeout = Timespec { tv_sec: LOOK.as_secs() as i64, tv_nsec: 0 };
    let mut last = 0;
    let mut idle = 0;
    loop {
        let mut broken = [PollFd::new(control, PollFlags::RDHUP)];
        let events = poll(&mut broken, Some(&timeout));
        // ORDERING: Relaxed: a run that is over has said so before the connection broke.
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        match events {
            Ok(0) => {}
            Err(rustix::io::Errno::INTR) => continue,
            _ => peer_is_gone(),
        }
        // ORDERING: Relaxed: whether it has changed is all that matters.
        let progress = shared.progress.load(Ordering::Relaxed);
        idle = if progress == last { idle + 1 } else { 0 };
        last = progress;
        if idle >= PATIENCE {
            end("the peer process hangs: nothing has come from it for ten seconds; the run is over");
        }
    }
}

/// Ends the process: a run without its peer is over.
pub(crate) fn peer_is_gone() -> ! {
    end("the peer process is gone in the middle of a run; it may have said why above")
}

fn end(message: &str) -> ! {
    static SAID: OnceLock<()> = OnceLock::new();
    SAID.get_or_init(|| warn(format_args!("\nerror: {message}\n")));
    std::process::exit(1)
}
