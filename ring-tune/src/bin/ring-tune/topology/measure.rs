//! Two threads that hand a word to and fro.

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, anyhow};
use ring_tune::{Clock, CpuSet, pin_to};

use crate::line::{Line, PeerGone};

/// Round trips whose mean is one sample: the clock steps by some 10 ns.
const BLOCK: u32 = 64;

/// Samples of a pair in a round, after as many that only warm the lines up.
const BLOCKS: u32 = 24;

/// A pair and its one-way times in ns, one for each round.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) cpus: [usize; 2],
    pub(super) rounds_ns: Vec<f64>,
}

/// Measures each pair of the CPUs in turn, round after round.
pub(super) fn rounds(
    clock: Clock,
    cpus: &CpuSet,
    rounds: u16,
    progress: impl Fn(usize, usize),
) -> anyhow::Result<Vec<Way>> {
    let cpus: Vec<usize> = cpus.iter().collect();
    let pairs = cpus.iter().enumerate().flat_map(|(place, &one)| {
        let others = &cpus[place + 1..];
        others.iter().map(move |&other| Way { cpus: [one, other], rounds_ns: vec![] })
    });
    let mut ways: Vec<Way> = pairs.collect();
    let turns = ways.len() * usize::from(rounds);
    for round in 0..usize::from(rounds) {
        let before = round * ways.len();
        for (place, way) in ways.iter_mut().enumerate() {
            progress(before + place, turns);
            way.rounds_ns.push(one_way_ns(clock, way.cpus)?);
        }
    }
    progress(turns, turns);
    Ok(ways)
}

/// The median of the blocks of one turn.
fn one_way_ns(clock: Clock, cpus: [usize; 2]) -> anyhow::Result<f64> {
    let (there, back) = (Line::default(), Line::default());
    let (lead_lives, peer_lives) = (Lives::new(), Lives::new());
    let samples = thread::scope(|scope| {
        let peer = scope.spawn(|| {
            let _end = peer_lives.until_drop();
            pin_to(cpus[1])?;
            for word in 1..=u64::from(2 * BLOCKS * BLOCK) {
                if there.receive(word - 1, || lead_lives.is_set()).is_err() {
                    break;
                }
                back.send(word);
            }
            Ok::<_, ring_tune::Error>(())
        });
        let lead = scope.spawn(|| {
            let _end = lead_lives.until_drop();
            pin_to(cpus[0])?;
            Ok::<_, ring_tune::Error>(lead(clock, &there, &back, || peer_lives.is_set()))
        });
        let samples = lead.join().map_err(|_| anyhow!("the measuring thread has panicked"))??;
        peer.join().map_err(|_| anyhow!("the answering thread has panicked"))??;
        samples.map_err(|PeerGone| anyhow!("the answering thread has ended early"))
    });
    let mut samples = samples.with_context(|| format!("cannot measure CPUs {} and {}", cpus[0], cpus[1]))?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

fn lead(clock: Clock, there: &Line, back: &Line, is_alive: impl Fn() -> bool) -> Result<Vec<f64>, PeerGone> {
    let mut samples = Vec::with_capacity(2 * BLOCKS as usize);
    let mut word = 0;
    for _ in 0..2 * BLOCKS {
        let start = clock.start();
        for _ in 0..BLOCK {
            there.send(word + 1);
            word = back.receive(word, &is_alive)?;
        }
        samples.push(clock.between_ns(start, clock.stop()) / f64::from(2 * BLOCK));
    }
    Ok(samples.split_off(BLOCKS as usize))
}

/// Whether a thread has not ended yet.
#[derive(Debug)]
struct Lives(AtomicBool);

impl Lives {
    fn new() -> Self {
        Self(AtomicBool::new(true))
    }

    fn is_set(&self) -> bool {
        // ORDERING: Acquire (A1): the last word is seen; pairs with R1 in End::drop.
        self.0.load(Ordering::Acquire)
    }

    fn until_drop(&self) -> impl Drop + '_ {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                // ORDERING: Release (R1): after the last word that was sent; pairs with A1 in Lives::is_set.
                self.0.store(false, Ordering::Release);
            }
        }
        End(&self.0)
    }
}
