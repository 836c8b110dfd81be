//! What cannot be had, and what is said then.

use std::process::Command;
use std::time::Instant;

use ring_verbs::sys::LoadError;
use ring_verbs::{Context, Errno, Error, PoolOptions, ProtectionDomain};

use crate::Tests;
use crate::child;
use crate::objects::nothing_is_left;
use crate::rig::{PATIENCE, Rig, device_name, pair_names};

pub(crate) const TESTS: Tests = &[
    ("no_such_device", no_such_device),
    ("no_such_port", no_such_port),
    ("no_such_address", no_such_address),
    ("the_limit_of_locked_memory", || child::run("the_limit_of_locked_memory")),
];

/// These need to be root, to take rights away from a child of theirs.
pub(crate) const TESTS_OF_ROOT: Tests = &[
    ("the_device_may_not_be_opened", || child::run("the_device_may_not_be_opened")),
    ("the_device_has_no_file", || child::run("the_device_has_no_file")),
    ("the_library_is_not_there", || child::run("the_library_is_not_there")),
];

/// These need to be root too, and two devices whose network interfaces are `va` and `vb`.
pub(crate) const TESTS_OF_A_PAIR: Tests =
    &[("the_port_is_down", the_port_is_down), ("the_port_has_no_address", the_port_has_no_address)];

fn no_such_device() {
    let name = "no-such-device";
    match Context::open(name) {
        Err(Error::NoSuchDevice { name: named }) => assert_eq!(named.as_str(), name),
        other => panic!("{other:?}"),
    }
}

fn no_such_port() {
    let context = Context::open(&device_name().expect("a device")).unwrap();
    let ports = context.attributes().unwrap().phys_port_cnt;
    for port in [0, ports + 1] {
        assert_eq!(context.port(port).unwrap_err(), Error::NoSuchPort { port, ports });
    }
}

fn no_such_address() {
    let rig = Rig::new();
    let table = u32::try_from(rig.port.attributes().gid_tbl_len).unwrap();
    for index in [table - 1, table, u32::MAX] {
        assert_eq!(rig.port.gid(index).unwrap_err(), Error::NoSuchGid { port: 1, index });
    }
}

/// In a child.
pub(crate) fn the_limit_of_locked_memory() {
    const LIMIT_BYTES: u64 = 64 << 10;
    let context = Context::open(&device_name().expect("a device")).unwrap();
    let domain = ProtectionDomain::new(&context).unwrap();
    child::limit_locked_memory(LIMIT_BYTES);
    child::become_nobody();
    let error = PoolOptions::new(4096, 1024).build(&domain).unwrap_err();
    match error {
        Error::LockedMemory { bytes, limit_bytes, .. } => {
            assert_eq!((bytes, limit_bytes), (4 << 20, LIMIT_BYTES));
        }
        error => panic!("{error:?}"),
    }
    let message = error.to_string();
    assert!(message.contains("ulimit -l") && message.contains("65536"), "{message}");
    assert_eq!(error.errno(), Some(Errno(libc::ENOMEM)));
    // What fits, can be had.
    PoolOptions::new(4096, 4).build(&domain).unwrap();
}

/// In a child.
pub(crate) fn the_device_may_not_be_opened() {
    child::lock_device_files();
    child::become_nobody();
    let device = device_name().expect("a device");
    let error = Context::open(&device).unwrap_err();
    match error {
        Error::Open { device: named, errno } => {
            assert_eq!(named.as_str(), device);
            // The library tries /dev/char next, and tells how that ended: there may be no such folder.
            assert!(matches!(errno, Errno(libc::EACCES | libc::ENOENT)), "{errno}");
        }
        error => panic!("{error:?}"),
    }
    assert!(error.to_string().contains("/dev/infiniband"), "{error}");
}

/// In a child: so it is in a container that was given none.
pub(crate) fn the_device_has_no_file() {
    child::hide_device_files();
    let error = Context::open(&device_name().expect("a device")).unwrap_err();
    assert_eq!(error, Error::NoDevice);
    assert!(error.to_string().contains("/dev/infiniband"), "{error}");
}

/// In a child.
pub(crate) fn the_library_is_not_there() {
    child::hide_library();
    let error = Context::open(&device_name().expect("a device")).unwrap_err();
    assert_eq!(error, Error::Library(LoadError::NoLibrary));
    assert!(error.to_string().contains("libibverbs1"), "{error}");
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip (iproute2) runs");
    assert!(status.success(), "ip {arguments}: {status}");
}

/// A change of a network interface, undone by the drop; then the port is as it was.
struct Changed {
    context: Context,
    undo: &'static str,
}

impl Changed {
    fn new(command: &str, undo: &'static str) -> Self {
        let (near, _) = pair_names().expect("two devices");
        let context = Context::open(&near).unwrap();
        ip(command);
        Self { context, undo }
    }

    /// What is said, after a while.
    fn until(&self, is_reached: impl Fn(&Result<(), Error>) -> bool) {
        let begin = Instant::now();
        loop {
            let port = self.context.port(1).unwrap();
            let answer = port.require_active().and_then(|port| port.choose_gid()).map(|_| ());
            if is_reached(&answer) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{answer:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        ip(self.undo);
        self.until(Result::is_ok);
    }
}

fn the_port_is_down() {
    nothing_is_left(|| {
        let changed = Changed::new("link set va down", "link set va up");
        changed.until(|answer| match answer {
            Err(error @ Error::PortDown { port: 1, .. }) => error.to_string().contains("ip link"),
            _ => false,
        });
    });
}

fn the_port_has_no_address() {
    nothing_is_left(|| {
        let changed =
            Changed::new("address del 198.51.100.1/24 dev va", "address add 198.51.100.1/24 dev va");
        changed.until(|answer| *answer == Err(Error::NoGid { port: 1 }));
        // The link-local address is still there, and can be named.
        let port = changed.context.port(1).unwrap();
        assert!(port.gids().unwrap().iter().all(|entry| entry.gid.is_link_local()));
    });
}
