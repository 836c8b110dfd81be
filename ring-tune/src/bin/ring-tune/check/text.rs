//! A report for people: failures first, then by group.

use core::fmt::Write as _;

use super::finding::{Finding, Verdict};
use super::report::Report;
use crate::say::plain;

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
        line("now:", row.now);
        let parameters = judged.boot.join(" ");
        line("at boot:", if parameters.is_empty() { row.boot } else { &parameters });
        line("price:", row.price);
    }
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
