//! NUMA nodes: asked for, refused, told. Huge pages on nodes: see `huge`.
//!
//! # Safety
//!
//! A child that runs one test forbids itself some calls.
#![allow(unsafe_code)]

mod common;

use core::ffi::{c_long, c_ulong};
use core::time::Duration;

use common::{
    Peer, TestName, answer, can_bind, child as start_child, numa_policy, open_descriptors, refused, role,
    skip, unlocked,
};
use ring_shm::{Descriptor, Errno, Error, Nodes, Report};

const BYTES: usize = 600 * 4096 - 128;
const PAGES: u64 = 600;

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    match &*role {
        "ask for a node that is not there" => ask_for_a_node_that_is_not_there(),
        "do without the calls" => do_without_the_calls(Errno(argument.parse().unwrap())),
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

/// Of a report: the node asked about, pages there, elsewhere, absent.
fn counts(report: &Report) -> (u32, [u64; 3]) {
    match report.nodes {
        Nodes::Counted { node, there, elsewhere, absent, .. } => (node, [there, elsewhere, absent]),
        _ => panic!("{report}"),
    }
}

#[test]
fn pages_lie_on_the_node_that_was_asked_for() {
    if !can_bind() {
        return skip("pages on a node", "the kernel or a sandbox does not let this process bind memory");
    }
    let name = TestName::new("node");
    let options = unlocked().numa_node(0);
    for segment in
        [options.create(&name, BYTES).unwrap().publish(), options.create_anonymous(BYTES).unwrap().publish()]
    {
        let report = segment.report();
        assert_eq!(counts(&report), (0, [PAGES, 0, 0]));
        assert!(report.to_string().contains("nodes     600 pages on node 0, 0 elsewhere\n"), "{report}");
        assert_eq!(numa_policy(report.address).as_deref(), Some("bind:0"));
    }
    let unasked = unlocked().create_anonymous(BYTES).unwrap().report();
    assert_eq!(unasked.nodes, Nodes::NotAsked);

    // The binding is the file's. Whoever attaches and names a node only counts.
    let attached = unlocked().attach(&name, Duration::ZERO).unwrap();
    assert_eq!(numa_policy(attached.report().address).as_deref(), Some("bind:0"));
    assert_eq!(attached.report().nodes, Nodes::NotAsked);
    let counting = unlocked().numa_node(7).attach(&name, Duration::ZERO).unwrap();
    assert_eq!(counts(&counting.report()), (7, [0, PAGES, 0]));
    let absent = options.prefault(false).attach(&name, Duration::ZERO).unwrap();
    let (_, [there, elsewhere, absent]) = counts(&absent.report());
    assert!(elsewhere == 0 && there + absent == PAGES && absent > PAGES / 2, "{there} {elsewhere} {absent}");
}

#[test]
fn a_node_that_is_not_there_is_refused_and_leaves_nothing() {
    if !can_bind() {
        return skip("no such node", "the kernel or a sandbox does not let this process bind memory");
    }
    assert_eq!(Peer::start(start_child("ask for a node that is not there", "")).finish(), ["done"]);
}

fn ask_for_a_node_that_is_not_there() {
    let name = TestName::new("no-node");
    let has = |node: u32| std::fs::exists(format!("/sys/devices/system/node/node{node}")).unwrap();
    let missing = (0..).find(|node| !has(*node)).unwrap();
    for node in [missing, 1023, 1024, 1_000_000, u32::MAX] {
        let options = unlocked().numa_node(node);
        let expected = Error::NoSuchNode { node };
        assert_eq!(refused(|| options.create(&name, 4096)), expected);
        assert_eq!(refused(|| options.create_anonymous(4096)), expected);
        assert!(!name.path().exists(), "nothing is left behind");
        assert!(expected.to_string().contains("/sys/devices/system/node"), "{expected}");
    }
}

/// Has the kernel refuse to bind memory and to tell where it lies, in this process and for good.
fn forbid_the_calls(errno: Errno) {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k };
    let is_call = |number: c_long, skipped| {
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, skipped, 0, u32::try_from(number).unwrap())
    };
    let end = |value| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let mut program = [
        // The number of the call is the first word of what the filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        is_call(libc::SYS_mbind, 2),
        is_call(libc::SYS_move_pages, 1),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_ERRNO | u32::try_from(errno.0).unwrap()),
    ];
    let filter = libc::sock_fprog { len: 5, filter: program.as_mut_ptr() };
    let [one, none]: [c_ulong; 2] = [1, 0];
    // SAFETY: no conditions.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, none, none, none) }, 0);
    let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: the program is as long as it says.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) }, 0);
}

#[test]
fn a_sandbox_without_the_calls_is_told() {
    for errno in [Errno::NOSYS, Errno::PERM] {
        let peer = Peer::start(start_child("do without the calls", &errno.0.to_string()));
        assert_eq!(peer.finish(), ["done"]);
    }
}

fn do_without_the_calls(source: Errno) {
    forbid_the_calls(source);
    let name = TestName::new("no-calls");
    let options = unlocked().numa_node(0);
    let expected = Error::CannotBind { node: 0, source };
    assert_eq!(refused(|| options.create(&name, 4096)), expected);
    assert_eq!(refused(|| options.create_anonymous(4096)), expected);
    assert!(!name.path().exists(), "nothing is left behind");
    assert!(expected.to_string().contains("SYS_NICE"), "{expected}");

    let before = open_descriptors();
    let segment = unlocked().create_anonymous(4096).unwrap().publish();
    let inheritable: Descriptor = segment.inheritable().unwrap();
    let attached = options.attach_fd(inheritable, Duration::ZERO).unwrap();
    assert_eq!(attached.report().nodes, Nodes::Unknown(source));
    drop((segment, attached));
    assert_eq!(open_descriptors(), before);
}
