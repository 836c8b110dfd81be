//! What other crates take for the same: `cargo xtask bench --compare` runs this program and tells it, over standard input,
//! which arms to make and which slices to run; it answers on standard output.
//!
//! Both sides of an arm are threads of this process, each pinned to a CPU, since most of the rivals cannot leave a
//! process.

mod arms;

use std::io::{Write, stdin, stdout};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use measure::threads::{Make, Run};
use measure::{Arm, Slice, Timer};
use ring_tune::Clock;

fn main() -> Result<()> {
    let mut orders = stdin().lines();
    let make = orders.next().context("run by `cargo xtask bench --compare`")??;
    let Make { cpus: [lead, peer], arms } = serde_json::from_str(&make)?;
    let (mut leads, follows): (Vec<_>, Vec<_>) =
        arms.into_iter().map(arms::make).collect::<Result<Vec<_>>>()?.into_iter().unzip();

    let (orders_for_peer, its_orders) = mpsc::channel();
    let (its_answer, answers_of_peer) = mpsc::channel();
    thread::spawn(move || obey(peer, follows, &its_orders, &its_answer));
    answers_of_peer.recv().context("the second thread has ended")??;

    ring_tune::pin_to(lead)?;
    let timer = Timer::new(Clock::new());
    answer("\"ready\"")?;
    for order in orders {
        let Run { arm, slice } = serde_json::from_str(&order?)?;
        orders_for_peer.send((arm, slice))?;
        let samples = leads[arm].lead(slice, timer);
        answers_of_peer.recv().context("the second thread has ended")??;
        answer(&serde_json::to_string(&samples)?)?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The other thread: it follows.
fn obey(
    cpu: usize,
    mut arms: Vec<Box<dyn Arm + Send>>,
    orders: &mpsc::Receiver<(usize, Slice)>,
    answers: &mpsc::Sender<Result<()>>,
) {
    let pinned = ring_tune::pin_to(cpu).context("cannot pin the second thread");
    let mut can_answer = answers.send(pinned).is_ok();
    while let (true, Ok((arm, slice))) = (can_answer, orders.recv()) {
        arms[arm].follow(slice);
        can_answer = answers.send(Ok(())).is_ok();
    }
}
