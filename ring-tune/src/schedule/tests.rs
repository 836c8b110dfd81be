use std::{fs, string::String, thread, vec::Vec};

use super::*;
use crate::skip::skip;

/// Policy, real-time priority and nice value of the calling thread, by another way than the one under test:
/// proc_pid_stat(5), fields 41, 40 and 19.
fn by_proc() -> [i64; 3] {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The name, field 2, may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [41, 40, 19].map(|number: usize| fields[number - 3].parse().unwrap())
}

fn is_permitted() -> bool {
    match Fifo::begin(1) {
        Ok(_) => true,
        Err(error) => {
            skip(error);
            false
        }
    }
}

#[test]
fn the_policy_holds_while_the_guard_lives_and_what_was_before_comes_back() {
    if !is_permitted() {
        return;
    }
    thread::spawn(|| {
        // SAFETY: takes plain numbers, and changes the nice value of this thread alone.
        assert_ne!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) }, -1);
        let batch = Attributes { policy: libc::SCHED_BATCH.unsigned_abs(), ..Attributes::read().unwrap() };
        batch.set().unwrap();
        let before = by_proc();
        assert_eq!(before, [i64::from(libc::SCHED_BATCH), 0, 7]);
        {
            let fifo = Fifo::begin(3).unwrap();
            assert_eq!((by_proc()[0], by_proc()[1]), (i64::from(libc::SCHED_FIFO), 3));
            let inner = Fifo::begin(9).unwrap();
            assert_eq!(by_proc()[1], 9);
            drop(inner);
            assert_eq!(by_proc()[1], i64::from(fifo.priority()));
        }
        assert_eq!(by_proc(), before);
    })
    .join()
    .unwrap();
}

#[test]
fn guards_that_end_in_any_order_leave_no_priority_behind() {
    if !is_permitted() {
        return;
    }
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for priorities in [[1, 2, 3], [3, 2, 1], [2, 2, 2], [1, 3, 1], [3, 1, 3]] {
            thread::spawn(move || {
                let before = by_proc();
                let mut guards = priorities.map(|priority| Some(Fifo::begin(priority).unwrap()));
                for place in order {
                    guards[place] = None;
                }
                assert_eq!(by_proc(), before, "{priorities:?}, ended in the order {order:?}");
            })
            .join()
            .unwrap();
        }
    }
}

#[test]
fn a_policy_that_somebody_else_has_set_meanwhile_stays() {
    if !is_permitted() {
        return;
    }
    thread::spawn(|| {
        let fifo = Fifo::begin(3).unwrap();
        let idle = Attributes {
            policy: libc::SCHED_IDLE.unsigned_abs(),
            priority: 0,
            ..Attributes::read().unwrap()
        };
        idle.set().unwrap();
        drop(fifo);
        assert_eq!(by_proc()[..2], [i64::from(libc::SCHED_IDLE), 0]);
    })
    .join()
    .unwrap();
}

#[test]
fn children_inherit_the_policy_unless_they_did_not_before() {
    if !is_permitted() {
        return;
    }
    let child = || thread::spawn(|| by_proc()[0]).join().unwrap();
    thread::spawn(move || {
        let fifo = Fifo::begin(1).unwrap();
        assert_eq!(child(), i64::from(libc::SCHED_FIFO));
        drop(fifo);
        let before = Attributes { flags: Attributes::RESET_ON_FORK, ..Attributes::read().unwrap() };
        before.set().unwrap();
        let fifo = Fifo::begin(1).unwrap();
        assert_eq!(child(), i64::from(libc::SCHED_OTHER));
        drop(fifo);
        assert_eq!(Attributes::read().unwrap().flags, Attributes::RESET_ON_FORK);
    })
    .join()
    .unwrap();
}

#[test]
fn a_guard_that_is_kept_changes_nothing_back() {
    if !is_permitted() {
        return;
    }
    thread::spawn(|| {
        Fifo::begin(2).unwrap().keep();
        assert_eq!((by_proc()[0], by_proc()[1]), (i64::from(libc::SCHED_FIFO), 2));
    })
    .join()
    .unwrap();
}

#[test]
fn a_priority_that_does_not_exist_is_refused_and_changes_nothing() {
    let before = by_proc();
    for priority in [0, 100, u8::MAX] {
        let error = Fifo::begin(priority).unwrap_err();
        assert_eq!(error, Error::Fifo { priority, source: Errno::INVAL });
        let text: String = std::format!("{error}");
        assert!(text.contains("1 to 99"), "{text}");
    }
    assert_eq!(by_proc(), before);
}
