//! The command `ring-shm`, run as a program beside real processes.

mod common;

use core::time::Duration;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use common::{OtherUser, Peer, TestName, answer, is_root, skip, unlocked, wait_until};
use ring_core::{Inspector, Role, broadcast, bytes, mpmc, spsc};
use ring_shm::{Error, Options, find, list};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ring-shm");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `list` says of a segment.
fn listed(name: &str) -> Option<Value> {
    let all = json(&["list", "--json", "--any-owner"]);
    all.as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned()
}

fn spsc_layout() -> spsc::Layout<u64> {
    spsc::Layout::new(8).unwrap()
}

#[test]
#[ignore = "the other process of the tests"]
fn child() {
    let Some((role, name)) = common::role() else { return };
    let layout = spsc_layout();
    match &*role {
        "unpublished" => {
            let new = unlocked().create(&name, layout.bytes()).unwrap();
            layout.init(&new).unwrap();
            answer("made");
            std::thread::sleep(Duration::from_secs(60));
            drop(new);
        }
        "producer" => {
            let _producer: spsc::Producer<u64, _> = unlocked().create_ring(&name, &layout).unwrap();
            answer("made");
            std::thread::sleep(Duration::from_secs(60));
        }
        "foreign" => {
            // Made by another user, and left.
            drop(unlocked().mode(0o644).create(&name, layout.bytes()).unwrap().publish());
            drop(unlocked().mode(0o600).create(&format!("{name}-own"), layout.bytes()).unwrap().publish());
        }
        "cleaner" => {
            let listed = find(&name).unwrap();
            assert!(matches!(listed.clean(), Err(Error::NoPermission { .. })), "{listed:?}");
        }
        other => panic!("no role {other}"),
    }
}

/// A child that has done the first part of its role.
fn made(role: &str, name: &str) -> Peer {
    let mut peer = Peer::start(common::child(role, name));
    assert_eq!(peer.hear(), "made");
    peer
}

#[test]
fn a_segment_is_listed_with_its_ring_and_owners() {
    let name = TestName::new("command-list");
    assert_eq!(listed(&name), None);
    let peer = made("producer", &name);
    let entry = listed(&name).unwrap();
    assert_eq!(entry["kind"], "spsc");
    assert_eq!((&entry["depth"], &entry["element_bytes"]), (&Value::from(8), &Value::from(8)));
    assert_eq!((&entry["used"], &entry["published"]), (&Value::from(true), &Value::from(true)));
    assert_eq!(entry["page_bytes"], 4096);
    assert_eq!(entry["file_bytes"], 4096);
    assert!(entry["age_seconds"].as_f64().unwrap() < 30.0);
    assert_eq!(entry["error"], Value::Null);
    let owners = entry["owners"].as_array().unwrap();
    assert_eq!((&owners[0]["role"], &owners[0]["state"]), (&"producer".into(), &"alive".into()));
    assert!(owners[0]["process"].is_u64());
    assert_eq!((&owners[1]["role"], &owners[1]["state"]), (&"consumer".into(), &"never came".into()));
    let text = String::from_utf8(run(&["list"]).stdout).unwrap();
    assert!(text.starts_with("NAME "), "{text}");
    let line = text.lines().find(|line| line.starts_with(&*name)).unwrap();
    assert!(line.contains("producer alive (") && line.contains("consumer never came"), "{line}");

    peer.kill();
    let entry = listed(&name).unwrap();
    assert_eq!((&entry["used"], &entry["owners"][0]["state"]), (&Value::from(false), &"gone".into()));
}

#[test]
fn what_a_killed_creator_left_is_cleaned_and_what_is_used_is_not() {
    for role in ["producer", "unpublished"] {
        let name = TestName::new("command-clean");
        let peer = made(role, &name);
        let entry = listed(&name).unwrap();
        assert_eq!(entry["published"], role == "producer");
        assert_eq!(entry["used"], true);
        if role == "unpublished" {
            assert_eq!(entry["error"], "not published: its creator is at work");
            assert_eq!(run(&["show", &name]).status.code(), Some(1));
        }
        let fates = json(&["clean", "--json", &name]);
        assert_eq!(fates[0]["result"], "in use");
        assert!(name.path().exists());

        peer.kill();
        assert_eq!(json(&["clean", "--json", "--dry-run", &name])[0]["result"], "would be removed");
        assert!(name.path().exists());
        assert_eq!(json(&["clean", "--json", &name])[0]["result"], "removed");
        assert!(!name.path().exists());
        let output = run(&["clean", &name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stdout).unwrap().starts_with("passed over: "));
    }
}

#[test]
fn other_files_are_neither_shown_nor_touched() {
    let (empty, text) = (TestName::new("command-empty"), TestName::new("command-text"));
    std::fs::write(empty.path(), b"").unwrap();
    std::fs::write(text.path(), [b'x'; 4096]).unwrap();
    let link = TestName::new("command-link");
    std::os::unix::fs::symlink(text.path(), link.path()).unwrap();
    for name in [&empty, &text, &link] {
        assert_eq!(listed(name), None);
        let output = run(&["clean", "--json", name]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(name.path().symlink_metadata().is_ok());
        assert_eq!(run(&["show", name]).status.code(), Some(1));
    }
    assert!(matches!(find(&text), Err(Error::WrongMagic { .. })));
    assert_eq!(find(&link).unwrap_err(), Error::NotSharedMemory);
}

#[test]
fn a_segment_that_took_the_name_meanwhile_stays() {
    let name = TestName::new("command-replaced");
    drop(unlocked().create(&name, 64).unwrap().publish());
    let old = find(&name).unwrap();
    ring_shm::unlink(&name).unwrap();
    assert_eq!(old.clean(), Err(Error::Missing));
    drop(unlocked().create(&name, 64).unwrap().publish());
    assert_eq!(old.clean(), Err(Error::Replaced));
    assert_eq!(old.observe(false).unwrap_err(), Error::Replaced);
    let new = find(&name).unwrap();
    let _observed = new.observe(false).unwrap();
    // A child that another test forks meanwhile has the descriptor until it becomes another program.
    wait_until(|| new.clean() == Ok(true));
    assert!(!name.path().exists());
}

/// Creators and cleaners at once: whoever has a segment keeps its name.
#[test]
fn nothing_that_is_used_is_ever_cleaned() {
    let name = TestName::new("command-race");
    std::thread::scope(|scope| {
        let creator = scope.spawn(|| {
            for _ in 0..200 {
                let new = loop {
                    match unlocked().create(&name, 64) {
                        Err(Error::Exists) => std::thread::yield_now(),
                        new => break new.unwrap(),
                    }
                };
                let segment = new.publish();
                std::thread::yield_now();
                assert_eq!(find(&name).unwrap().is_used(), Ok(true));
                drop(segment);
            }
        });
        let mut removed = 0;
        // The last one is left to the test's name.
        while !creator.is_finished() {
            match find(&name).and_then(|listed| listed.clean()) {
                Ok(was_removed) => removed += u32::from(was_removed),
                Err(Error::Missing | Error::Replaced | Error::WrongMagic { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(removed >= 199, "{removed}");
        creator.join().unwrap();
    });
}

#[test]
fn segments_that_come_and_go_do_not_disturb_the_list() {
    let names: Vec<_> = (0..300).map(|_| TestName::new("command-many")).collect();
    let stays = TestName::new("command-stays");
    let segment = unlocked().create(&stays, 64).unwrap().publish();
    std::thread::scope(|scope| {
        let creator = scope.spawn(|| {
            for _ in 0..3 {
                for name in &names {
                    drop(unlocked().create(name, 64).unwrap().publish());
                }
                names.iter().for_each(|name| ring_shm::unlink(name).unwrap());
            }
        });
        while !creator.is_finished() {
            assert_eq!(list().unwrap().filter(|listed| listed.name() == &*stays).count(), 1);
        }
        creator.join().unwrap();
    });
    drop(segment);
}

#[test]
fn segments_of_another_user_are_told_apart() {
    if !is_root() {
        return skip("segments_of_another_user_are_told_apart", "only root can become another user");
    }
    let name = TestName::new("command-foreign");
    let other = OtherUser::new();
    Peer::start(other.child("foreign", &name, ":")).finish();
    let entries = json(&["list", "--json"]);
    let entry = entries.as_array().unwrap().iter().find(|entry| entry["name"] == *name).unwrap();
    assert_eq!(entry["uid"], OtherUser::ID);
    assert!(entry["error"].as_str().unwrap().contains("belongs to user"));

    // What is not his own, a user may read, but not remove, and goes on past.
    let mine = TestName::new("command-mine");
    drop(unlocked().mode(0o644).create(&mine, 64).unwrap().publish());
    Peer::start(other.child("cleaner", &mine, ":")).finish();
    assert!(mine.path().exists());

    let own = format!("{}-own", &*name);
    let fates = json(&["clean", "--json", &name, &own]);
    assert_eq!((&fates[0]["result"], &fates[1]["result"]), (&"removed".into(), &"removed".into()));
    ring_shm::unlink(&mine).unwrap();
}

#[test]
fn rates_and_fill_are_shown() {
    let name = TestName::new("command-show");
    let layout = spsc_layout();
    let mut producer: spsc::Producer<u64, _> = unlocked().create_ring(&name, &layout).unwrap();
    let mut consumer: spsc::Consumer<u64, _> = unlocked().attach_ring(&name, Duration::ZERO).unwrap();
    producer.push_slice(&[1, 2, 3]).unwrap();
    let entry = json(&["show", &name, "--interval", "10ms", "--json"]);
    assert_eq!((&entry["tail"], &entry["head"], &entry["fill"]), (&3.into(), &0.into(), &3.into()));
    assert_eq!((&entry["pushes_per_second"], &entry["closed"]), (&0.0.into(), &false.into()));

    let mut shown = Command::new(PROGRAM)
        .args(["show", &name, "--interval", "300ms", "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(shown.stdout.take().unwrap()));
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    next();
    for _ in 0..10 {
        consumer.drain(8).for_each(drop);
        assert!(consumer.try_pop().is_err());
        producer.push_slice(&[1; 8]).unwrap();
    }
    let mut entries = Vec::new();
    wait_until(|| {
        entries.push(next());
        entries.last().unwrap()["tail"] == 83
    });
    let pushed = |entry: &Value| entry["pushes_per_second"].as_f64().unwrap() > 1.0;
    assert!(entries.iter().any(pushed), "{entries:?}");
    shown.kill().unwrap();
    shown.wait().unwrap();

    let text = String::from_utf8(run(&["show", &name, "--interval", "1ms"]).stdout).unwrap();
    assert!(text.contains("kind       spsc\n") && text.contains("fill 8"), "{text}");
}

#[test]
fn every_kind_of_ring_is_shown() {
    let (one, two, three) =
        (TestName::new("cmd-bytes"), TestName::new("cmd-mpmc"), TestName::new("cmd-broadcast"));
    let layout = bytes::Layout::new(128).unwrap();
    let mut row: bytes::Producer<_> = unlocked().create_ring(&one, &layout).unwrap();
    row.try_push(b"a message").unwrap();
    let layout = mpmc::Layout::<u64>::new(8).unwrap().participants(3).unwrap();
    let mut many: mpmc::Producer<u64, _> = unlocked().create_ring(&two, &layout).unwrap();
    many.try_push(1).unwrap();
    let layout = broadcast::Layout::<u64>::new(8).unwrap();
    let mut sender: broadcast::Producer<u64, _> = unlocked().create_ring(&three, &layout).unwrap();
    sender.push_slice(&[1; 12]);
    let show = |name: &str| json(&["show", name, "--interval", "1ms", "--json"]);
    let entry = show(&one);
    assert_eq!((&entry["kind"], &entry["fill"], &entry["depth"]), (&"bytes".into(), &24.into(), &128.into()));
    let entry = show(&two);
    assert_eq!((&entry["kind"], &entry["fill"], &entry["tail"]), (&"mpmc".into(), &1.into(), &1.into()));
    assert_eq!(entry["owners"].as_array().unwrap().len(), 3);
    assert_eq!(entry["owners"][0]["state"], "alive");
    let entry = show(&three);
    assert_eq!(
        (&entry["kind"], &entry["fill"], &entry["overwritten"]),
        (&"broadcast".into(), &8.into(), &4.into())
    );
    assert_eq!((&entry["head"], &entry["pops_per_second"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_is_no_ring_is_listed_all_the_same() {
    let name = TestName::new("command-no-ring");
    let segment = Arc::new(unlocked().create(&name, 4096).unwrap().publish());
    assert!(Inspector::new(&*segment).is_err());
    let entry = listed(&name).unwrap();
    assert_eq!((&entry["kind"], &entry["published"]), (&Value::Null, &Value::from(true)));
    assert!(entry["error"].as_str().unwrap().contains("no ring is ready"));
    let text = String::from_utf8(run(&["show", &name, "--interval", "1ms"]).stdout).unwrap();
    assert!(text.contains("error: "), "{text}");
    let no_ring = Error::Ring(ring_core::Error::NotReady);
    assert_eq!(segment.presence(Role::Producer), Err(no_ring));
    Options::new().attach(&name, Duration::ZERO).unwrap();
}

#[test]
fn a_name_moves_no_cursor() {
    let name = TestName::new("\u{1b}[2J\nspoilt\r\u{7}\u{9b}2J\u{202e}");
    let producer: spsc::Producer<u64, ring_shm::Claim> =
        unlocked().create_ring(&name, &spsc_layout()).unwrap();
    let shown = "\\u{1b}[2J\\nspoilt\\r\\u{7}\\u{9b}2J\\u{202e}";
    let texts = [
        run(&["list"]),
        run(&["show", &name, "--interval", "1ms"]),
        run(&["clean", &name]),
        run(&["clean", "--dry-run", &name]),
        run(&["show", &format!("{}x", &*name)]),
    ];
    for (index, output) in texts.into_iter().enumerate() {
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(index == 4 || text.contains(shown), "{text:?}");
        let is_plain = |letter: char| letter == '\n' || !(letter.is_control() || letter == '\u{202e}');
        assert!(text.chars().all(is_plain) && !text.contains("\nspoilt"), "{text:?}");
    }
    assert_eq!(listed(&name).unwrap()["name"], *name);
    drop(producer);
    let removed = String::from_utf8(run(&["clean", &name]).stdout).unwrap();
    assert_eq!(removed.trim_end().split_once(": ").unwrap().0, "removed");
}

#[test]
fn wrong_arguments_and_a_reader_that_has_gone() {
    for arguments in [
        &["frobnicate"][..],
        &["show"],
        &["show", "x", "--interval", "0s"],
        &["show", "x", "--interval", "1"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("ring-shm clean --dry-run"), "{help}");
    assert_eq!(run(&["show", "ring-shm-test-there-is-none"]).status.code(), Some(1));
    assert_eq!(run(&["clean", "a/b"]).status.code(), Some(1));
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    let mut command = Command::new(PROGRAM);
    let output = command
        .arg("list")
        .stdout(std::os::fd::OwnedFd::from(writer))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0), "{output:?}");
}
