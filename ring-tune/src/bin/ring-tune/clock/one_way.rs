//! Stamps that travel between two processes, both ways.

use core::fmt;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail, ensure};
use ring_tune::{Clock, Recorder, pin_to};
use rustix::process::getppid;
use serde::Serialize;

use super::peer::{self, Child};
use crate::line::{Line, PeerGone};

/// What the receiver's clock showed less what the sender's did.
#[derive(Debug, Serialize)]
pub(super) struct OneWay {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Those of the negative ones included.
    pub(super) samples: u64,
    pub(super) negative: u64,
    p50_ns: f64,
    p99_ns: f64,
    p999_ns: f64,
    max_ns: f64,
}

/// What both processes map.
#[derive(Debug, Default)]
pub(super) struct Shared {
    there: Line,
    back: Line,
}

/// Sends `exchanges` stamps each way.
pub(super) fn measure(clock: Clock, cpus: [usize; 2], exchanges: u64) -> anyhow::Result<[OneWay; 2]> {
    let shared = peer::share().context("cannot map memory for two processes")?;
    let (mut ours, theirs) = UnixStream::pair().context("cannot make a pipe to the second process")?;
    // The child inherits it.
    pin_to(cpus[1])?;
    let child = Child::start(|parent| {
        let there = receive_first(clock, shared, exchanges, || getppid() == Some(parent));
        there.is_ok_and(|there| (&theirs).write_all(&there.to_bytes()).is_ok())
    })
    .context("cannot start a second process")?;
    drop(theirs);

    pin_to(cpus[0])?;
    let back = send_first(clock, shared, exchanges, || child.is_running());
    let mut bytes = vec![];
    ours.read_to_end(&mut bytes).context("cannot read what the second process measured")?;
    let is_well = child.wait();
    let (Ok(back), true) = (back, is_well) else {
        bail!("the second process has ended early: find out who has killed it, and measure again")
    };
    let there = Recorder::from_bytes(&bytes)?;
    let ways = [OneWay::of(cpus[0], cpus[1], &there), OneWay::of(cpus[1], cpus[0], &back)];
    ensure!(ways.iter().all(|way| way.samples == exchanges), "some stamps were lost: {ways:?}");
    Ok(ways)
}

fn send_first(
    clock: Clock,
    Shared { there, back }: &Shared,
    exchanges: u64,
    is_alive: impl Fn() -> bool,
) -> Result<Recorder, PeerGone> {
    let mut recorder = Recorder::new();
    let (mut sent, mut last) = (0, 0);
    for _ in 0..exchanges {
        sent = stamp(clock, sent);
        there.send(sent);
        last = back.receive(last, &is_alive)?;
        recorder.record(clock.between_ns(last, clock.stop()));
    }
    Ok(recorder)
}

fn receive_first(
    clock: Clock,
    Shared { there, back }: &Shared,
    exchanges: u64,
    is_alive: impl Fn() -> bool,
) -> Result<Recorder, PeerGone> {
    let mut recorder = Recorder::new();
    let (mut sent, mut last) = (0, 0);
    for _ in 0..exchanges {
        last = there.receive(last, &is_alive)?;
        recorder.record(clock.between_ns(last, clock.stop()));
        sent = stamp(clock, sent);
        back.send(sent);
    }
    Ok(recorder)
}

/// A stamp that differs from the one before, by which the receiver knows it; a coarse clock may stand still meanwhile.
fn stamp(clock: Clock, last: u64) -> u64 {
    loop {
        let stamp = clock.start();
        if stamp != last {
            return stamp;
        }
    }
}

impl OneWay {
    pub(super) fn of(from: usize, to: usize, recorder: &Recorder) -> Self {
        let figures = recorder.summary();
        let figure = |get: fn(&ring_tune::Summary) -> f64| figures.as_ref().map_or(0.0, get);
        Self {
            from,
            to,
            samples: recorder.count() + recorder.rejected(),
            negative: recorder.rejected(),
            p50_ns: figure(|summary| summary.p50_ns),
            p99_ns: figure(|summary| summary.p99_ns),
            p999_ns: figure(|summary| summary.p999_ns),
            max_ns: figure(|summary| summary.max_ns),
        }
    }
}

impl fmt::Display for OneWay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, samples, negative, p50_ns, p99_ns, p999_ns, max_ns } = self;
        write!(
            formatter,
            "{from} to {to}: {negative} of {samples} negative; p50 {p50_ns:.1}, p99 {p99_ns:.1}, p99.9 {p999_ns:.1}, \
             max {max_ns:.0} ns"
        )
    }
}
