//! `ring-shm show`.

use core::time::Duration;
use std::process::ExitCode;
use std::time::Instant;

use ring_core::{Inspector, Progress};
use ring_shm::{Error, Segment};
use serde_json::{Value, json};

use crate::look::{Look, Nothing, Ring};
use crate::say::say;

/// What to show, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The segment
    name: String,

    /// Time between the two looks that rates come from: 500ms, 1s, 2m
    #[arg(long, default_value = "1s", value_parser = parse_interval)]
    interval: Duration,

    /// Go on until interrupted, with a line for each interval
    #[arg(long)]
    watch: bool,

    /// One JSON object, or one a line
    #[arg(long)]
    json: bool,

    /// Look into the segment of another user, too, who could truncate it and so kill this command
    #[arg(long)]
    any_owner: bool,
}

pub(crate) fn run(args: &Args) -> crate::Result {
    let listed = ring_shm::find(&args.name)?;
    let segment = crate::look::observe(&listed, args.any_owner)?;
    let mut look = Look { ring: Ring::of(&segment).map_err(Nothing::Failed), listed };
    if !args.json {
        for (column, cell) in crate::look::COLUMNS.iter().zip(look.cells()) {
            say(format_args!("{:<10} {cell}\n", column.to_lowercase()))?;
        }
    }
    let mut before = Sample::take(&segment);
    loop {
        std::thread::sleep(args.interval);
        let now = Sample::take(&segment);
        let rates = Rates::between(&before, &now);
        look.ring = Ring::of(&segment).map_err(Nothing::Failed);
        if args.json {
            say(format_args!("{}\n", json(&look, &now, &rates)))?;
        } else {
            say(format_args!("{}\n", line(&now, &rates)))?;
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

/// How far the ring was at a time. A ring that was made anew is looked at anew.
struct Sample {
    at: Instant,
    progress: Result<Progress, Error>,
}

impl Sample {
    fn take(segment: &Segment) -> Self {
        let progress = Inspector::new(segment).and_then(|inspector| inspector.progress());
        Self { at: Instant::now(), progress: progress.map_err(Error::from) }
    }
}

/// Messages a second, in a byte ring bytes. None where the ring was made anew, or leaves no trace of pops.
#[derive(Debug, Default)]
struct Rates {
    pushes: Option<f64>,
    pops: Option<f64>,
}

impl Rates {
    fn between(before: &Sample, now: &Sample) -> Self {
        let (Ok(old), Ok(new)) = (&before.progress, &now.progress) else { return Self::default() };
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        let rate = |old: u64, new: u64| {
            let moved = new.wrapping_sub(old);
            (moved <= u64::MAX / 2 && seconds > 0.0).then(|| moved as f64 / seconds)
        };
        Self {
            pushes: rate(old.tail, new.tail),
            pops: old.head.zip(new.head).and_then(|(old, new)| rate(old, new)),
        }
    }
}

fn json(look: &Look, now: &Sample, rates: &Rates) -> Value {
    let mut all = look.json();
    let progress = now.progress.as_ref().ok();
    all["tail"] = json!(progress.map(|progress| progress.tail));
    all["head"] = json!(progress.and_then(|progress| progress.head));
    all["fill"] = json!(progress.map(|progress| progress.fill));
    all["overwritten"] = json!(progress.map(|progress| progress.overwritten));
    all["closed"] = json!(progress.map(|progress| progress.closed));
    all["pushes_per_second"] = json!(rates.pushes);
    all["pops_per_second"] = json!(rates.pops);
    if let Err(error) = &now.progress {
        all["error"] = json!(error.to_string());
    }
    all
}

fn line(now: &Sample, rates: &Rates) -> String {
    let progress = match &now.progress {
        Ok(progress) => progress,
        Err(error) => return format!("error: {error}"),
    };
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rate = |rate: Option<f64>| or_nothing(rate.map(|rate| format!("{rate:.0}")));
    format!(
        "tail {}  head {}  fill {}  pushes/s {}  pops/s {}  overwritten {}{}",
        progress.tail,
        or_nothing(progress.head.map(|head| head.to_string())),
        progress.fill,
        rate(rates.pushes),
        rate(rates.pops),
        progress.overwritten,
        if progress.closed { "  closed" } else { "" }
    )
}

/// A number and its unit.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return Err("give a whole number of ms, s or m, such as 500ms".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "give a whole number before the unit".to_owned())?;
    match number.checked_mul(unit_ms) {
        Some(0) | None => Err("give a time of 1ms or more".to_owned()),
        Some(ms) => Ok(Duration::from_millis(ms)),
    }
}
