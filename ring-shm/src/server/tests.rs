//! Servers and clients that lie, here by hand; what they should be is tested in `tests/server.rs`.

use std::format;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::string::ToString;
use std::thread;

use ring_core::{mpmc, spsc};

use super::*;
use crate::pages::PageSize;
use crate::{Claim, Lock};

/// Enough for an answer on a busy machine.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

/// A path that no other test has, removed at the end.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(tag: &str) -> Self {
        Self(std::env::temp_dir().join(format!("ring-shm-server-{tag}-{}.sock", std::process::id())))
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn options() -> Options {
    Options::new().lock(Lock::Never)
}

fn producer() -> spsc::Producer<u64, Claim> {
    options().create_anonymous_ring(&spsc::Layout::new(8).unwrap()).unwrap()
}

/// A description of the segment that has the consumer's lock.
fn locked(segment: &Segment) -> Descriptor {
    let own = segment.open_again().unwrap();
    assert_eq!(lock::take_role(&own, Role::Consumer), Ok(true));
    own
}

/// What a client makes of a server that answers with these words and descriptors.
fn answered(tag: &str, answer: &[u8], descriptors: &[&Descriptor]) -> Error {
    let path = SocketPath::new(tag);
    let listener = Listener::bind(&path.0, 0o600).unwrap();
    thread::scope(|scope| {
        let client = scope.spawn(|| options().connect_ring::<spsc::Consumer<u64, Claim>>(&path.0, SHORT));
        let connection = listener.accept(Deadline::after(LONG)).unwrap();
        let mut request = [0; Request::BYTES];
        connection.receive(&mut request, &mut [], Deadline::after(LONG)).unwrap();
        assert_eq!(Request::from_bytes(&request), Ok(Request { kind: Kind::Spsc, wish: Wish::Pop }));
        connection.send(answer, descriptors, Deadline::after(LONG)).unwrap();
        drop(connection);
        client.join().unwrap().map(drop).unwrap_err()
    })
}

fn granted() -> [u8; Answer::BYTES] {
    Answer::Granted(Some(Role::Consumer)).to_bytes()
}

fn file(name: &str) -> Descriptor {
    OwnedFd::from(File::options().read(true).write(true).open(name).unwrap()).into()
}

#[test]
fn a_client_maps_nothing_that_a_server_could_spoil() {
    let ring = producer();
    let segment = ring.region().segment();
    let own = locked(segment);
    let unsealed = || {
        let file = sys::anonymous_file(c"ring-shm-test", PageSize::Base).unwrap();
        let mut content = std::vec![0; 8192];
        sys::read_start(segment.descriptor(), &mut content).unwrap();
        let mut file = File::from(OwnedFd::from(file));
        file.write_all(&content).unwrap();
        Descriptor::from(OwnedFd::from(file))
    };
    assert_eq!(answered("unsealed", &granted(), &[&unsealed(), &own]), Error::NotSealed);

    // Sealed, and a page shorter than its header says.
    let shorter = unsealed();
    sys::reserve(&shorter, 8192).unwrap();
    let length = File::from(OwnedFd::from(sys::duplicate_for_child(&shorter).unwrap()));
    length.set_len(64).unwrap();
    sys::seal(&shorter).unwrap();
    let error = answered("shorter", &granted(), &[&shorter, &own]);
    assert!(matches!(error, Error::TooSmall { .. }), "{error:?}");
    let empty = sys::anonymous_file(c"ring-shm-test", PageSize::Base).unwrap();
    sys::seal(&empty).unwrap();
    assert_eq!(
        answered("empty", &granted(), &[&empty, &own]),
        Error::TooSmall { file_bytes: 0, needed_bytes: 128 }
    );

    let path = std::env::temp_dir().join(format!("ring-shm-server-ordinary-{}", std::process::id()));
    std::fs::write(&path, [0; 8192]).unwrap();
    let ordinary = file(path.to_str().unwrap());
    std::fs::remove_file(path).unwrap();
    for (tag, other) in [("ordinary", &ordinary), ("device", &file("/dev/null"))] {
        let error = answered(tag, &granted(), &[other, &own]);
        assert!(matches!(error, Error::NotSharedMemory | Error::NotSealed), "{tag}: {error:?}");
    }
    // What is wrong with a segment is told before it is asked for a role.
    assert_eq!(answered("read-only", &granted(), &[&read_only(segment), &own]).to_string(), {
        let error = Error::NoPermission { operation: "map the segment", source: crate::Errno::ACCES };
        error.to_string()
    });
}

fn read_only(segment: &Segment) -> Descriptor {
    let path = format!("/proc/self/fd/{}", segment.descriptor().raw());
    OwnedFd::from(File::open(path).unwrap()).into()
}

#[test]
fn a_client_takes_no_role_that_is_not_its_own() {
    let ring = producer();
    let segment = ring.region().segment();
    let other = producer();
    let own = locked(segment);
    let bad = |fault| Error::BadMessage { fault };
    let answer = |tag, descriptors: &[&Descriptor]| answered(tag, &granted(), descriptors);
    assert_eq!(answer("none", &[]), bad("too few descriptors"));
    assert_eq!(answer("no-lock", &[segment.descriptor()]), bad("too few descriptors"));
    let foreign = locked(other.region());
    assert_eq!(answer("foreign", &[segment.descriptor(), &foreign]), bad("a role of another segment"));
    // One description for both: its lock would be none to who asks through it.
    let third = producer();
    let both = third.region().open_again().unwrap();
    let error = answer("both", &[&both, &both]);
    assert_eq!(error, bad("a role without a description of its own"));
    // The lock of a role that somebody else has: it is his.
    let without = segment.open_again().unwrap();
    let error = answer("taken", &[segment.descriptor(), &without]);
    assert_eq!(error, Error::RoleTaken { role: Role::Consumer, process: 0 });
    // Another role than the one that was asked for.
    let producer = Answer::Granted(Some(Role::Producer)).to_bytes();
    let error = answered("other-role", &producer, &[segment.descriptor(), &own]);
    assert_eq!(error, bad("another role than the one that was asked for"));
    let nothing = Answer::Granted(None).to_bytes();
    let error = answered("no-role", &nothing, &[segment.descriptor()]);
    assert_eq!(error, bad("another role than the one that was asked for"));
}

#[test]
fn what_is_no_answer_is_refused() {
    let bad = |fault| Error::BadMessage { fault };
    let words = |words: [u64; 4]| words.map(u64::to_ne_bytes).concat();
    let magic = u64::from_ne_bytes(*b"ring-ans");
    assert_eq!(answered("program", &words([1, 1, 0, 0]), &[]), bad("a message of another program"));
    assert_eq!(answered("version", &words([magic, 2, 0, 0]), &[]), bad("a message of another version"));
    assert_eq!(answered("length", &words([magic, 1, 0, 0])[1..], &[]), bad("a message of another length"));
    for (number, [outcome, detail]) in
        [[4, 0], [0, u64::MAX], [0, 2 + (1 << 16)], [1, u64::MAX], [2, 1 << 16], [3, 0], [3, 5]]
            .iter()
            .enumerate()
    {
        let answer = words([magic, 1, *outcome, *detail]);
        let error = answered(&format!("no-answer-{number}"), &answer, &[]);
        assert_eq!(error, bad("an answer that does not exist"), "{outcome} {detail}");
    }
    let taken = Answer::Taken { process: 7 }.to_bytes();
    assert_eq!(answered("is-taken", &taken, &[]), Error::RoleTaken { role: Role::Consumer, process: 7 });
    let other = Answer::OtherKind { found: Kind::Bytes }.to_bytes();
    assert_eq!(answered("is-bytes", &other, &[]), Error::OtherRing { found: Kind::Bytes });
}

/// What a server makes of a client that does this.
fn asked(tag: &str, client: impl FnOnce(Connection) + Send) -> Result<Option<Served>, Error> {
    let path = SocketPath::new(tag);
    let ring = producer();
    let server = options().listen(&path.0).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| client(Connection::connect(&path.0, Deadline::after(LONG)).unwrap()));
        let result = server.serve(ring.region().segment(), LONG);
        // Nobody keeps a role that he has not got.
        let is_served = result.as_ref().is_ok_and(Option::is_some);
        if !is_served {
            ring.region().segment().claim(Role::Consumer).unwrap();
        }
        result
    })
}

#[test]
fn a_server_survives_its_clients() {
    let bad = |fault| Err(Error::BadMessage { fault });
    let send = |bytes: Vec<u8>| {
        move |connection: Connection| {
            connection.send(&bytes, &[], Deadline::after(LONG)).unwrap();
            let _ = connection.wait_for_message(Deadline::after(LONG));
        }
    };
    assert_eq!(asked("leaves", drop), Err(Error::Disconnected));
    let silent = asked("silent", |connection| {
        let _ = connection.wait_for_message(Deadline::after(LONG));
    });
    assert!(matches!(silent, Err(Error::TimedOut { .. })), "{silent:?}");
    assert_eq!(asked("short", send(std::vec![0; 8])), bad("a message of another length"));
    assert_eq!(asked("zeros", send(std::vec![0; 32])), bad("a message of another program"));
    assert_eq!(asked("long", send(std::vec![0; 4096])), bad("too long a message"));
    let words = |kind: u64, wish: u64| {
        let words = [u64::from_ne_bytes(*b"ring-ask"), 1, kind, wish];
        words.map(u64::to_ne_bytes).concat()
    };
    for (number, (kind, wish)) in [(0, 1), (5, 1), (1, 0), (1, 3)].into_iter().enumerate() {
        let result = asked(&format!("no-request-{number}"), send(words(kind, wish)));
        assert_eq!(result, bad("a request for what there is not"));
    }
    assert_eq!(asked("other-kind", send(words(3, 1))), Err(Error::OtherRing { found: Kind::Spsc }));
    let taken = asked("taken-producer", send(words(1, 1)));
    assert_eq!(taken, Err(Error::RoleTaken { role: Role::Producer, process: std::process::id() }));
    let descriptors = asked("descriptors", |connection| {
        let file = file("/dev/null");
        connection.send(&[0; 32], &[&file], Deadline::after(LONG)).unwrap();
        let _ = connection.wait_for_message(Deadline::after(LONG));
    });
    assert_eq!(descriptors, bad("too many descriptors"));
    // One that asks and is gone before it gets the answer, or takes it and drops it.
    let gone = asked("asks-and-leaves", |connection| {
        connection.send(&words(1, 2), &[], Deadline::after(LONG)).unwrap();
    });
    assert!(matches!(gone, Ok(Some(_)) | Err(Error::Disconnected)), "{gone:?}");
}

#[test]
fn a_full_ring_of_many_says_so() {
    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(1).unwrap();
    let only: mpmc::Producer<u64, Claim> = options().create_anonymous_ring(&layout).unwrap();
    let path = SocketPath::new("full");
    let server = options().listen(&path.0).unwrap();
    let full = Error::Ring(ring_core::Error::TooManyParticipants { participants: 1 });
    thread::scope(|scope| {
        let client = scope.spawn(|| options().connect_ring::<mpmc::Consumer<u64, Claim>>(&path.0, SHORT));
        assert_eq!(server.serve(only.region().segment(), LONG), Err(full));
        while server.serve(only.region().segment(), SHORT) == Err(full) {}
        assert_eq!(client.join().unwrap().unwrap_err(), full);
    });
}

/// Who has it could not be seen to go, and others are free.
#[test]
fn a_place_of_a_handle_without_a_claim_is_passed_over() {
    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(3).unwrap();
    let first: mpmc::Producer<u64, Claim> = options().create_anonymous_ring(&layout).unwrap();
    let segment = first.region().segment();
    let bare = mpmc::Producer::<u64, _>::attach(segment).unwrap();
    assert!(segment.owner(Role::Participant(2)).unwrap().held);
    let path = SocketPath::new("bare");
    let server = options().listen(&path.0).unwrap();
    thread::scope(|scope| {
        let client =
            scope.spawn(|| options().connect_ring::<mpmc::Consumer<u64, Claim>>(&path.0, LONG).unwrap());
        let served = server.serve(segment, LONG).unwrap().unwrap();
        assert_eq!(served.role, Some(Role::Participant(3)));
        assert_eq!(client.join().unwrap().region().role(), Role::Participant(3));
    });
    drop(bare);
}

#[test]
fn a_place_that_somebody_has_without_a_lock_is_not_handed_out() {
    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(3).unwrap();
    let first: mpmc::Producer<u64, Claim> = options().create_anonymous_ring(&layout).unwrap();
    let segment = first.region().segment();
    let bare = mpmc::Producer::<u64, _>::attach(Arc::clone(segment)).unwrap();
    assert_eq!((first.id(), bare.id()), (1, 2));
    let path = SocketPath::new("bare-place");
    let server = options().listen(&path.0).unwrap();
    thread::scope(|scope| {
        let client = scope.spawn(|| options().connect_ring::<mpmc::Consumer<u64, Claim>>(&path.0, LONG));
        server.serve(segment, LONG).unwrap().unwrap();
        assert_eq!(client.join().unwrap().unwrap().id(), 3);
    });
}

#[test]
fn a_role_is_free_again_when_its_client_is() {
    let ring = producer();
    let segment = ring.region().segment();
    let path = SocketPath::new("free-again");
    let server = options().listen(&path.0).unwrap();
    for _ in 0..20 {
        thread::scope(|scope| {
            let client =
                scope.spawn(|| options().connect_ring::<spsc::Consumer<u64, Claim>>(&path.0, LONG).unwrap());
            server.serve(segment, LONG).unwrap().unwrap();
            let consumer = client.join().unwrap();
            assert!(matches!(segment.claim(Role::Consumer), Err(Error::RoleTaken { .. })));
            drop(consumer);
            segment.claim(Role::Consumer).unwrap();
        });
    }
}
