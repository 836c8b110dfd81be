use core::sync::atomic::{AtomicBool, Ordering};
use std::{process, thread};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;

use super::*;
use crate::laid_out::LaidOut;
use crate::skip::skip;

/// Beside whatever a test writes there is a folder `sys/a`.
fn folder() -> LaidOut {
    let files = LaidOut::new();
    files.write("sys/a/.kept", "");
    files
}

fn tree(files: &LaidOut) -> Tree {
    Tree::below(files.path()).unwrap()
}

fn strange<T: core::fmt::Debug>(result: Result<T, Unread>) -> String {
    match result {
        Err(Unread::Strange { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_there_is_read() {
    let files = folder();
    files.write("sys/a/number", "-7\n");
    files.write("sys/a/cpus", "0-2,4\n");
    let tree = tree(&files);
    assert_eq!(tree.number("sys/a/number"), Ok(-7));
    assert_eq!(tree.cpus("sys/a/cpus").unwrap().len(), 4);
    assert_eq!(tree.bytes("sys/a/number").unwrap(), b"-7\n");
    assert_eq!(tree.device("sys/a/number"), Ok(*b"-7"));
    assert_eq!(tree.names("sys/a").unwrap(), [".kept", "cpus", "number"]);
    assert!(!tree.is_live());
}

#[test]
fn whatever_else_is_there_has_its_reason() {
    let files = folder();
    files.write("sys/a/text", "seven");
    files.write("sys/a/binary", [0xff, 0xfe]);
    files.write("sys/a/zero", [b'1', 0]);
    File::create(files.path().join("sys/a/huge")).unwrap().set_len(LONGEST_BYTES + 1).unwrap();
    mkfifo(&files.path().join("sys/a/pipe"), Mode::S_IRUSR).unwrap();
    files.link("sys/a/loop", "loop");

    let tree = tree(&files);
    assert!(strange(tree.number("sys/a/text")).contains("\"seven\", which is no number"));
    assert!(strange(tree.cpus("sys/a/text")).contains("no list of CPUs"));
    assert_eq!(strange(tree.text("sys/a/binary")), "is no text");
    assert_eq!(strange(tree.text("sys/a/zero")), "is no text");
    assert_eq!(strange(tree.text("sys/a/huge")), "is longer than 64 MiB");
    assert_eq!(strange(tree.text("sys/a/pipe")), "is no regular file");
    assert_eq!(strange(tree.text("sys/a")), "is a folder");
    assert_eq!(strange(tree.device::<4>("sys/a/pipe")), "is no device");
    for root in ["sys/a/pipe", "sys/a/text"] {
        assert_eq!(strange(Tree::below(files.path().join(root))), "is no folder");
    }
    assert!(strange(tree.device::<4>("sys/a/zero")).contains("cannot be read"));
    assert!(strange(tree.text("sys/a/loop")).contains("Too many levels of symbolic links (errno 40)"));
    assert!(strange(tree.text("sys/\0")).contains("cannot be read"));
    assert!(tree.text("sys/b").unwrap_err().is_absent());
    assert!(tree.text("sys/a/text/more").unwrap_err().is_absent());
    assert!(tree.names("sys/b").unwrap_err().is_absent());
}

#[test]
fn no_link_leads_out_of_the_root() {
    let files = folder();
    files.write("sys/a/inside", "inside");
    files.write("inside", "at the root");
    let link = |to: &str, name: &str| files.link(&format!("sys/{name}"), to);
    link("/etc/passwd", "absolute");
    link("../../../../../../../../etc/passwd", "relative");
    link("/inside", "of-the-root");
    link("a", "b");
    let tree = tree(&files);
    assert!(tree.text("sys/absolute").unwrap_err().is_absent());
    assert!(tree.text("sys/relative").unwrap_err().is_absent());
    assert!(tree.text("../../../../../../etc/passwd").unwrap_err().is_absent());
    assert!(tree.text("/etc/passwd").unwrap_err().is_absent());
    assert_eq!(tree.path("/etc/passwd"), tree.path("etc/passwd"));
    assert_eq!(tree.text("sys/of-the-root").unwrap(), "at the root");
    assert_eq!(tree.text("sys/b/inside").unwrap(), "inside");
    assert_eq!(tree.resolve("sys/b/inside").unwrap(), "sys/a/inside");
}

/// What may set something in motion, or wait for somebody, is not even opened: to open one of these is an error.
#[test]
fn what_is_no_file_is_not_opened() {
    let files = folder();
    let name = |name: &str| files.path().join("sys/a").join(name);
    let _socket = std::os::unix::net::UnixListener::bind(name("socket")).unwrap();
    let mut names = vec!["socket"];
    for (device, kind) in [("character", SFlag::S_IFCHR), ("block", SFlag::S_IFBLK)] {
        // A number that no driver has.
        match mknod(&name(device), kind, Mode::S_IRUSR, makedev(4_000, 4_000)) {
            Ok(()) => names.push(device),
            Err(error) => skip(format!("no {device} device can be made: {error}")),
        }
    }
    let tree = tree(&files);
    for name in names {
        assert_eq!(strange(tree.bytes(&format!("sys/a/{name}"))), "is no regular file");
        assert_eq!(strange(tree.device::<4>(&format!("sys/a/{name}"))), "is no device");
        assert!(tree.exists(&format!("sys/a/{name}")));
    }
}

/// The kernel does not go up a folder while somebody renames one anywhere.
#[test]
fn folders_that_are_renamed_meanwhile_keep_nobody_from_reading() {
    let files = folder();
    files.write("sys/number", "7");
    files.link("sys/a/link", "../number");
    let others = folder();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let [one, other] = ["one", "other"].map(|name| others.path().join(name));
            fs::create_dir(&one).unwrap();
            // ORDERING: Relaxed: nothing else is read because of it.
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&one, &other).unwrap();
                fs::rename(&other, &one).unwrap();
            }
        });
        let tree = tree(&files);
        let read: Vec<_> = (0..20_000).map(|_| tree.number("sys/a/link")).collect();
        // ORDERING: Relaxed: nothing else is published with it.
        is_over.store(true, Ordering::Relaxed);
        let other = read.into_iter().find(|number| *number != Ok(7));
        assert_eq!(other, None);
    });
}

#[test]
fn patterns_find_what_fits() {
    let files = folder();
    for name in ["cpu10", "cpu9", "cpufreq", "cpu9.old"] {
        files.write(&format!("sys/a/{name}/x"), "");
    }
    let tree = tree(&files);
    assert_eq!(
        tree.find("sys/*/cpu*/x").unwrap(),
        ["sys/a/cpu9/x", "sys/a/cpu9.old/x", "sys/a/cpu10/x", "sys/a/cpufreq/x"]
    );
    assert_eq!(tree.find("*/a/cpu1*").unwrap(), ["sys/a/cpu10"]);
    assert_eq!(tree.find("sys/a/cpu9").unwrap(), ["sys/a/cpu9"]);
    assert!(tree.find("sys/b/*").unwrap().is_empty());
    assert!(tree.find("sys/a/*/y").unwrap().is_empty());
    assert!(fits("abc", "a*c") && fits("ac", "a*c") && !fits("ab", "a*c") && fits("", "*") && fits("é", "*"));
}

#[test]
fn a_live_tree_tells_of_this_machine() {
    let tree = Tree::live();
    assert!(tree.is_live());
    assert_eq!(tree.path("proc/version"), Path::new("/proc/version"));
    assert!(tree.text("proc/version").unwrap().starts_with("Linux version"));
    assert_eq!(tree.resolve("proc/self").unwrap(), format!("proc/{}", process::id()));
    assert_eq!(tree.device("dev/zero"), Ok([0; 4]));
    assert_eq!(strange(tree.bytes("dev/zero")), "is no regular file");
}
