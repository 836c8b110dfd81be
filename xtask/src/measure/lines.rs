//! The floor: a bare word each way, with no protocol around it.
//!
//! | edge | from | to | carries |
//! |---|---|---|---|
//! | R1 → A1 | a word at send | the same word at receive | nothing but itself: the orderings are those that a ring needs |
//!
//! # Safety
//!
//! Lines are made over a [`Region`] that is long enough, which `Lines::new` checks and the value keeps. All words
//! are atomics, and an index is masked to the number of lines.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use ring_core::Region;

use crate::exchange::{self, Exchange};
use crate::{Arm, Samples, Side, Slice, Timer, directions};

/// A line, with a word for each direction.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line {
    to_peer: AtomicU64,
    to_lead: AtomicU64,
}

#[derive(Debug)]
struct Lines<R> {
    first: NonNull<Line>,
    mask: usize,
    _region: R,
}

/// Memory for so many lines.
#[must_use]
pub const fn line_bytes(lines: usize) -> usize {
    lines * size_of::<Line>()
}

// SAFETY: the pointer is into the region, which the value keeps and sends along.
unsafe impl<R: Send> Send for Lines<R> {}

impl<R: Region> Lines<R> {
    fn new(region: R, count: usize) -> Result<Self> {
        ensure!(
            count.is_power_of_two() && region.bytes() >= line_bytes(count),
            "too little memory for {count} lines"
        );
        Ok(Self { first: region.base().cast(), mask: count - 1, _region: region })
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the number is masked to that of the lines")]
    fn at(&self, number: u64) -> &Line {
        // SAFETY: the masked index is below the number of lines that `new` found room for.
        let line = unsafe { self.first.add(number as usize & self.mask) };
        // SAFETY: aligned, as parts are; its words are atomics, and the part is kept.
        unsafe { line.as_ref() }
    }
}

/// Both words in one line.
#[derive(Debug)]
struct SameLine<R>(Lines<R>);

/// A row of lines for each direction.
#[derive(Debug)]
struct Rotating<R> {
    send: Lines<R>,
    receive: Lines<R>,
}

#[inline(always)]
fn send(word: &AtomicU64, number: u64) {
    // ORDERING: Release (R1): as a ring has it; pairs with A1 in wait_for.
    word.store(number, Ordering::Release);
}

#[inline(always)]
fn wait_for(word: &AtomicU64, number: u64) {
    // ORDERING: Acquire (A1): as a ring has it; pairs with R1 in send.
    while word.load(Ordering::Acquire) != number {
        core::hint::spin_loop();
    }
}

impl<R: Region> Exchange for SameLine<R> {
    #[inline(always)]
    fn ping(&mut self, number: u64) {
        let line = self.0.at(number);
        send(&line.to_peer, number);
        wait_for(&line.to_lead, number);
    }

    #[inline(always)]
    fn pong(&mut self, number: u64) {
        let line = self.0.at(number);
        wait_for(&line.to_peer, number);
        send(&line.to_lead, number);
    }
}

impl<R: Region> Exchange for Rotating<R> {
    #[inline(always)]
    fn ping(&mut self, number: u64) {
        send(&self.send.at(number).to_peer, number);
        wait_for(&self.receive.at(number).to_peer, number);
    }

    #[inline(always)]
    fn pong(&mut self, number: u64) {
        wait_for(&self.receive.at(number).to_peer, number);
        send(&self.send.at(number).to_peer, number);
    }
}

/// An exchange, and the number of its next message. Numbers begin at 1, since fresh memory holds 0.
#[derive(Debug)]
struct Numbered<E> {
    exchange: E,
    next: u64,
}

impl<E: Exchange> Arm for Numbered<E> {
    fn lead(&mut self, slice: Slice, timer: Timer) -> Samples {
        exchange::lead(&mut self.exchange, &mut self.next, slice, timer)
    }

    fn follow(&mut self, slice: Slice) {
        exchange::follow(&mut self.exchange, &mut self.next, slice);
    }
}

/// One line for both ways.
///
/// # Errors
///
/// When there is no memory for it.
pub fn same_line<R: Region + 'static>(parts: Vec<R>) -> Result<impl Arm + 'static> {
    let part = parts.into_iter().next();
    let part = part.ok_or_else(|| anyhow::anyhow!("the floor has one part"))?;
    Ok(Numbered { exchange: SameLine(Lines::new(part, 1)?), next: 1 })
}

/// As many lines each way as a ring has slots.
///
/// # Errors
///
/// When there is too little memory for them.
pub fn floor<R: Region + 'static>(side: Side, parts: Vec<R>, lines: usize) -> Result<impl Arm + 'static> {
    let (send, receive) = directions(side, parts)?;
    let exchange = Rotating { send: Lines::new(send, lines)?, receive: Lines::new(receive, lines)? };
    Ok(Numbered { exchange, next: 1 })
}
