//! Processes that create, attach or have a role are killed at any moment, again and again, and nothing of them is left.
//!
//! With `RING_LONG=1` in the environment ten thousand are.
//!
//! # Safety
//!
//! This is the only test of its program: it has no other thread that could hold a lock when a child is forked. A child
//! uses what it has made itself, and ends by a signal.
#![allow(unsafe_code)]

mod common;

use core::time::Duration;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use common::{TestName, is_long, open_descriptors, unlocked};
use ring_core::{mpmc, spsc};
use ring_shm::{Claim, Error};

type Message = [u64; 7];

const SOON: Duration = Duration::from_millis(100);
/// How many live at a time.
const AT_A_TIME: usize = 3;

/// Numbers that look random: a linear congruential generator, by its upper bits.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn layout() -> spsc::Layout<Message> {
    spsc::Layout::new(8).unwrap()
}

fn places() -> mpmc::Layout<Message> {
    mpmc::Layout::new(8).unwrap().participants(4).unwrap()
}

/// What may come to pass while others create, remove and die.
fn is_expected(error: &Error) -> bool {
    use ring_core::Error::TooManyParticipants;
    matches!(error, Error::Exists | Error::Missing | Error::NotReady { .. } | Error::RoleTaken { .. })
        || matches!(error, Error::Replaced | Error::Ring(TooManyParticipants { .. }))
}

fn assert_whole(message: Message) {
    assert_eq!(message, [message[0]; 7]);
}

/// Does one thing with one of the rings, and keeps what it got for as long as `numbers` say.
fn act(names: &[TestName; 2], numbers: &mut Numbers) -> Result<(), Error> {
    let options = unlocked();
    let timeout = Duration::from_micros(numbers.below(300));
    let [pair, many] = names;
    match numbers.below(9) {
        0 => drop(options.create(pair, 4096)?),
        1 => drop(options.create_ring::<spsc::Producer<Message, Claim>>(pair, &layout())?),
        2 | 3 => {
            let mut producer: spsc::Producer<Message, Claim> = options.open_ring(pair, &layout(), timeout)?;
            for number in 0..numbers.below(20) {
                let _ = producer.try_push([number; 7]);
            }
        }
        4 | 5 => {
            let mut consumer: spsc::Consumer<Message, Claim> = options.attach_ring(pair, timeout)?;
            while let Ok(message) = consumer.try_pop() {
                assert_whole(message);
            }
            if numbers.below(4) == 0 {
                consumer.region().unlink()?;
            }
        }
        6 | 7 => {
            let mut producer: mpmc::Producer<Message, Claim> = options.open_ring(many, &places(), timeout)?;
            let liveness = producer.region().liveness();
            for number in 0..numbers.below(20) {
                let _ = producer.try_push_with([number; 7], &liveness);
            }
        }
        _ => {
            let mut consumer: mpmc::Consumer<Message, Claim> = options.open_ring(many, &places(), timeout)?;
            let liveness = consumer.region().liveness();
            while let Ok(message) = consumer.try_pop_with(&liveness) {
                assert_whole(message);
            }
            if numbers.below(8) == 0 {
                consumer.region().unlink()?;
            }
        }
    }
    Ok(())
}

/// A child that acts until it is killed.
struct Victim(libc::pid_t);

impl Victim {
    fn start(names: &[TestName; 2], seed: u64) -> Self {
        // SAFETY: see the top of this file.
        let process = unsafe { libc::fork() };
        if process == 0 {
            let acted = std::panic::catch_unwind(|| {
                let mut numbers = Numbers(seed);
                loop {
                    if let Err(error) = act(names, &mut numbers) {
                        assert!(is_expected(&error), "{error:?}");
                    }
                }
            });
            // SAFETY: no conditions.
            unsafe { libc::_exit(i32::from(acted.is_err())) };
        }
        assert!(process > 0, "cannot fork");
        Self(process)
    }

    fn kill(self) {
        let mut status = 0;
        // SAFETY: a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
        // SAFETY: as above; the status is written to the integer.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        assert!(libc::WIFSIGNALED(status), "it ended by itself: {status:#x}");
    }
}

/// Locks of open file descriptions on a file, as the kernel lists them.
fn locks_of(inode: u64) -> usize {
    let table = std::fs::read_to_string("/proc/locks").unwrap();
    let inode = format!(":{inode} ");
    table.lines().filter(|line| line.contains("OFDLCK") && line.contains(&inode)).count()
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::metadata(path).map(|file| file.ino()).ok()
}

#[test]
fn killed_at_any_moment_they_leave_nothing() {
    let names = [TestName::new("cycles-pair"), TestName::new("cycles-many")];
    let seed = u64::from(std::process::id());
    let mut numbers = Numbers(seed);
    let before = open_descriptors();
    let mut processes = vec![];
    let mut victims = std::collections::VecDeque::new();
    for cycle in 0..if is_long() { 10_000 } else { 300 } {
        victims.push_back(Victim::start(&names, seed.wrapping_add(cycle)));
        std::thread::sleep(Duration::from_micros(numbers.below(1500)));
        if victims.len() == AT_A_TIME {
            let victim: Victim = victims.pop_front().unwrap();
            processes.push(victim.0);
            victim.kill();
        }
    }
    for victim in victims {
        processes.push(victim.0);
        victim.kill();
    }
    for name in &names {
        let left = inode(&name.path()).map_or(0, locks_of);
        assert_eq!(left, 0, "locks of the dead on {}, seed {seed}", &**name);
    }

    // Whoever comes finds both rings of use, at once.
    let start = Instant::now();
    let mut producer: spsc::Producer<Message, Claim> =
        unlocked().open_ring(&names[0], &layout(), SOON).unwrap();
    let mut consumer: spsc::Consumer<Message, Claim> = unlocked().attach_ring(&names[0], SOON).unwrap();
    while consumer.try_pop().map(assert_whole).is_ok() {}
    producer.try_push([1; 7]).unwrap();
    assert_eq!(consumer.try_pop(), Ok([1; 7]));
    let mut pusher: mpmc::Producer<Message, Claim> =
        unlocked().open_ring(&names[1], &places(), SOON).unwrap();
    let mut popper: mpmc::Consumer<Message, Claim> = unlocked().attach_ring(&names[1], SOON).unwrap();
    let liveness = popper.region().liveness();
    while popper.try_pop_with(&liveness).map(assert_whole).is_ok() {}
    pusher.try_push_with([2; 7], &liveness).unwrap();
    assert_eq!(popper.try_pop_with(&liveness), Ok([2; 7]));
    assert!(start.elapsed() < SOON, "it took {:?}, seed {seed}", start.elapsed());

    let inodes = names.each_ref().map(|name| inode(&name.path()).unwrap());
    assert!(inodes.map(locks_of).iter().all(|locks| *locks >= 3), "the table shows locks at all");
    consumer.region().unlink().unwrap();
    popper.region().unlink().unwrap();
    drop((producer, consumer, pusher, popper, liveness));
    drop(unlocked().create(&TestName::new("cycles-last"), 4096).unwrap());
    assert_eq!(inodes.map(locks_of), [0; 2]);
    assert_eq!(open_descriptors(), before);
    assert!(!names.iter().any(|name| name.path().exists()));
    let files = std::fs::read_dir("/dev/shm").unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    for process in processes {
        let prefix = format!(".ring-shm-{process}-");
        assert!(!files.iter().any(|file| file.starts_with(&prefix)), "{prefix} is left, seed {seed}");
    }
}
