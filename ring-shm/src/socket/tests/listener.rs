//! Paths: who gets one, who is let in, and what is left.

use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::Barrier;
use std::time::Instant;

use super::*;

const ROUNDS: usize = 20;

fn bind(path: &Path) -> Result<Listener, Error> {
    Listener::bind(path, 0o600)
}

/// A connection over the path ends at this listener, and at no other.
fn assert_reachable(path: &Path, listener: &Listener) {
    let client = Connection::connect(path, now()).unwrap();
    let server = listener.accept(now()).unwrap();
    client.send(b"here", &[], now()).unwrap();
    assert_eq!(server.receive(&mut [0; 16], &mut [], now()), Ok(4));
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_mode_is_exact_and_the_file_goes_with_its_listener() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    for wanted in [0o600, 0o660, 0o666, 0o777, 0o200] {
        let listener = Listener::bind(&path, wanted).unwrap();
        assert_eq!(mode(&path), wanted, "{wanted:o}");
        assert_reachable(&path, &listener);
        let names: Vec<_> = std::fs::read_dir(&directory.0).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        let _ = listener.as_fd();
        drop(listener);
        assert!(!path.exists());
    }
}

#[test]
fn a_killed_server_leaves_a_file_that_the_next_one_replaces() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let mut server = Peer::start("listen", &path, "exec");
    assert_eq!(server.hear(), "listening");
    let client = Connection::connect(&path, now()).unwrap();
    assert_eq!(bind(&path).map(drop), Err(Error::SocketInUse));
    server.kill();
    assert_eq!(client.receive(&mut [0; 16], &mut [], soon()), Err(Error::Disconnected));
    assert!(path.exists());
    let refused = Error::TimedOut { operation: "connect to the server", source: Errno::CONNREFUSED };
    assert_eq!(Connection::connect(&path, now()).map(drop), Err(refused));
    let listener = bind(&path).unwrap();
    assert_reachable(&path, &listener);
}

#[test]
fn of_servers_that_race_for_a_rest_one_gets_it() {
    const SERVERS: usize = 4;
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    for round in 0..ROUNDS {
        // Every other time nothing is there.
        if round % 2 == 0 {
            leave_a_rest(&path);
        }
        let barrier = Barrier::new(SERVERS);
        let results = std::thread::scope(|scope| {
            let race = || {
                barrier.wait();
                bind(&path)
            };
            let servers: Vec<_> = (0..SERVERS).map(|_| scope.spawn(race)).collect();
            servers.into_iter().map(|server| server.join().unwrap()).collect::<Vec<_>>()
        });
        let (winners, losers): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(winners.len(), 1);
        assert!(losers.iter().all(|loser| loser.as_ref().is_err_and(|error| *error == Error::SocketInUse)));
        assert_reachable(&path, winners[0].as_ref().unwrap());
    }
}

#[test]
fn of_processes_that_race_for_a_rest_one_gets_it() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    for _ in 0..ROUNDS {
        // What the winner of the round before left, when it was killed.
        if !path.exists() {
            leave_a_rest(&path);
        }
        let mut servers = [(); 2].map(|()| Peer::start("bind", &path, "exec"));
        servers.iter_mut().for_each(Peer::go_on);
        let mut answers = servers.each_mut().map(Peer::hear);
        Connection::connect(&path, now()).unwrap();
        answers.sort();
        assert_eq!(answers, ["SocketInUse", "bound"]);
    }
}

#[test]
fn a_server_keeps_its_path_while_others_come_and_go() {
    const TURNS: usize = 100;
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let serve = || {
        let mut turns = 0;
        while turns < TURNS {
            match bind(&path) {
                Ok(mut listener) => {
                    assert_reachable(&path, &listener);
                    std::thread::yield_now();
                    assert_reachable(&path, &listener);
                    // Every other one leaves a rest, as if it was killed.
                    if turns % 2 == 0 {
                        listener.creator = 0;
                    }
                    turns += 1;
                }
                Err(error) => assert_eq!(error, Error::SocketInUse),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(serve);
        }
    });
}

#[test]
fn what_is_no_rest_is_left_alone() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let assert_left_alone = || {
        assert_eq!(bind(&path).map(drop), Err(Error::SocketInUse));
        std::fs::symlink_metadata(&path).unwrap();
    };

    std::fs::write(&path, "precious").unwrap();
    assert_left_alone();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    assert_left_alone();
    std::fs::remove_dir(&path).unwrap();

    let rest = directory.path("rest");
    leave_a_rest(&rest);
    symlink(&rest, &path).unwrap();
    assert_left_alone();
    assert!(rest.exists());
    std::fs::remove_file(&path).unwrap();

    // Sockets that nobody can connect to so, but that are in use.
    let datagrams = UnixDatagram::bind(&path).unwrap();
    assert_left_alone();
    drop(datagrams);
    std::fs::remove_file(&path).unwrap();
    let bound = socket::open().unwrap();
    socket::bind(&bound, &Place::new(&path).unwrap().address).unwrap();
    assert_left_alone();
    drop(bound);
    until_dead(&path);
    let listener = bind(&path).unwrap();
    assert_left_alone();
    assert_eq!(
        listener.accept(now()).map(drop),
        Err(Error::TimedOut { operation: "accept a client", source: Errno::AGAIN }),
        "nobody knocked"
    );
}

#[test]
fn a_drop_removes_nothing_of_others() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let listener = raw::drop_in_a_forked_child(bind(&path).unwrap());
    assert_reachable(&path, &listener);
    std::fs::remove_file(&path).unwrap();
    let successor = bind(&path).unwrap();
    drop(listener);
    assert_reachable(&path, &successor);
}

#[test]
fn a_relative_path_and_one_with_a_slash_at_its_end_are_paths() {
    let directory = TestDirectory::new();
    let listener = bind(&directory.path("socket/")).unwrap();
    assert_reachable(&directory.path("socket"), &listener);
    // Not bound: the working directory is that of all tests.
    let place = Place::new(Path::new("socket")).unwrap();
    assert_eq!(format!("{place:?}"), r#"Place { directory: ".", name: "socket", address: "socket" }"#);
}

#[test]
fn paths_that_cannot_be_are_refused() {
    let directory = TestDirectory::new();
    let base = directory.path("").as_os_str().len();
    let path_of = |bytes: usize| directory.path(&"x".repeat(bytes - base));
    let listener = bind(&path_of(107)).unwrap();
    assert_reachable(&path_of(107), &listener);
    for bytes in [108, 109, 1000] {
        let error = Error::SocketPathTooLong { bytes };
        assert_eq!(bind(&path_of(bytes)).map(drop), Err(error));
        assert_eq!(Connection::connect(&path_of(bytes), soon()).map(drop), Err(error));
        assert!(error.to_string().contains(&bytes.to_string()));
    }
    for (path, fault) in
        [("", NameFault::Empty), ("a\0b", NameFault::Zero), ("/", NameFault::Dots), ("a/..", NameFault::Dots)]
    {
        assert_eq!(bind(Path::new(path)).map(drop), Err(Error::BadName(fault)), "{path:?}");
    }
    let missing = bind(&directory.path("no/socket")).map(drop);
    assert!(matches!(missing, Err(Error::Os { source: Errno::NOENT, .. })), "{missing:?}");
}

#[test]
fn a_client_waits_for_its_server_but_not_for_ever() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let timed_out = |source| Err(Error::TimedOut { operation: "connect to the server", source });
    let timeout = Duration::from_millis(50);
    let start = Instant::now();
    assert_eq!(Connection::connect(&path, Deadline::after(timeout)).map(drop), timed_out(Errno::NOENT));
    assert!((timeout..timeout * 100).contains(&start.elapsed()));
    for with_rest in [false, true] {
        if with_rest {
            leave_a_rest(&path);
        }
        let waiting = {
            let path = path.clone();
            std::thread::spawn(move || Connection::connect(&path, Deadline::after(Duration::MAX)).map(drop))
        };
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        let listener = bind(&path).unwrap();
        waiting.join().unwrap().unwrap();
        drop(listener);
    }
    // A socket of another kind, whose server would not understand.
    let _stream = UnixListener::bind(&path).unwrap();
    let other = Error::Os { operation: "connect to the server", source: Errno::PROTOTYPE };
    assert_eq!(Connection::connect(&path, soon()).map(drop), Err(other));
}

#[test]
fn clients_that_queue_up_wait_no_longer_than_they_want() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let listener = bind(&path).unwrap();
    let mut clients = Vec::new();
    let full = loop {
        match Connection::connect(&path, now()) {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(full, Error::TimedOut { operation: "connect to the server", source: Errno::AGAIN });
    let start = Instant::now();
    let timeout = Duration::from_millis(50);
    assert_eq!(Connection::connect(&path, Deadline::after(timeout)).map(drop), Err(full));
    assert!((timeout..timeout * 100).contains(&start.elapsed()));
    // A full queue is one of a server that lives.
    assert_eq!(bind(&path).map(drop), Err(Error::SocketInUse));
    for _ in 0..clients.len() {
        listener.accept(now()).unwrap();
    }
    assert_reachable(&path, &listener);
}

#[test]
fn a_directory_that_another_process_keeps_locked_costs_the_time_out() {
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let lock = socket::open_directory_to_lock(&Place::new(&path).unwrap().directory).unwrap();
    socket::try_lock(&lock).unwrap();
    let start = Instant::now();
    let error = Error::TimedOut { operation: "lock the socket's directory", source: Errno::AGAIN };
    assert_eq!(bind(&path).map(drop), Err(error));
    assert!(start.elapsed() >= super::super::listener::LOCK_TIMEOUT);
    socket::unlock(&lock);
    let _listener = bind(&path).unwrap();
    socket::try_lock(&lock).unwrap();
}

#[test]
fn another_user_is_let_in_if_the_mode_says_so() {
    if !is_root() {
        return skip("another_user_is_let_in_if_the_mode_says_so", "only root can become another user");
    }
    let directory = TestDirectory::new();
    let path = directory.path("socket");
    let program = directory.path("program");
    // By another process: a child that a test forks meanwhile would keep a descriptor of ours open for writing.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let try_to_connect = || {
        let become_other = "exec setpriv --reuid 65534 --regid 65534 --clear-groups";
        let mut command = command(&program, "try to connect", &path, become_other);
        let mut peer = Peer::spawn({
            command.current_dir("/");
            command
        });
        let answer = peer.hear();
        peer.finish();
        answer
    };

    let listener = Listener::bind(&path, 0o600).unwrap();
    let denied = try_to_connect();
    assert!(denied.contains("NoPermission") && denied.ends_with("false"), "at once: {denied}");
    drop(listener);
    let listener = Listener::bind(&path, 0o666).unwrap();
    assert_eq!(try_to_connect(), "Ok(()) false");
    assert_eq!(listener.accept(now()).unwrap().peer().user, 65534);
    // As it is before its server listens.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(UNFINISHED_MODE)).unwrap();
    let unfinished = try_to_connect();
    assert!(unfinished.contains("TimedOut") && unfinished.ends_with("true"), "after a wait: {unfinished}");
    assert!(unfinished.contains("Errno(13)"), "{unfinished}");
}
