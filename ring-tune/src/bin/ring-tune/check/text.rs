//! A report for people: failures first, then by group.

use core::fmt::Write as _;

use super::finding::{Finding, Judged, Verdict};
use super::report::Report;
use super::row::Row;
use crate::say::{plain, writing};

/// So many lines of commands are shown for a row.
const MOST_COMMANDS: usize = 5;

/// The report as text; `all` shows what is well and what does not apply, too.
pub(super) fn of(report: &Report, all: bool, has_colours: bool) -> String {
    let mut text = String::new();
    let machine = if report.is_virtual { "virtual machine" } else { "bare metal" };
    let _ = writeln!(text, "{}, {machine}, kernel {}", plain(&report.cpu), plain(&report.kernel));
    let profile =
        clap::ValueEnum::to_possible_value(&report.profile).map(|value| value.get_name().to_owned());
    let _ = writeln!(text, "CPUs {}, profile {}", report.cpus, profile.unwrap_or_default());

    let mut shown: Vec<&Finding> = report.findings.iter().filter(|finding| all || is_news(finding)).collect();
    // Stable: within a verdict and a group the rows keep their order.
    shown.sort_by_key(|finding| (finding.judged.verdict, finding.row.group));
    let mut heading = None;
    for finding in shown {
        let here = (finding.judged.verdict, finding.row.group);
        if heading != Some(here) {
            let _ = writeln!(text, "\n{} · {}", coloured(here.0, has_colours), here.1);
            heading = Some(here);
        }
        describe(&mut text, finding);
    }
    let _ = writeln!(text, "\n{}", sum(report, all));
    text
}

fn is_news(finding: &Finding) -> bool {
    !matches!(finding.judged.verdict, Verdict::Ok | Verdict::Skip)
}

fn describe(text: &mut String, Finding { row, judged }: &Finding) {
    let _ = write!(text, "  {}: {}: {}", row.id, row.what, plain(&judged.actual));
    if !judged.wanted.is_empty() {
        let _ = write!(text, "; wanted: {}", plain(&judged.wanted));
    }
    text.push('\n');
    let mut line = |head: &str, tail: &str| {
        if !tail.is_empty() {
            let _ = writeln!(text, "      {head:<9}{}", plain(tail));
        }
    };
    line("", &judged.note);
    if matches!(judged.verdict, Verdict::Fail | Verdict::Warn) {
        line("costs:", row.why);
        let commands = commands(row, judged);
        line("now:", commands.first().map_or(row.now, String::as_str));
        for command in commands.iter().skip(1) {
            line("", command);
        }
        let parameters = judged.boot.join(" ");
        line("at boot:", if parameters.is_empty() { row.boot } else { &parameters });
        line("price:", row.price);
    }
}

/// What writes the files that mend it, as root in a shell.
fn commands(row: &Row, judged: &Judged) -> Vec<String> {
    let mut commands: Vec<String> =
        judged.changes.iter().map(|change| writing(&change.path, &change.value)).collect();
    commands.extend(judged.commands.iter().cloned());
    if commands.len() > MOST_COMMANDS {
        let more = commands.len() - (MOST_COMMANDS - 1);
        commands.truncate(MOST_COMMANDS - 1);
        commands.push(format!("# and {more} more: ring-tune fix --print --row {}", row.id));
    }
    commands
}

fn sum(report: &Report, all: bool) -> String {
    let count = |verdict| report.count(verdict);
    let mut text = format!(
        "{} fail, {} warn, {} unknown, {} to know, {} ok, {} do not apply",
        count(Verdict::Fail),
        count(Verdict::Warn),
        count(Verdict::Unknown),
        count(Verdict::Info),
        count(Verdict::Ok),
        count(Verdict::Skip),
    );
    text.push_str(if report.is_ready() { ": ready" } else { ": not tuned" });
    if report.is_virtual {
        text.push_str(", as far as a virtual machine can tell: its host is not seen");
    }
    if !all {
        text.push_str(" (--all shows every row)");
    }
    let is_mended = report.findings.iter().any(|finding| {
        matches!(finding.judged.verdict, Verdict::Fail | Verdict::Warn) && !finding.judged.changes.is_empty()
    });
    if is_mended {
        text.push_str(
            "\nring-tune fix writes all of it as a script; fix --apply does it now, fix --undo takes it back",
        );
    }
    text
}

/// ECMA-48, select graphic rendition: bold and a colour.
fn coloured(verdict: Verdict, has_colours: bool) -> String {
    if !has_colours {
        return verdict.to_string();
    }
    let colour = match verdict {
        Verdict::Fail => 31,
        Verdict::Warn => 33,
        Verdict::Unknown => 35,
        Verdict::Info => 36,
        Verdict::Ok => 32,
        Verdict::Skip => 37,
    };
    format!("\x1b[1;{colour}m{verdict}\x1b[0m")
}
