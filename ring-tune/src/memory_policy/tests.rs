use std::{format, fs, string::String, thread, vec};

use super::*;
use crate::skip::skip;

/// What the kernel says of the mapping at this address, by another way than the one under test; numa(7).
fn mapping(address: *const u8) -> String {
    let maps = fs::read_to_string("/proc/thread-self/numa_maps").unwrap();
    let start = |line: &str| usize::from_str_radix(line.split(' ').next()?, 16).ok();
    let mut lines = maps.lines().filter(|line| start(line).is_some_and(|start| start <= address.addr()));
    lines.next_back().unwrap().into()
}

fn is_permitted() -> bool {
    match memory_policy() {
        Ok(_) => true,
        Err(error) => {
            skip(error);
            false
        }
    }
}

#[test]
fn a_policy_is_the_threads_own_and_is_read_back() {
    if !is_permitted() {
        return;
    }
    let before = memory_policy().unwrap();
    thread::spawn(|| {
        let local = 0_u8;
        for (policy, text) in [
            (MemoryPolicy::Bind { node: 0 }, " bind:0 "),
            (MemoryPolicy::Preferred { node: 0 }, " prefer:0 "),
            (MemoryPolicy::Local, " default "),
        ] {
            set_memory_policy(policy).unwrap();
            assert_eq!(memory_policy().unwrap(), policy);
            let line = mapping(&raw const local);
            assert!(line.contains(text), "{line}");
        }
    })
    .join()
    .unwrap();
    assert_eq!(memory_policy().unwrap(), before);
}

#[test]
fn a_node_that_is_not_there_is_refused_and_changes_nothing() {
    if !is_permitted() {
        return;
    }
    let before = memory_policy().unwrap();
    for node in [NODES - 1, NODES, usize::MAX] {
        let refused = Error::MemoryPolicy { node, source: Errno::INVAL };
        assert_eq!(set_memory_policy(MemoryPolicy::Bind { node }), Err(refused));
        assert_eq!(set_memory_policy(MemoryPolicy::Preferred { node }), Err(refused));
        assert_eq!(bind_memory(&[1], node), Err(refused));
        assert!(format!("{refused}").contains("cpuset.mems"), "{refused}");
    }
    assert_eq!(memory_policy().unwrap(), before);
}

#[test]
fn a_range_is_bound_without_the_rest() {
    if !is_permitted() {
        return;
    }
    // Large enough for a mapping of its own.
    let buffer = vec![7_u8; 4 << 20];
    let middle = &buffer[1 << 20..2 << 20];
    bind_memory(middle, 0).unwrap();
    let line = mapping(middle[4_096..].as_ptr());
    assert!(line.contains(" bind:0 "), "{line}");
    bind_memory(&[], 0).unwrap();
    let line = mapping(buffer[3 << 20..].as_ptr());
    assert!(!line.contains(" bind:0 "), "{line}");
    assert!(buffer.iter().all(|&byte| byte == 7));
}
