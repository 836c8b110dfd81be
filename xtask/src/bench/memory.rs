//! The memory of a suite: one segment for each kind of pages, cut into parts, one for each ring or row of lines.
//!
//! # Safety
//!
//! A [`Part`] lies within its segment, which it keeps, and no two parts of one [`Memory`] overlap: `cut` hands
//! out each byte behind the counts once. Both processes cut in the same order, so a part has the same place in both.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::time::Duration;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use measure::usage::{COUNTS_BYTES, Counts};
use ring_shm::{Options, Pages, Region, Report, Segment};
use serde::{Deserialize, Serialize};

/// Parts begin this far apart, so that no two arms share a page of the small kind.
const PART_ALIGN: usize = 4096;

/// Which pages an arm lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// 2 MiB where there are enough for the whole suite, else the system's own.
    Usual,
    /// The system's own, 4 KiB.
    Base,
    /// 2 MiB; without any, an arm is made all the same, and its case is not reported.
    Huge,
}

/// The segments of a suite, and how much of each has been handed out.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    segments: BTreeMap<Kind, Cut>,
}

#[derive(Debug)]
struct Cut {
    segment: Arc<Segment>,
    next: usize,
}

impl Memory {
    /// Makes a segment that holds parts of these lengths, of the pages that the kind names, or `usual` ones. Before
    /// them is room for [`counts`](Self::counts).
    pub(crate) fn create(&mut self, kind: Kind, usual: Pages, parts_bytes: &[usize]) -> Result<()> {
        let pages = match kind {
            Kind::Usual => usual,
            Kind::Base => Pages::Base,
            Kind::Huge => Pages::Huge2MiBIfAvailable,
        };
        let bytes =
            parts_bytes.iter().map(|bytes| bytes.next_multiple_of(PART_ALIGN)).sum::<usize>() + PART_ALIGN;
        let new = Options::new().pages(pages).create_anonymous(bytes)?;
        self.segments.insert(kind, Cut { segment: Arc::new(new.publish()), next: PART_ALIGN });
        Ok(())
    }

    /// Attaches to a segment of the parent process.
    pub(crate) fn attach(&mut self, kind: Kind, descriptor: OwnedFd) -> Result<()> {
        let segment = Options::new().attach_fd(descriptor, Duration::from_secs(5))?;
        self.segments.insert(kind, Cut { segment: Arc::new(segment), next: PART_ALIGN });
        Ok(())
    }

    /// Where the system calls of both processes are counted: before the parts of the usual segment.
    pub(crate) fn counts(&self) -> Result<Counts<Part>> {
        let cut = self.segments.get(&Kind::Usual).context("no usual segment was made")?;
        Counts::new(Part {
            base: cut.segment.base(),
            bytes: COUNTS_BYTES,
            _segment: Arc::clone(&cut.segment),
        })
    }

    /// Hands out the next bytes of a segment.
    pub(crate) fn cut(&mut self, kind: Kind, bytes: usize) -> Result<Part> {
        let cut = self.segments.get_mut(&kind).context("no segment of this kind was made")?;
        let begin = cut.next;
        cut.next += bytes.next_multiple_of(PART_ALIGN);
        ensure!(cut.next <= cut.segment.bytes(), "the segment is too small for its parts");
        // SAFETY: `begin` is within the segment, as the line above has seen.
        let base = unsafe { cut.segment.base().add(begin) };
        Ok(Part { base, bytes, _segment: Arc::clone(&cut.segment) })
    }

    /// The segments, for a child process to attach to.
    pub(crate) fn inheritable(&self) -> Result<Vec<(Kind, OwnedFd)>> {
        let descriptor = |(kind, cut): (&Kind, &Cut)| Ok((*kind, OwnedFd::from(cut.segment.inheritable()?)));
        self.segments.iter().map(descriptor).collect()
    }

    /// What was obtained.
    pub(crate) fn reports(&self) -> Vec<(Kind, Report)> {
        self.segments.iter().map(|(kind, cut)| (*kind, cut.segment.report())).collect()
    }
}

/// A part of a segment, for one ring: a clone is the same part, for the ring's other end.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    base: NonNull<u8>,
    bytes: usize,
    /// Keeps the mapping.
    _segment: Arc<Segment>,
}

// SAFETY: the mapping is the process's, not the thread's, and stays while the part lives.
unsafe impl Send for Part {}

// SAFETY: the bytes lie in the segment, which is kept, was zeroed by the kernel and begins on a multiple of 128,
// as parts do within it; `cut` gives them to nobody else, and all who have a clone use atomics or a ring.
unsafe impl Region for Part {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
