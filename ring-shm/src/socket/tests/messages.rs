//! Connections and what goes over them.

use std::os::unix::thread::JoinHandleExt;
use std::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

type Room = [Option<Descriptor>; MAX_DESCRIPTORS];

fn room() -> Room {
    [const { None }; MAX_DESCRIPTORS]
}

fn is_closed_on_exec(descriptor: &Descriptor) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.raw())).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap() & libc::O_CLOEXEC as u32 != 0
}

#[test]
fn descriptors_arrive_in_order_and_are_closed_on_exec() {
    let (server, client) = pair();
    assert!(is_closed_on_exec(server.socket().unwrap()) && is_closed_on_exec(client.socket().unwrap()));
    let files = anonymous_files(MAX_DESCRIPTORS);
    for (from, to) in [(&server, &client), (&client, &server)] {
        for count in [MAX_DESCRIPTORS, 1, 0, 3] {
            let sent: Vec<_> = files.iter().take(count).collect();
            from.send(b"message", &sent, now()).unwrap();
            // What was there before does not stay.
            let (mut buffer, mut received) = ([0; 16], room());
            received[MAX_DESCRIPTORS - 1] = anonymous_files(1).pop();
            assert_eq!(to.receive(&mut buffer, &mut received, now()), Ok(7));
            assert_eq!(&buffer[..7], b"message");
            assert_eq!(received.iter().flatten().count(), count);
            for (original, copy) in sent.into_iter().zip(&received) {
                let copy = copy.as_ref().unwrap();
                assert!(is_closed_on_exec(copy));
                let identity = |descriptor| sys::status(descriptor).unwrap().identity;
                assert_eq!(identity(copy), identity(original));
            }
        }
    }
}

#[test]
fn messages_stay_apart_and_the_end_comes_after_them() {
    let (server, client) = pair();
    client.send(b"one", &[], now()).unwrap();
    client.send(b"three", &[], now()).unwrap();
    drop(client);
    let mut buffer = [0; 16];
    assert_eq!(server.receive(&mut buffer, &mut [], now()), Ok(3));
    assert_eq!(server.receive(&mut buffer, &mut [], now()), Ok(5));
    assert_eq!(server.receive(&mut buffer, &mut [], soon()), Err(Error::Disconnected));
    assert_eq!(server.send(b"one", &[], now()), Err(Error::Disconnected));
}

#[test]
fn a_client_that_closes_without_reading_is_disconnected() {
    let (server, client) = pair();
    server.send(b"unread", &[], now()).unwrap();
    drop(client);
    assert_eq!(server.receive(&mut [0; 16], &mut [], soon()), Err(Error::Disconnected));
}

#[test]
fn each_side_knows_the_process_at_the_other_end() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let mut peer = Peer::start("connect", &path, "exec");
    let server = listener.accept(soon()).unwrap();
    assert_eq!(peer.hear(), "connected");
    assert_eq!(server.peer().process, i32::try_from(peer.process.id()).unwrap());
    assert_eq!(server.peer().user, sys::effective_user());
    let client = Connection::connect(&path, now()).unwrap();
    assert_eq!(client.peer().process, sys::process_id());
    assert_eq!(client.peer(), listener.accept(now()).unwrap().peer());
}

#[test]
fn who_says_nothing_costs_the_time_out_and_who_dies_less() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let timed_out = |operation| Error::TimedOut { operation, source: Errno::AGAIN };
    let timeout = Duration::from_millis(50);
    for timeout in [Duration::ZERO, timeout] {
        let start = Instant::now();
        assert_eq!(listener.accept(Deadline::after(timeout)).map(drop), Err(timed_out("accept a client")));
        assert!((timeout..timeout + SECOND * 5).contains(&start.elapsed()));
    }

    let mut peer = Peer::start("connect", &path, "exec");
    let server = listener.accept(soon()).unwrap();
    assert_eq!(peer.hear(), "connected");
    for timeout in [Duration::ZERO, timeout] {
        let start = Instant::now();
        let result = server.receive(&mut [0; 16], &mut [], Deadline::after(timeout));
        assert_eq!(result, Err(timed_out("receive a message")));
        assert!((timeout..timeout + SECOND * 5).contains(&start.elapsed()));
    }
    let waiting = std::thread::spawn(move || server.receive(&mut [0; 16], &mut [], soon()));
    peer.kill();
    assert_eq!(waiting.join().unwrap(), Err(Error::Disconnected));
}

#[test]
fn who_does_not_read_costs_the_sender_the_time_out() {
    let (server, client) = pair();
    let error = loop {
        if let Err(error) = server.send(&[0; 4096], &[], Deadline::after(Duration::from_millis(20))) {
            break error;
        }
    };
    assert_eq!(error, Error::TimedOut { operation: "send a message", source: Errno::AGAIN });
    // One that waits for room goes on when there is some.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.send(&[1], &[], soon()));
        while client.receive(&mut [0; 4096], &mut [], soon()) != Ok(1) {}
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_time_out_may_be_longer_than_the_clock_can_say() {
    let (server, client) = pair();
    let waiting =
        std::thread::spawn(move || client.receive(&mut [0; 16], &mut [], Deadline::after(Duration::MAX)));
    std::thread::sleep(Duration::from_millis(30));
    assert!(!waiting.is_finished());
    server.send(b"late", &[], now()).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(4));
}

#[test]
fn signals_neither_end_a_wait_nor_prolong_it() {
    raw::let_signals_interrupt();
    let (_server, client) = pair();
    let timeout = Duration::from_millis(100);
    let start = Instant::now();
    let waiting = std::thread::spawn(move || client.receive(&mut [0; 16], &mut [], Deadline::after(timeout)));
    // More often than the time-out is long: one that began anew would never end.
    while !waiting.is_finished() && start.elapsed() < SECOND * 10 {
        raw::interrupt(waiting.as_pthread_t());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!((timeout..SECOND * 10).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(matches!(waiting.join().unwrap(), Err(Error::TimedOut { .. })));
}

#[test]
fn no_error_leaks_a_descriptor() {
    // In a process without other tests, which open files too.
    let mut peer = Peer::start("errors", Path::new("/"), "exec");
    assert_eq!(peer.hear(), "done");
    peer.finish();
}

pub(super) fn each_error_closes_what_came() {
    let (server, client) = pair();
    let files = anonymous_files(MAX_DESCRIPTORS);
    let sent: Vec<_> = files.iter().collect();
    let mut received = room();
    let before = open_files();
    let bad = |fault| Err(Error::BadMessage { fault });

    for room in [0, 1, 2] {
        client.send(b"message", &sent[..3], now()).unwrap();
        let result = server.receive(&mut [0; 16], &mut received[..room], now());
        assert_eq!(result, bad("too many descriptors"));
        assert_eq!((received.iter().flatten().count(), open_files()), (0, before));
    }
    for copies in [17, 18, 100] {
        raw::send_copies(client.socket().unwrap(), &files[0], copies);
        assert_eq!(server.receive(&mut [0; 16], &mut received, now()), bad("too many descriptors"));
        assert_eq!((received.iter().flatten().count(), open_files()), (0, before));
    }
    client.send(b"message", &sent, now()).unwrap();
    assert_eq!(server.receive(&mut [0; 6], &mut received, now()), bad("too long a message"));
    assert_eq!((received.iter().flatten().count(), open_files()), (0, before));

    // What was wrong with one message does not spoil the next.
    client.send(b"message", &sent, now()).unwrap();
    assert_eq!(server.receive(&mut [0; 7], &mut received, now()), Ok(7));
    assert_eq!(open_files(), before + MAX_DESCRIPTORS);
    received = room();
    assert_eq!(open_files(), before);

    // With few descriptors and with more than there is room for behind the foreign message.
    raw::ask_for_credentials(server.socket().unwrap());
    for count in [0, 1, MAX_DESCRIPTORS] {
        client.send(b"message", &sent[..count], now()).unwrap();
        let result = server.receive(&mut [0; 16], &mut received, now());
        assert_eq!(result, bad("a control message without descriptors"));
        assert_eq!((received.iter().flatten().count(), open_files()), (0, before));
    }
    answer("done");
}

#[test]
fn a_limit_on_descriptors_is_told_from_a_bad_message() {
    let mut peer = Peer::start("limit", Path::new("/"), "ulimit -n 64; exec");
    assert_eq!(peer.hear(), "done");
    peer.finish();
}

pub(super) fn a_limit_on_descriptors() {
    let (server, client) = pair();
    let file = anonymous_files(1).remove(0);
    let mut others = Vec::new();
    let full = loop {
        match sys::anonymous_file(c"ring-shm-test", PageSize::Base) {
            Ok(file) => others.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(full, Errno::MFILE);
    for free in [0, 1, 4] {
        let mut freed = others.split_off(others.len() - free);
        client.send(b"message", &[&file; 5], now()).unwrap();
        freed.clear();
        let mut received = room();
        let result = server.receive(&mut [0; 16], &mut received, now());
        assert_eq!(result, Err(Error::Os { operation: "receive a message", source: Errno::MFILE }));
        assert!(result.unwrap_err().to_string().contains("RLIMIT_NOFILE"));
        // So many as were free are free again.
        others.extend(anonymous_files(free));
        assert_eq!(sys::anonymous_file(c"ring-shm-test", PageSize::Base).map(drop), Err(Errno::MFILE));
    }
    others.truncate(others.len() - 5);
    client.send(b"message", &[&file; 5], now()).unwrap();
    assert_eq!(server.receive(&mut [0; 16], &mut room(), now()), Ok(7));
    answer("done");
}
