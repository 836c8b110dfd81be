//! What each part of a message costs, one change at a time.

use measure::Reader;

use super::{difference, differences, figure, figures};
use crate::bench::arms::{Change, Spec};
use crate::bench::memory::Kind;
use crate::bench::plan::{FLOOR_LINES, Plan, Scale};
use crate::bench::rounds::{Outcome, Spread};
use crate::bench::table::{Table, time};

/// Slots of the ring that shows what translation costs: 1 MiB each way. A ring of the usual depth lies in one or
/// two pages, where there is nothing to show.
const DEEP: usize = 16_384;

/// The deepest ring of which a whole lap stays in the first-level cache.
const ALONE: u64 = 256;

/// What is changed about the ring, and the name of that. Prefetching is the default: its case is a second name of
/// the unchanged ring, beside the one without.
const CHANGES: [(&str, Change); 7] = [
    ("spsc", Change::None),
    ("spsc+seqcst", Change::OrderedBySeqCst),
    ("spsc+prefetch", Change::None),
    ("spsc+prefetch/off", Change::PrefetchOff),
    ("slot/128", Change::WideSlots),
    ("fence-per-message", Change::FencePerMessage),
    ("eventfd-per-message", Change::Eventfd),
];

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    let mut plan = Plan::new("breakdown", scale, pair);
    let ring = |kind, depth: usize, change| Spec::Spsc { kind, depth: depth as u64, change };
    let usual = |change| ring(Kind::Usual, FLOOR_LINES, change);
    plan.round_trips("push-alone", Spec::PushAlone { depth: ALONE });
    plan.floor_case("handover", Kind::Usual, FLOOR_LINES);
    for (name, change) in CHANGES {
        plan.round_trips(name, usual(change));
    }
    plan.round_trips("pages/4KiB", ring(Kind::Base, DEEP, Change::None));
    plan.round_trips("pages/2MiB", ring(Kind::Huge, DEEP, Change::None));
    plan.round_trips("syscall", Spec::Syscall);
    // Prefetching and wide slots are about several messages under way, and what follows a message costs nothing
    // while its writer waits for the answer: a closed loop shows neither.
    for (name, change) in CHANGES {
        plan.stream(&format!("{name}/stream"), usual(change), Reader::Equal);
    }
    plan
}

pub(super) fn reading(plan: &Plan, outcome: &Outcome) -> String {
    let Some(whole) = figure(plan, outcome, "spsc") else { return String::new() };
    format!(
        "{}\n{}\n{}",
        shares(plan, outcome, whole),
        changes(plan, outcome),
        in_words(plan, outcome).unwrap_or_default()
    )
}

/// Which share of the one-way time each part has; below a part, what it would be or is made of. Shares are formed
/// in each round, as all ratios are.
fn shares(plan: &Plan, outcome: &Outcome, whole: f64) -> String {
    let of = |case| figures(plan, outcome, case).to_vec();
    let less = |case, less| differences(plan, outcome, case, less);
    let nothing = vec![0.0; of("spsc").len()];
    let parts = [
        ("hand-over of the line", of("handover"), "handover"),
        ("writing and ordering", less("spsc", "handover"), "spsc less handover"),
        ("  a push whose line is at hand", of("push-alone"), "push-alone"),
        ("translation", less("pages/4KiB", "pages/2MiB"), "pages/4KiB less pages/2MiB"),
        ("notification, reader awake", nothing, "none is needed"),
        ("  with a fence per message", less("fence-per-message", "spsc"), "fence-per-message less spsc"),
        ("    in a stream", less("fence-per-message/stream", "spsc/stream"), "both /stream"),
        (
            "  with an eventfd per message",
            less("eventfd-per-message", "spsc"),
            "eventfd-per-message less spsc",
        ),
        ("    in a stream", less("eventfd-per-message/stream", "spsc/stream"), "both /stream"),
        ("  a bare system call", of("syscall"), "syscall"),
    ];
    let title = format!("one way, {whole:.1} ns");
    let mut table = Table::new(&[&title, "ns", "[min–max]", "share", "from"]);
    for (part, values, from) in parts {
        let Some(spread) = Spread::of(&values) else { continue };
        let is_part = !part.starts_with(' ');
        let share = share(&values, &of("spsc")).filter(|_| is_part);
        table.push(vec![
            part.into(),
            format!("{:.1}", spread.median),
            format!("[{:.1}–{:.1}]", spread.min, spread.max),
            share.map_or(String::new(), |share| format!("{share:.0} %")),
            from.into(),
        ]);
    }
    table.to_string()
}

/// Per cent of the whole, formed in each round.
fn share(part: &[f64], whole: &[f64]) -> Option<f64> {
    let shares: Vec<f64> = part.iter().zip(whole).map(|(part, whole)| 100.0 * part / whole).collect();
    Spread::of(&shares).map(|spread| spread.median)
}

/// The same for a reader.
fn in_words(plan: &Plan, outcome: &Outcome) -> Option<String> {
    let less = |case, less| difference(plan, outcome, case, less).map(|spread| spread.median);
    let share = share(figures(plan, outcome, "handover"), figures(plan, outcome, "spsc"))?;
    let translation = less("pages/4KiB", "pages/2MiB").map_or("could not be measured".into(), |ns| {
        format!("comes to {ns:.1} ns in a ring of {DEEP} slots")
    });
    let fence = less("fence-per-message/stream", "spsc/stream")?;
    let eventfd = less("eventfd-per-message/stream", "spsc/stream")?;
    Some(format!(
        "The line's way from core to core is {share:.0} % of a message's time, and no protocol saves that; what is left\n\
         is writing, ordering and reading it. Translation of addresses {translation}.\n\
         Telling a reader that is awake costs nothing; a fence for each message would cost a stream {fence:.1} ns more\n\
         per message, a write to an eventfd {eventfd:.0} ns.\n"
    ))
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
