//! Time per message, as fast as they go.

use measure::Reader;
use measure::threads::{Queue, Threads};

use super::{Comparison, RIVALS, compared, counted, figures, ratio, through_shm};
use crate::bench::arms::{Change, Ring, Spec, Way};
use crate::bench::memory::Kind;
use crate::bench::plan::{Plan, Scale};
use crate::bench::rounds::Outcome;
use crate::bench::table::Table;

const DEPTHS: [usize; 4] = [8, 16, 32, 1024];

/// Of rings through ring-shm, as in the ping-pong.
const SHM_DEPTHS: [u64; 2] = [16, 1024];

const COMPARED_DEPTHS: [usize; 2] = [16, 1024];

/// The ring of that depth as users of ring-notify have it, both sides awake.
const NOTIFIED: [(&str, Way); 2] = [("notify/1024", Way::Stream), ("notify-plain/1024", Way::StreamPlain)];

/// The bare one.
const BARE: &str = "spsc/1024";

/// What follows the depth in a name, and the reader that it means.
const READERS: [(&str, Reader); 3] = [("", Reader::Equal), ("/fast", Reader::Fast), ("/slow", Reader::Slow)];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("stream", scale, pair);
    for (ring, (suffix, reader)) in
        ["spsc", "index"].iter().flat_map(|ring| READERS.map(|reader| (ring, reader)))
    {
        for depth in DEPTHS {
            let spec = match *ring {
                "spsc" => Spec::Spsc { kind: Kind::Usual, depth: depth as u64, change: Change::None },
                _ => Spec::Index { depth: depth as u64 },
            };
            plan.stream(&format!("{ring}/{depth}{suffix}"), spec, reader);
        }
    }
    for depth in SHM_DEPTHS {
        plan.stream(&format!("shm-spsc/{depth}"), Spec::Shm { depth }, Reader::Equal);
    }
    for (name, way) in NOTIFIED {
        plan.stream(name, Spec::Notify(way), Reader::Equal);
    }
    plan.stream("bytes/1KiB", Spec::LongBytes, Reader::Equal);
    plan.stream("memcpy/1KiB", Spec::Copies, Reader::Equal);
    for threads in [1, 2] {
        for (suffix, depth) in [("", 1024), ("/16", 16)] {
            plan.stream(
                &format!("mpmc/{threads}-{threads}{suffix}"),
                Spec::Many { depth, threads },
                Reader::Equal,
            );
        }
    }
    plan.stream("broadcast/1-1", Spec::Other { ring: Ring::Broadcast, depth: 1024 }, Reader::Equal);
    if scale.compare {
        for depth in COMPARED_DEPTHS {
            for (name, queue) in core::iter::once(("spsc-threads", Queue::Spsc)).chain(RIVALS) {
                let pair = Spec::Threads(Threads::Pair { queue, depth });
                plan.stream(&format!("{name}/{depth}"), pair, Reader::Equal);
            }
        }
        for threads in [1, 2] {
            let depth = 1024;
            let many =
                |queue| Spec::Threads(Threads::Many { queue, depth, producers: threads, consumers: threads });
            plan.stream(&format!("mpmc-threads/{threads}-{threads}"), many(Queue::Mpmc), Reader::Equal);
            plan.stream(&format!("crossbeam/{threads}-{threads}"), many(Queue::Crossbeam), Reader::Equal);
        }
    }
    plan
}

/// What it costs to be ready to wake somebody.
pub(super) fn comparisons(plan: &Plan, outcome: &Outcome) -> Vec<Comparison> {
    let bare = figures(plan, outcome, BARE);
    let over_bare = |(name, _): (&str, Way)| {
        Comparison::difference(plan.suite, [name, BARE], "p50", figures(plan, outcome, name), bare)
    };
    NOTIFIED.into_iter().filter_map(over_bare).collect()
}

/// How many system calls the two processes made.
fn calls(plan: &Plan, outcome: &Outcome) -> String {
    let line = |(name, _): (&str, Way)| {
        let used = counted(plan, outcome, name)?;
        Some(format!(
            "{name}: in {} messages the receiver made {} system calls, the sender {}.\n",
            used.messages, used.receiver.syscalls, used.sender.syscalls
        ))
    };
    NOTIFIED.into_iter().filter_map(line).collect()
}

pub(super) fn reading(plan: &Plan, outcome: &Outcome) -> String {
    let mut table = Table::new(&["spsc over index", "equal", "fast", "slow"]);
    for depth in DEPTHS {
        let mut line = vec![format!("depth {depth}")];
        line.extend(READERS.map(|(suffix, _)| {
            let [spsc, index] = ["spsc", "index"].map(|ring| format!("{ring}/{depth}{suffix}"));
            ratio(plan, outcome, &spsc, &index).map_or("–".into(), |ratio| ratio.to_string())
        }));
        table.push(line);
    }
    let mut text = if outcome.rounds == 0 { String::new() } else { table.to_string() };
    text += &calls(plan, outcome);
    text += &through_shm(plan, outcome, ["spsc/16", "spsc/1024"]);
    if let Some(over) = ratio(plan, outcome, "memcpy/1KiB", "bytes/1KiB") {
        text += &format!("Messages of 1 KiB: {over} of the bandwidth of bare copies.\n");
    }
    for depth in COMPARED_DEPTHS {
        let rivals = RIVALS.map(|(name, _)| format!("{name}/{depth}"));
        text +=
            &compared(plan, outcome, &format!("spsc-threads/{depth}"), rivals.each_ref().map(String::as_str));
    }
    for threads in ["1-1", "2-2"] {
        let [ours, theirs] = ["mpmc-threads", "crossbeam"].map(|name| format!("{name}/{threads}"));
        text += &compared(plan, outcome, &ours, [&theirs]);
    }
    text
}
