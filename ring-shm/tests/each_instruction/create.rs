//! A creator dies before or after one of its system calls: nobody takes what it leaves for something else, and it is in
//! nobody's way.

use core::time::Duration;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring_core::spsc::{Consumer, Layout, Producer};
use ring_shm::{Claim, Error, Segment};

use crate::common::{TestName, unlocked};
use crate::{Killed, Message, Pace, SOON, Victim, in_time, killed_at_each, message};

const DEPTH: u64 = 4;

type Tx = Producer<Message, Claim>;
type Rx = Consumer<Message, Claim>;

/// One test at a time: a victim of another that is stopped while it removes what was left keeps it from being removed.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout() -> Layout<Message> {
    Layout::new(DEPTH).unwrap()
}

/// What `create` makes is killed with its process.
fn creator_dies<T>(prepare: fn(&str), create: fn(&str) -> T) {
    let _alone = alone();
    killed_at_each(
        Pace::Call,
        || {
            let name = TestName::new("killed-creator");
            prepare(&name);
            name
        },
        |name, mark| {
            mark();
            let made = create(name);
            mark();
            drop(made);
        },
        |name, killed| {
            match in_time(|| unlocked().attach(&name, Duration::from_millis(5))) {
                Ok(_) => {}
                Err(Error::Missing | Error::NotReady { .. }) => assert!(!killed.is_through, "it is there"),
                Err(error) => panic!("after {} stops: {error:?}", killed.after),
            }
            replace(&name, &killed);
            assert!(!name.path().exists());
            assert_eq!(temporary_of(killed.process), 0, "after {} stops", killed.after);
        },
    );
}

/// Somebody else goes on with the ring that is there, or makes it.
fn replace(name: &str, killed: &Killed) {
    let is_there = unlocked().attach(name, Duration::ZERO).is_ok();
    let mut producer: Tx = in_time(|| match !is_there && killed.after % 2 == 0 {
        true => unlocked().create_ring(name, &layout()),
        false => unlocked().open_ring(name, &layout(), SOON),
    })
    .unwrap_or_else(|error| panic!("after {} stops: {error:?}", killed.after));
    let mut consumer: Rx = in_time(|| unlocked().attach_ring(name, SOON)).unwrap();
    for number in 0..3 * DEPTH {
        producer.try_push(message(number)).unwrap();
        assert_eq!(consumer.try_pop(), Ok(message(number)));
    }
    producer.region().unlink().unwrap();
}

/// How many files are left that a process has made and not named.
fn temporary_of(process: libc::pid_t) -> usize {
    let prefix = format!(".ring-shm-{process}-");
    let files = std::fs::read_dir("/dev/shm").unwrap();
    files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(&prefix)).count()
}

/// What others may have left: a segment that was not published, and one without a name.
fn leave_rests(name: &str) {
    let process = Victim::start(|mark| {
        let new = unlocked().create(name, 4096).unwrap();
        mark();
        drop(new);
    });
    drop(process);
    assert!(Path::new("/dev/shm").join(name).exists());
}

#[test]
fn create_ring_is_killed() {
    creator_dies(|_| {}, |name| unlocked().create_ring::<Tx>(name, &layout()).unwrap());
}

#[test]
fn open_ring_is_killed() {
    creator_dies(|_| {}, |name| unlocked().open_ring::<Tx>(name, &layout(), SOON).unwrap());
}

#[test]
fn publish_is_killed() {
    creator_dies(
        |_| {},
        |name| -> Segment {
            let new = unlocked().create(name, layout().bytes()).unwrap();
            layout().init(&new).unwrap();
            new.publish()
        },
    );
}

#[test]
fn who_replaces_what_a_killed_creator_left_is_killed() {
    creator_dies(leave_rests, |name| unlocked().create_ring::<Tx>(name, &layout()).unwrap());
}

#[test]
fn who_gives_up_is_killed() {
    let _alone = alone();
    killed_at_each(
        Pace::Call,
        || TestName::new("killed-quitter"),
        |name, mark| {
            mark();
            drop(unlocked().create(name, 4096).unwrap());
            mark();
        },
        |name, killed| {
            let error = in_time(|| unlocked().attach(&name, Duration::ZERO)).unwrap_err();
            assert!(matches!(error, Error::Missing | Error::NotReady { .. }), "{error:?}");
            replace(&name, &killed);
            assert_eq!(temporary_of(killed.process), 0);
        },
    );
}
