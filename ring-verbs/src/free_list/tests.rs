//! Models of those who take and give back. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! A slab is touched by who has taken its number and not given it back.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::FreeList;
use crate::sync::Cell;
use crate::testing::{model, scaled, thread, wide_model};

/// A free list, and what its numbers stand for.
struct Slabs {
    free: FreeList,
    /// Who wrote there last, and how often it was written. Under loom, two at a time are noticed.
    slabs: Vec<Cell<u64>>,
}

impl Slabs {
    fn new(places: u32) -> Arc<Self> {
        let slabs = (0..places).map(|_| Cell::new(0)).collect();
        Arc::new(Self { free: FreeList::new(places), slabs })
    }

    /// Takes a number, and writes to its slab.
    fn take(&self) -> Option<u32> {
        let number = self.free.take()?;
        self.write(number);
        Some(number)
    }

    fn take_soon(&self) -> u32 {
        loop {
            match self.take() {
                Some(number) => return number,
                None => thread::yield_now(),
            }
        }
    }

    fn write(&self, number: u32) {
        // SAFETY: the number was taken, and not given back.
        unsafe { self.slabs[number as usize].with(|writes| *writes += 1) };
    }

    fn give_back(&self, number: u32) {
        self.write(number);
        self.free.give_back(number);
    }

    /// How often the slabs were written, and that all of them are free.
    fn writes(&self) -> u64 {
        assert_eq!(self.free.out(), 0);
        let all: Vec<u32> = core::iter::from_fn(|| self.free.take()).collect();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..self.free.places()), "each is there once: {all:?}");
        // SAFETY: all numbers were taken.
        all.iter().map(|number| unsafe { self.slabs[*number as usize].with(|writes| *writes) }).sum()
    }
}

/// Takes a number and gives it back, again and again, in so many threads.
fn turns(places: u32, threads: u64, turns: u64) {
    wide_model(move || {
        let slabs = Slabs::new(places);
        let work = move |slabs: &Slabs| {
            for _ in 0..turns {
                let number = slabs.take_soon();
                slabs.give_back(number);
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let slabs = Arc::clone(&slabs);
                thread::spawn(move || work(&slabs))
            })
            .collect();
        work(&slabs);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(slabs.writes(), 2 * turns * threads);
    });
}

#[test]
fn one_number_is_with_one_thread() {
    turns(1, 2, scaled(2, 2_000));
}

#[test]
fn two_numbers_are_with_two_threads() {
    turns(2, 2, scaled(2, 2_000));
}

#[test]
fn three_threads_share_two_numbers() {
    turns(2, 3, scaled(1, 2_000));
}

/// One thread looks at the top, and meanwhile another takes both numbers and puts the first on top again: the number
/// below it is out, and must not be on top next.
#[test]
fn an_old_picture_of_the_top_is_noticed() {
    model(|| {
        let slabs = Slabs::new(2);
        let theirs = Arc::clone(&slabs);
        let other = thread::spawn(move || {
            let first = theirs.take_soon();
            let second = theirs.take();
            theirs.give_back(first);
            second
        });
        let mine = slabs.take();
        let second = other.join().unwrap();
        assert!(mine.is_none() || mine != second, "a number is with two");
        [mine, second].into_iter().flatten().for_each(|number| slabs.give_back(number));
        slabs.writes();
    });
}

/// Buffers are taken by who posts and given back by who polls.
#[test]
fn what_was_written_is_seen_by_who_takes_it_next() {
    model(|| {
        let slabs = Slabs::new(2);
        let taken = [slabs.take_soon(), slabs.take_soon()];
        assert_eq!((slabs.take(), slabs.free.out()), (None, 2));
        let theirs = Arc::clone(&slabs);
        let giver = thread::spawn(move || taken.into_iter().for_each(|number| theirs.give_back(number)));
        let number = slabs.take_soon();
        slabs.give_back(number);
        giver.join().unwrap();
        assert_eq!(slabs.writes(), 6);
    });
}

#[test]
fn an_empty_list_has_nothing() {
    model(|| {
        let slabs = Slabs::new(0);
        assert_eq!((slabs.take(), slabs.writes()), (None, 0));
    });
}
