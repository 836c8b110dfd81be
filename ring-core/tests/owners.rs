//! What an owner word says about who has a role, and who is asked whether it is gone.
//!
//! # Safety
//!
//! The region of these tests is another one, which also names a process. Nobody is declared gone who is not.
#![allow(unsafe_code)]
#![cfg(feature = "alloc")]

use core::cell::RefCell;
use core::ptr::NonNull;
use std::sync::Arc;

use ring_core::{
    AssumeAlive, Error, HeapRegion, Liveness, Owner, Region, Role, broadcast, bytes, mpmc, spsc,
};

/// Heap memory, through which one role is taken with a lock.
#[derive(Debug, Clone)]
struct Locked {
    memory: Arc<HeapRegion>,
    role: Role,
    process: u32,
}

// SAFETY: the bytes are those of the heap region. Nobody who has the role through it is declared gone here.
unsafe impl Region for Locked {
    fn base(&self) -> NonNull<u8> {
        self.memory.base()
    }

    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn owner_process(&self, role: Role) -> u32 {
        if role == self.role { self.process } else { 0 }
    }
}

fn memory(bytes: usize) -> Arc<HeapRegion> {
    Arc::new(HeapRegion::new(bytes))
}

fn locked(memory: &Arc<HeapRegion>, role: Role, process: u32) -> Locked {
    Locked { memory: Arc::clone(memory), role, process }
}

/// Answers no, and notes who it was asked about.
#[derive(Default)]
struct Asked(RefCell<Vec<(Role, Owner)>>);

// SAFETY: it never answers true.
unsafe impl Liveness for Asked {
    fn is_gone(&self, _: NonNull<u8>, role: Role, owner: Owner) -> bool {
        self.0.borrow_mut().push((role, owner));
        false
    }
}

fn held(incarnation: u64, process: u32) -> Owner {
    Owner { incarnation, held: true, process }
}

#[test]
fn the_word_names_the_process_of_a_locked_owner_alone() {
    const LARGEST: u32 = (1 << 22) - 1;
    let layout = spsc::Layout::<u64>::new(4).unwrap();
    let memory = memory(layout.bytes());
    layout.init(&memory).unwrap();
    let consumer = spsc::Consumer::<u64, _>::attach(locked(&memory, Role::Producer, 5)).unwrap();
    for (incarnation, process) in [(1, 0), (2, 77), (3, LARGEST), (4, 1)] {
        let region = locked(&memory, Role::Producer, process);
        let producer = spsc::Producer::<u64, _>::attach(region).unwrap();
        assert_eq!(producer.peer(), held(1, 0), "the consumer's lock is for another role");
        assert_eq!(consumer.peer(), held(incarnation, process));
        drop(producer);
        assert_eq!(consumer.peer(), Owner { held: false, ..held(incarnation, process) });
    }
    // Whoever borrows such a region, shares it or vouches for its users has its lock too.
    let region = Arc::new(locked(&memory, Role::Producer, 9));
    let producer = spsc::Producer::<u64, _>::attach(&region).unwrap();
    assert_eq!(consumer.peer(), held(5, 9));
    drop(producer);
    // SAFETY: only these handles use the region.
    let trusted = unsafe { ring_core::Trusted::new(Arc::clone(&region)) };
    let _producer = spsc::Producer::<u64, _>::attach(trusted).unwrap();
    assert_eq!(consumer.peer(), held(6, 9));
}

#[test]
fn a_liveness_is_told_whom_it_is_asked_about() {
    let asked = Asked::default();
    let taken = |role| Some(Error::Taken { role });

    let layout = bytes::Layout::new(64).unwrap();
    let memory_of_bytes = memory(layout.bytes());
    layout.init(&memory_of_bytes).unwrap();
    let _producer = bytes::Producer::attach(locked(&memory_of_bytes, Role::Producer, 2)).unwrap();
    let _consumer = bytes::Consumer::attach(locked(&memory_of_bytes, Role::Consumer, 3)).unwrap();
    assert_eq!(bytes::Producer::take_over(&memory_of_bytes, &asked).err(), taken(Role::Producer));
    assert_eq!(bytes::Consumer::take_over(&memory_of_bytes, &asked).err(), taken(Role::Consumer));

    let layout = broadcast::Layout::<u64>::new(4).unwrap();
    let memory_of_broadcast = memory(layout.bytes());
    layout.init(&memory_of_broadcast).unwrap();
    let _producer =
        broadcast::Producer::<u64, _>::attach(locked(&memory_of_broadcast, Role::Producer, 4)).unwrap();
    let result = broadcast::Producer::<u64, _>::take_over(&memory_of_broadcast, &asked);
    assert_eq!(result.err(), taken(Role::Producer));

    let layout = mpmc::Layout::<u64>::new(4).unwrap();
    let memory_of_mpmc = memory(layout.bytes());
    layout.init(&memory_of_mpmc).unwrap();
    let seven = Role::Participant(7);
    let region = locked(&memory_of_mpmc, seven, 5);
    let _producer = mpmc::Producer::<u64, _>::take_over(region, 7, &AssumeAlive).unwrap();
    let result = mpmc::Consumer::<u64, _>::take_over(&memory_of_mpmc, 7, &asked);
    assert_eq!(result.err(), taken(seven));

    let expected = [
        (Role::Producer, held(1, 2)),
        (Role::Consumer, held(1, 3)),
        (Role::Producer, held(1, 4)),
        (seven, held(1, 5)),
    ];
    assert_eq!(*asked.0.borrow(), expected);
}
