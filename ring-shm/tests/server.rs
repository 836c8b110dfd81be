//! Roles that a server hands out over a socket, to real processes.
//!
//! # Safety
//!
//! Nothing here but calls that have no conditions. What runs in a forked child is system calls.
#![allow(unsafe_code)]
#![cfg(feature = "std")]

mod common;

use core::time::Duration;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use common::{
    OtherUser, Peer, TestName, answer, child as start_child, effective_user, in_namespace, is_root, role,
    skip, unlocked,
};
use ring_core::{Role, broadcast, bytes, mpmc, spsc};
use ring_shm::{Claim, Descriptor, Error, Presence, Segment, Server};

const LONG: Duration = Duration::from_secs(20);

type Producer = spsc::Producer<u64, Claim>;
type Consumer = spsc::Consumer<u64, Claim>;

/// A path that no other test has.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(tag: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ring-shm-test-{tag}-{}.sock", std::process::id())))
    }

    fn argument(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn layout() -> spsc::Layout<u64> {
    spsc::Layout::new(8).unwrap()
}

fn producer() -> Producer {
    unlocked().create_anonymous_ring(&layout()).unwrap()
}

fn serve(server: &Server, segment: &Arc<Segment>) -> ring_shm::Served {
    server.serve(segment, LONG).unwrap().expect("a client within the time-out")
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, path)) = role() else { return };
    match &*role {
        "spsc" => {
            let mut consumer: Consumer = unlocked().connect_ring(&path, LONG).unwrap();
            answer(&format!("{:?}", consumer.try_pop()));
            // Until the parent has seen what it wants to see.
            let _ = std::io::stdin().read(&mut [0]);
        }
        "all" => {
            let mut consumer: bytes::Consumer<Claim> = unlocked().connect_ring(&path, LONG).unwrap();
            let mut buffer = [0; 16];
            let length = consumer.try_pop(&mut buffer).unwrap();
            answer(core::str::from_utf8(&buffer[..length]).unwrap());
            let mut producer: mpmc::Producer<u64, Claim> = unlocked().connect_ring(&path, LONG).unwrap();
            producer.try_push(7).unwrap();
            answer(&format!("{}", producer.region().role()));
            let mut reader: broadcast::Consumer<u64, Arc<Segment>> =
                unlocked().connect_ring(&path, LONG).unwrap();
            answer("joined");
            loop {
                match reader.try_pop() {
                    Ok(value) => break answer(&value.to_string()),
                    Err(broadcast::PopError::Empty) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        "with a pipe" => {
            let (_consumer, mut added) = unlocked().connect_ring_with::<Consumer>(&path, LONG).unwrap();
            assert_eq!(added.len(), 1);
            let mut pipe = File::from(OwnedFd::from(added.remove(0)));
            pipe.write_all(b"hello").unwrap();
        }
        "refused" => {
            let result = unlocked().connect_ring::<Consumer>(&path, Duration::from_millis(300));
            answer(&result.map_or_else(|error| format!("{error:?}"), |_| "taken".to_owned()));
        }
        "forks" => {
            std::thread::spawn(move || unlocked().connect_ring::<Consumer>(&path, LONG).map(drop));
            // Connected is who has a socket more, and it waits for the answer.
            common::wait_until(|| sockets() > 0);
            std::thread::sleep(Duration::from_millis(50));
            // SAFETY: the child only sleeps.
            if unsafe { libc::fork() } == 0 {
                // SAFETY: no conditions.
                unsafe { libc::sleep(5) };
                // SAFETY: no conditions.
                unsafe { libc::_exit(0) };
            }
            answer("forked");
            // SAFETY: no conditions; it goes on only to be killed, and never takes what is sent to it.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        "require root" => {
            let result = unlocked().peer_user(0).connect_ring::<Consumer>(&path, LONG);
            answer(&result.map_or_else(|error| format!("{error:?}"), |_| "taken".to_owned()));
        }
        other => panic!("no such role: {other}"),
    }
}

#[test]
fn a_client_has_its_role_until_it_dies() {
    let path = SocketPath::new("until-it-dies");
    let mut producer = producer();
    producer.try_push(7).unwrap();
    let segment = Arc::clone(producer.region().segment());
    let server = unlocked().listen(&path.0).unwrap();
    for round in 1..=3 {
        let mut command = start_child("spsc", path.argument());
        command.stdin(std::process::Stdio::piped());
        let mut client = Peer::start(command);
        let served = serve(&server, &segment);
        assert_eq!(served.role, Some(Role::Consumer));
        assert_eq!(served.user, effective_user());
        // No credit for one message: it comes again to the successor of who was killed.
        assert_eq!(client.hear(), "Ok(7)");
        assert_eq!(segment.presence(Role::Consumer), Ok(Presence::Alive));
        let owner = segment.owner(Role::Consumer).unwrap();
        assert_eq!((owner.process, owner.incarnation), (served.process, round));
        assert!(matches!(segment.claim(Role::Consumer), Err(Error::RoleTaken { .. })));
        client.kill();
        let start = Instant::now();
        while segment.presence(Role::Consumer) != Ok(Presence::Gone) {
            assert!(start.elapsed() < Duration::from_secs(2));
        }
    }
    // Whoever sent the role does not keep it.
    segment.claim(Role::Consumer).unwrap();
}

/// Sockets that this process has open.
fn sockets() -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let is_socket = |link: &PathBuf| link.to_string_lossy().starts_with("socket:");
    links.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).filter(is_socket).count()
}

#[test]
fn a_role_that_is_on_its_way_dies_with_its_client_and_not_with_a_child_that_it_forked() {
    let path = SocketPath::new("forks");
    let producer = producer();
    let server = unlocked().listen(&path.0).unwrap();
    let mut client = Peer::start(start_child("forks", path.argument()));
    assert_eq!(client.hear(), "forked");
    serve(&server, producer.region().segment());
    client.kill();
    let start = Instant::now();
    while producer.region().segment().claim(Role::Consumer).is_err() {
        assert!(start.elapsed() < Duration::from_secs(2), "the child keeps the role");
        std::thread::yield_now();
    }
}

#[test]
fn every_ring_is_handed_out() {
    let path = SocketPath::new("every-ring");
    let server = unlocked().listen(&path.0).unwrap();
    let client = start_child("all", path.argument());

    let mut producer: bytes::Producer<Claim> =
        unlocked().create_anonymous_ring(&bytes::Layout::new(64).unwrap()).unwrap();
    producer.try_push(b"hello").unwrap();
    let mut client = Peer::start(client);
    assert_eq!(serve(&server, producer.region().segment()).role, Some(Role::Consumer));
    assert_eq!(client.hear(), "hello");

    let mut consumer: mpmc::Consumer<u64, Claim> =
        unlocked().create_anonymous_ring(&mpmc::Layout::new(8).unwrap()).unwrap();
    assert_eq!(serve(&server, consumer.region().segment()).role, Some(Role::Participant(2)));
    assert_eq!(client.hear(), "place 2");
    assert_eq!(consumer.try_pop(), Ok(7));

    let mut producer: broadcast::Producer<u64, Claim> =
        unlocked().create_anonymous_ring(&broadcast::Layout::new(8).unwrap()).unwrap();
    assert_eq!(serve(&server, producer.region().segment()).role, None);
    assert_eq!(client.hear(), "joined");
    producer.push(&9);
    assert_eq!(client.finish(), ["9"]);
}

#[test]
fn descriptors_go_along() {
    let path = SocketPath::new("go-along");
    let server = unlocked().listen(&path.0).unwrap();
    let producer = producer();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let writer = Descriptor::from(OwnedFd::from(writer));
    let client = Peer::start(start_child("with a pipe", path.argument()));
    server.serve_with(producer.region().segment(), &[&writer], LONG).unwrap().unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    client.finish();
}

#[test]
fn a_client_needs_no_proc() {
    if !is_root() {
        return skip("a_client_needs_no_proc", "not root");
    }
    let path = SocketPath::new("no-proc");
    let server = unlocked().listen(&path.0).unwrap();
    let producer = producer();
    let client = Peer::start(in_namespace("refused", path.argument(), "mount -t tmpfs none /proc"));
    serve(&server, producer.region().segment());
    assert_eq!(client.finish(), ["taken"]);
}

#[test]
fn nobody_is_served_who_does_not_come() {
    let path = SocketPath::new("nobody");
    let server = unlocked().listen(&path.0).unwrap();
    let producer = producer();
    assert_eq!(server.serve(producer.region().segment(), Duration::ZERO), Ok(None));
    let start = Instant::now();
    assert_eq!(server.serve(producer.region().segment(), Duration::from_millis(30)), Ok(None));
    assert!(start.elapsed() >= Duration::from_millis(30));
    drop(server);
    assert!(!path.0.exists());
    let error = unlocked().connect_ring::<Consumer>(&path.0, Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
}

#[test]
fn a_named_segment_is_not_handed_out() {
    let path = SocketPath::new("named");
    let name = TestName::new("not-handed-out");
    let server = unlocked().listen(&path.0).unwrap();
    let producer: Producer = unlocked().create_ring(&name, &layout()).unwrap();
    assert_eq!(server.serve(producer.region().segment(), Duration::ZERO), Err(Error::NotSealed));
}

#[test]
fn other_users_are_let_in_by_the_mode_and_by_what_is_required() {
    if !is_root() {
        return skip("other_users_are_let_in_by_the_mode_and_by_what_is_required", "not root");
    }
    let program = OtherUser::new();
    let producer = producer();
    let segment = producer.region().segment();
    let path = SocketPath::new("other-user");
    let other = |role| Peer::start(program.child(role, path.argument(), ":"));

    let server = unlocked().listen(&path.0).unwrap();
    let refused = other("refused").finish().concat();
    assert!(refused.starts_with("NoPermission"), "{refused}");
    assert_eq!(server.serve(segment, Duration::ZERO), Ok(None));
    drop(server);

    let server = unlocked().mode(0o666).listen(&path.0).unwrap();
    let client = other("require root");
    // The segment itself has the mode 0600: he has the descriptor, and needs no leave.
    assert_eq!(serve(&server, segment).user, OtherUser::ID);
    assert_eq!(client.finish(), ["taken"]);
    drop(server);

    let server = unlocked().mode(0o666).peer_user(0).listen(&path.0).unwrap();
    let client = other("refused");
    assert_eq!(server.serve(segment, LONG), Err(Error::ForeignPeer { uid: OtherUser::ID }));
    let refused = client.finish().concat();
    assert!(refused.starts_with("TimedOut") || refused == "Disconnected", "{refused}");
}

#[test]
fn a_client_that_requires_a_user_gets_no_other() {
    if !is_root() {
        return skip("a_client_that_requires_a_user_gets_no_other", "not root");
    }
    let path = SocketPath::new("requires");
    let server = unlocked().listen(&path.0).unwrap();
    let client = std::thread::spawn({
        let path = path.0.clone();
        move || unlocked().peer_user(OtherUser::ID).connect_ring::<Consumer>(path, LONG).map(drop)
    });
    let producer = producer();
    let _ = server.serve(producer.region().segment(), LONG);
    assert_eq!(client.join().unwrap(), Err(Error::ForeignPeer { uid: 0 }));
}
