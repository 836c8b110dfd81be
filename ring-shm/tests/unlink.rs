//! Removing names: one's own, and nobody else's.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{TestName, unlocked, word};
use ring_shm::{Error, unlink};

#[test]
fn a_name_that_is_not_there_is_missing() {
    let name = TestName::new("gone");
    assert_eq!(unlink(&name), Err(Error::Missing));
    let segment = unlocked().create(&name, 4096).unwrap().publish();
    assert_eq!(segment.unlink(), Ok(()));
    assert_eq!(segment.unlink(), Err(Error::Missing));
    assert_eq!(unlink(&name), Err(Error::Missing));
}

#[test]
fn whoever_has_it_mapped_keeps_it() {
    let name = TestName::new("mapped");
    let segment = unlocked().create(&name, 4096).unwrap().publish();
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    attached.unlink().unwrap();
    word(&segment, 0).store(7, Ordering::Relaxed);
    assert_eq!(word(&attached, 0).load(Ordering::Relaxed), 7);
    assert_eq!(unlocked().attach(&name, Duration::ZERO).unwrap_err(), Error::Missing);
}

#[test]
fn a_successor_is_left_alone() {
    let name = TestName::new("successor");
    let old = unlocked().create(&name, 4096).unwrap().publish();
    unlink(&name).unwrap();
    let new = unlocked().create(&name, 4096).unwrap().publish();
    assert_eq!(old.unlink(), Err(Error::Replaced));
    assert!(name.path().exists());
    assert_eq!(new.unlink(), Ok(()));
    assert!(!name.path().exists());
}
