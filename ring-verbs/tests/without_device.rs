//! What is said where there is no RDMA device: no test here needs one.

use std::fs;

use ring_verbs::sys::LoadError;
use ring_verbs::{Context, Error};

/// Whether the kernel knows a device.
fn has_device() -> bool {
    fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

#[test]
fn opening_says_what_is_missing() {
    let error = Context::open("no-such-device").unwrap_err();
    let message = error.to_string();
    match error {
        Error::Library(LoadError::NoLibrary | LoadError::NoSymbol(_)) => {
            assert!(message.contains("apt-get install libibverbs1"), "{message}");
        }
        Error::NoDevice => {
            assert!(!has_device(), "there is one");
            assert!(message.contains("rdma link"), "{message}");
        }
        Error::NoSuchDevice { name } => {
            assert!(has_device(), "there is none");
            assert_eq!(name.as_str(), "no-such-device");
            assert!(message.contains("no-such-device"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}
