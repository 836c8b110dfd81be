//! What the tests share: other processes, rings that two of them have at different addresses, and time.
//!
//! # Safety
//!
//! A forked child calls what its test says, and ends without cleaning up: it neither returns nor drops what it got a
//! copy of. Other threads may have held locks when it was forked: none that a ring, a segment or the allocator needs
//! (the allocator's are taken around a fork by the C library).
#![allow(unsafe_code)]
#![allow(dead_code, unused_imports)] // Each test binary uses a part.

#[path = "../../../ring-shm/tests/common/mod.rs"]
mod shm;

use core::ffi::c_int;
use core::time::Duration;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use ring_core::{Region, spsc};
use ring_notify::{Barrier, Event, Options, Strategy};
use ring_shm::{NewSegment, Segment};
pub(crate) use shm::{is_long, skip, unlocked, word};

/// As long as anything may take that has to end. No figure of merit: machines that test are busy.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The words of those who wait, for messages and for room, as [`word`] counts.
pub(crate) const WAIT_WORDS: [usize; 2] = [8, 9];

/// Somebody sleeps, on a futex or an event: the bits of such a word.
pub(crate) const ASLEEP: u64 = 3 << 32;

/// So many in a run of the tests, and so many in one that is as long as a release is worth.
pub(crate) fn count(short: u64, long: u64) -> u64 {
    if is_long() { long } else { short }
}

/// Another process. Killed on drop.
#[derive(Debug)]
pub(crate) struct Other {
    id: libc::pid_t,
    is_over: bool,
}

impl Other {
    /// Forks a process that does this, and then ends.
    pub(crate) fn fork(act: impl FnOnce()) -> Self {
        complain_of_panics();
        // SAFETY: the child does what the module's documentation says.
        let id = unsafe { libc::fork() };
        if id == 0 {
            // Should nobody be left to kill it.
            // SAFETY: no conditions.
            unsafe { libc::alarm(if is_long() { 3600 } else { 60 }) };
            let result = std::panic::catch_unwind(core::panic::AssertUnwindSafe(act));
            // SAFETY: no conditions.
            unsafe { libc::_exit(result.is_err().into()) }
        }
        assert!(id > 0, "cannot fork");
        Self { id, is_over: false }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // SAFETY: a child that was not waited for yet.
        unsafe { libc::kill(self.id, libc::SIGKILL) };
        self.wait();
    }

    /// Has a signal sent to it.
    pub(crate) fn signal(&self, number: c_int) {
        // SAFETY: a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(self.id, number) }, 0);
    }

    /// Waits for its end, which must be a success.
    pub(crate) fn finish(mut self) {
        assert_eq!(self.wait(), 0, "the other process failed");
    }

    fn wait(&mut self) -> c_int {
        let mut status = 0;
        // SAFETY: a child that was not waited for yet; the status is written to the integer.
        assert_eq!(unsafe { libc::waitpid(self.id, &raw mut status, 0) }, self.id);
        self.is_over = true;
        status
    }

    /// Waits until it sleeps in the kernel.
    pub(crate) fn wait_until_it_sleeps(&self) {
        wait_until_asleep(self.id);
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
        }
    }
}

/// Has panics of forked children be seen. Set before the fork: another thread may panic just then, and hold the lock.
fn complain_of_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let (usual, parent) = (std::panic::take_hook(), std::process::id());
        std::panic::set_hook(Box::new(move |panic| match std::process::id() == parent {
            true => usual(panic),
            false => complain(&format!("\nin the other process: {panic}\n")),
        }));
    });
}

/// Where the test harness does not catch it.
fn complain(text: &str) {
    // SAFETY: the buffer has that length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// This thread, to the kernel.
pub(crate) fn thread_id() -> libc::pid_t {
    // SAFETY: no conditions.
    unsafe { libc::gettid() }
}

/// Waits until a thread of any process sleeps in the kernel.
pub(crate) fn wait_until_asleep(thread: libc::pid_t) {
    soon(|| {
        let state = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
        state.rsplit_once(')').unwrap().1.starts_with(" S")
    });
}

/// Waits for what must come.
pub(crate) fn soon(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "not within {LONG:?}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Does what must end, in a thread, and gives the result. A failure instead of a test that hangs.
pub(crate) fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    started(act).end()
}

/// What a thread does meanwhile.
#[derive(Debug)]
pub(crate) struct Started<T> {
    result: mpsc::Receiver<T>,
    /// The thread, to the kernel.
    pub(crate) id: libc::pid_t,
}

/// Starts something in a thread.
pub(crate) fn started<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Started<T> {
    let (send, result) = mpsc::channel();
    let (send_id, id) = mpsc::channel();
    std::thread::spawn(move || {
        send_id.send(thread_id()).unwrap();
        let _ = send.send(act());
    });
    Started { result, id: id.recv().unwrap() }
}

impl<T> Started<T> {
    pub(crate) fn end(self) -> T {
        let limit = if is_long() { Duration::from_secs(3600) } else { 3 * LONG };
        match self.result.recv_timeout(limit) {
            Ok(value) => value,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("not within {limit:?}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("the thread failed"),
        }
    }

    pub(crate) fn is_over_within(&self, limit: Duration) -> Option<T> {
        self.result.recv_timeout(limit).ok()
    }

    pub(crate) fn wait_until_it_sleeps(&self) {
        wait_until_asleep(self.id);
    }
}

/// A segment with a ring in it.
pub(crate) fn segment(
    bytes: usize,
    init: impl FnOnce(&NewSegment) -> Result<(), ring_core::Error>,
) -> Segment {
    let new = unlocked().create_anonymous(bytes).unwrap();
    init(&new).unwrap();
    new.publish()
}

/// The same memory at another address.
pub(crate) fn mapped_again(segment: &Segment) -> Segment {
    let again = unlocked().attach_fd(segment.inheritable().unwrap(), LONG).unwrap();
    assert_ne!(again.base(), segment.base(), "two addresses");
    again
}

/// A segment with a ring of one slot in it.
pub(crate) fn one_slot() -> Segment {
    let layout = spsc::Layout::<u64>::new(1).unwrap();
    segment(layout.bytes(), |new| layout.init(new))
}

/// The same segment, attached as another process does: a side of its ring.
pub(crate) fn attach<S: ring_shm::Side>(segment: &Segment) -> S {
    unlocked().attach_ring_fd(segment.inheritable().unwrap(), LONG).unwrap()
}

/// What a side sleeps on: a futex, or events for messages and for room.
#[derive(Debug, Clone)]
pub(crate) enum Bed {
    Futex,
    Events([Arc<Event>; 2]),
}

impl Bed {
    pub(crate) fn events() -> Self {
        Self::Events([0; 2].map(|_| Arc::new(Event::new().unwrap())))
    }

    pub(crate) fn each() -> [Self; 2] {
        [Self::Futex, Self::events()]
    }

    /// The strategy that sleeps on it.
    pub(crate) fn strategy(&self) -> Strategy {
        match self {
            Self::Futex => Strategy::futex(),
            Self::Events(_) => Strategy::event(),
        }
    }

    /// Options that sleep at once, and for ever.
    pub(crate) fn options(&self, barrier: Barrier) -> Options {
        let options = Options::new().barrier(barrier).slice(None).strategy(self.strategy().spins(0));
        match self {
            Self::Futex => options,
            Self::Events([messages, room]) => {
                options.messages_event(Arc::clone(messages)).room_event(Arc::clone(room))
            }
        }
    }
}

pub(crate) const BARRIERS: [Barrier; 2] = [Barrier::Asymmetric, Barrier::Plain];

/// Options that sleep at once and for ever, on each bed and with each barrier.
pub(crate) fn each_sleepy() -> Vec<Options> {
    Bed::each().iter().flat_map(|bed| BARRIERS.map(|barrier| bed.options(barrier))).collect()
}

/// CPU time of this process so far.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// System calls of this thread, and of what it starts, fail with this error from now on.
pub(crate) fn refuse(calls: &[libc::c_long], error: c_int) {
    filter(calls, libc::SECCOMP_RET_ERRNO | u32::try_from(error).unwrap());
}

/// This process ends should it make one of these system calls from now on.
pub(crate) fn forbid(calls: &[libc::c_long]) {
    filter(calls, libc::SECCOMP_RET_KILL_PROCESS);
}

fn filter(calls: &[libc::c_long], verdict: u32) {
    let instruction = |code: u32, jump: usize, value: u32| libc::sock_filter {
        code: code.try_into().unwrap(),
        jt: jump.try_into().unwrap(),
        jf: 0,
        k: value,
    };
    const NUMBER_OFFSET: u32 = 0;
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, NUMBER_OFFSET)];
    for (index, call) in calls.iter().enumerate() {
        // Over the other comparisons and the permission.
        let jump = calls.len() - index;
        let number = u32::try_from(*call).unwrap();
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump, number));
    }
    for result in [libc::SECCOMP_RET_ALLOW, verdict] {
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, result));
    }
    let filter = libc::sock_fprog { len: program.len().try_into().unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: integers only.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the kernel copies the program, which has that length.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    assert_eq!(result, 0, "cannot filter system calls: {}", std::io::Error::last_os_error());
}

/// An event as it is where the kernel refuses eventfds.
pub(crate) fn event_without_eventfd() -> Event {
    // In a thread of its own, since a filter is for good.
    in_time(|| {
        refuse(&[libc::SYS_eventfd2], libc::EPERM);
        Event::new().unwrap()
    })
}
