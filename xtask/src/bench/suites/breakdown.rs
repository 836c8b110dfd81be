//! What each part of a message costs, one change at a time.

use super::{difference, figure, figures};
use crate::bench::arms::{Change, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::{FLOOR_LINES, Plan, Scale};
use crate::bench::rounds::{Outcome, Spread};
use crate::bench::stream::Reader;
use crate::bench::table::{Table, time};

/// Slots of the ring that shows what translation costs: 1 MiB each way. A ring of the usual depth lies in one or
/// two pages, where there is nothing to show.
const DEEP: usize = 16_384;

/// The deepest ring of which a whole lap stays in the first-level cache.
const ALONE: u64 = 256;

/// What is changed about the ring, and the name of that.
const CHANGES: [(&str, Change); 5] = [
    ("spsc", Change::None),
    ("spsc+seqcst", Change::OrderedBySeqCst),
    ("spsc+prefetch", Change::PrefetchOn),
    ("spsc+prefetch/off", Change::PrefetchOff),
    ("slot/128", Change::WideSlots),
];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("breakdown", scale, pair);
    let ring = |kind, depth: usize, change| Spec::Spsc { kind, depth: depth as u64, change };
    let usual = |change| ring(Kind::Usual, FLOOR_LINES, change);
    plan.round_trips("push-alone", Spec::PushAlone { depth: ALONE }, Kind::Usual, FLOOR_LINES);
    plan.floor_case("handover", Kind::Usual, FLOOR_LINES);
    for (name, change) in CHANGES {
        plan.round_trips(name, usual(change), Kind::Usual, FLOOR_LINES);
    }
    plan.round_trips("pages/4KiB", ring(Kind::Base, DEEP, Change::None), Kind::Base, DEEP);
    plan.round_trips("pages/2MiB", ring(Kind::Huge, DEEP, Change::None), Kind::Huge, DEEP);
    plan.round_trips("fence-per-message", usual(Change::FencePerMessage), Kind::Usual, FLOOR_LINES);
    plan.round_trips("eventfd-per-message", usual(Change::Eventfd), Kind::Usual, FLOOR_LINES);
    plan.round_trips("syscall", Spec::Syscall, Kind::Usual, FLOOR_LINES);
    // Prefetching and wide slots are about several messages under way, which a closed loop never has.
    for (name, change) in CHANGES.iter().filter(|(_, change)| *change != Change::OrderedBySeqCst) {
        plan.stream(&format!("{name}/stream"), usual(*change), Reader::Equal, Kind::Usual, FLOOR_LINES);
    }
    plan
}

pub(super) fn reading(plan: &Plan, outcome: &Outcome) -> String {
    let (Some(whole), true) = (figure(plan, outcome, "spsc"), outcome.rounds > 0) else {
        return String::new();
    };
    format!("{}\n{}", shares(plan, outcome, whole), changes(plan, outcome))
}

/// Which share of the one-way time each part has.
fn shares(plan: &Plan, outcome: &Outcome, whole: f64) -> String {
    let less = |case, less| difference(plan, outcome, case, less);
    let title = format!("one way, {whole:.1} ns");
    let mut table = Table::new(&[&title, "ns", "[min–max]", "share", "from"]);
    let mut push = |part: &str, spread: Option<Spread>, is_share: bool, from: &str| {
        let ns = spread.map_or("–".into(), |spread| format!("{:.1}", spread.median));
        let range = spread.map_or("–".into(), |spread| format!("[{:.1}–{:.1}]", spread.min, spread.max));
        let share = spread
            .filter(|_| is_share)
            .map_or(String::new(), |spread| format!("{:.0} %", 100.0 * spread.median / whole));
        table.push(vec![part.into(), ns, range, share, from.into()]);
    };
    let of = |case| Spread::of(figures(plan, outcome, case));
    push("hand-over of the line", of("handover"), true, "handover");
    push("writing and ordering", less("spsc", "handover"), true, "spsc less handover");
    push("  a push whose line is at hand", of("push-alone"), false, "push-alone");
    push("translation", less("pages/4KiB", "pages/2MiB"), true, "pages/4KiB less pages/2MiB");
    push(
        "notification, reader awake",
        Some(Spread { median: 0.0, min: 0.0, max: 0.0 }),
        true,
        "none is needed",
    );
    push(
        "  a fence per message would add",
        less("fence-per-message", "spsc"),
        false,
        "fence-per-message less spsc",
    );
    push(
        "  an eventfd per message would add",
        less("eventfd-per-message", "spsc"),
        false,
        "eventfd-per-message less spsc",
    );
    push("  a bare system call", of("syscall"), false, "syscall");
    table.to_string()
}

/// What the changes bring that somebody might try.
fn changes(plan: &Plan, outcome: &Outcome) -> String {
    let mut table = Table::new(&["changed", "one way, ns", "less spsc", "stream, ns", "less spsc/stream"]);
    for (name, _) in CHANGES {
        let stream = format!("{name}/stream");
        let change = |case: &str, base| {
            let spread = difference(plan, outcome, case, base).filter(|_| name != "spsc");
            spread.map_or("–".into(), |spread| {
                format!("{:+.1} [{:+.1}–{:+.1}]", spread.median, spread.min, spread.max)
            })
        };
        table.push(vec![
            name.into(),
            time(figure(plan, outcome, name)),
            change(name, "spsc"),
            time(figure(plan, outcome, &stream)),
            change(&stream, "spsc/stream"),
        ]);
    }
    table.to_string()
}
