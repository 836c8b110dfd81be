//! The report for people.

use core::fmt::Write as _;

use super::advice;
use super::gaps::Cause;
use super::report::{OfCpu, Report};
use super::window::{Counted, Seen};
use crate::say::plain;

/// How many names a line takes.
const NAMES: usize = 4;

/// The longest bar of a histogram, in letters.
const BAR: f64 = 40.0;

pub(super) fn of(report: &Report) -> String {
    let mut text = String::new();
    let machine = if report.is_virtual { "virtual machine" } else { "bare metal" };
    let _ = writeln!(text, "{}, {machine}, kernel {}", plain(&report.cpu), plain(&report.kernel));
    let _ = writeln!(text, "gaps of {} or more", length(report.threshold_ns));
    if report.ended_early {
        let _ = writeln!(text, "ended early by a signal");
    }
    if let Some(about) = &report.about_policy {
        let _ = writeln!(text, "{about}");
    }
    let _ = writeln!(
        text,
        "\n{:>5} {:>9} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "CPU", "seconds", "gaps", "per s", "p50", "p99", "p99.9", "max", "lost"
    );
    for cpu in &report.cpus {
        text.push_str(&row(cpu));
    }
    for cpu in &report.cpus {
        describe(&mut text, cpu);
    }
    let _ = writeln!(text, "\nwaiting on the whole machine: {}", pressure(report));
    text
}

fn row(cpu: &OfCpu) -> String {
    let per_second = if cpu.seconds > 0.0 { cpu.gaps as f64 / cpu.seconds } else { 0.0 };
    let figure = |ns: Option<f64>| ns.map_or_else(|| "-".into(), length);
    format!(
        "{:>5} {:>9.1} {:>9} {:>10.1} {:>10} {:>10} {:>10} {:>10} {:>7.3} %\n",
        cpu.cpu,
        cpu.seconds,
        cpu.gaps,
        per_second,
        figure(cpu.p50_ns),
        figure(cpu.p99_ns),
        figure(cpu.p999_ns),
        figure(cpu.max_ns),
        cpu.lost_share * 100.0
    )
}

fn describe(text: &mut String, cpu: &OfCpu) {
    let _ = writeln!(
        text,
        "\nCPU {}, a step of the loop takes {}, and a look after a gap {}",
        cpu.cpu,
        length(cpu.step_ns),
        length(cpu.look_ns)
    );
    if !cpu.has_stayed {
        let _ = writeln!(
            text,
            "  the thread was moved to another CPU meanwhile: the figures are not of this one alone"
        );
    }
    let rates = cpu.gaps_per_second_min.zip(cpu.gaps_per_second_max);
    let shares = cpu.lost_share_min.zip(cpu.lost_share_max);
    if let Some((rates, shares)) = rates.zip(shares) {
        let [least, most] = [shares.0, shares.1].map(|share| share * 100.0);
        let _ = writeln!(
            text,
            "  by tenths of the time: {:.1} to {:.1} gaps a second, {least:.3} to {most:.3} % lost",
            rates.0, rates.1
        );
    }
    if cpu.gaps == 0 {
        let _ = writeln!(text, "  no gap");
    } else {
        let _ = writeln!(text, "  likely causes");
        for cause in Cause::ALL {
            describe_cause(text, cpu, cause);
        }
        let _ = writeln!(text, "  lengths");
        histogram(text, cpu);
        let _ = writeln!(text, "  the longest");
        for gap in &cpu.longest {
            let (at, length) = (gap.at_seconds, length(gap.ns));
            let _ = writeln!(text, "    {length:>10} at {at:.3} s, {}", name(gap.cause));
        }
    }
    let _ = writeln!(
        text,
        "  in all: {} context switches, {} page faults ({} with a device)",
        cpu.switches,
        cpu.minor_faults.saturating_add(cpu.major_faults),
        cpu.major_faults
    );
}

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::ContextSwitch => "context switch",
        Cause::PageFault => "page fault",
        Cause::Other => "other",
    }
}

fn describe_cause(text: &mut String, cpu: &OfCpu, cause: Cause) {
    let tally = cpu.tally(cause);
    if tally.count == 0 {
        return;
    }
    let share = if cpu.lost_ns > 0.0 { tally.lost_ns / cpu.lost_ns * 100.0 } else { 0.0 };
    let _ = writeln!(
        text,
        "    {}: {} of {} gaps, {share:.1} % of the time lost, {} at most",
        name(cause),
        tally.count,
        cpu.gaps,
        length(tally.max_ns)
    );
    let mut line = |head: &str, tail: String| {
        if !tail.is_empty() {
            let _ = writeln!(text, "      {head}: {tail}");
        }
    };
    let rows = advice::rows(cpu, cause).join(", ");
    match cause {
        Cause::ContextSwitch => line("tasks that ran here", tasks(cpu, tally.lost_ns)),
        Cause::PageFault => {}
        Cause::Other => {
            line("interrupts meanwhile", names(cpu.seen.interrupts.as_deref()));
            line("not explained by them", unexplained(&cpu.seen, tally.count));
            line("softirqs meanwhile", names(cpu.seen.softirqs.as_deref()));
            let steal = cpu.seen.steal_ms.filter(|&steal| steal > 0);
            line(
                "the hypervisor took",
                steal.map_or_else(String::new, |steal| format!("{steal} ms, to 10 ms")),
            );
        }
    }
    line("rows of `ring-tune check` about it", rows);
}

/// An interrupt makes one gap at most, so where there were fewer of them, somebody below the kernel made the others.
/// Empty where there were not, or where the kernel does not tell.
pub(super) fn unexplained(seen: &Seen, gaps: u64) -> String {
    let Some(interrupts) = &seen.interrupts else { return String::new() };
    let interrupts = interrupts.iter().fold(0_u64, |sum, source| sum.saturating_add(source.count));
    match gaps.saturating_sub(interrupts) {
        0 => String::new(),
        rest => format!("{rest} gaps at least, left to the hypervisor or the firmware"),
    }
}

fn tasks(cpu: &OfCpu, lost_ns: f64) -> String {
    let mut tasks: Vec<_> = cpu
        .seen
        .tasks
        .iter()
        .take(NAMES)
        .map(|task| {
            format!("{} ({}) {} times, {:.1} ms", plain(&task.name), task.task, task.turns, task.ran_ms)
        })
        .collect();
    let ran_ms: f64 = cpu.seen.tasks.iter().map(|task| task.ran_ms).sum();
    if ran_ms * 1e6 < lost_ns / 2.0 {
        tasks.push("most of the time others, which have ended or moved on".into());
    }
    tasks.join("; ")
}

fn names(counted: Option<&[Counted]>) -> String {
    let Some(counted) = counted else { return "the kernel does not tell".into() };
    let named = counted.iter().take(NAMES).map(|counted| {
        let name = format!("{} {}", counted.name, counted.what);
        format!("{} {}", plain(name.trim()), counted.count)
    });
    if counted.is_empty() { "none".into() } else { named.collect::<Vec<_>>().join("; ") }
}

fn histogram(text: &mut String, cpu: &OfCpu) {
    let most = cpu.histogram.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    for bucket in &cpu.histogram {
        let range = format!("{} to {}", length(bucket.from_ns), length(bucket.below_ns));
        let bar = bar(bucket.count, most);
        let _ = write!(text, "    {range:>24} {:>9} {bar}", bucket.count);
        let causes = [
            (Cause::ContextSwitch, bucket.context_switch),
            (Cause::PageFault, bucket.page_fault),
            (Cause::Other, bucket.other),
        ];
        let causes: Vec<_> = causes
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(cause, count)| format!("{} {count}", name(cause)))
            .collect();
        let _ = writeln!(text, " {}", causes.join(", "));
    }
}

/// At least one letter: what is there is seen.
#[allow(clippy::cast_possible_truncation, reason = "from 1 to BAR")]
fn bar(count: u64, most: u64) -> String {
    let letters = (count as f64 / most as f64 * BAR).clamp(1.0, BAR);
    "#".repeat(letters as usize)
}

fn pressure(report: &Report) -> String {
    let pressure = report.pressure_us;
    let one = |name: &str, us: Option<u64>| match us {
        Some(us) => format!("{name} {}", length(us as f64 * 1e3)),
        None => format!("{name} unknown"),
    };
    [one("CPU", pressure.cpu), one("memory", pressure.memory), one("I/O", pressure.io)].join(", ")
}

/// A time in the unit that reads best.
pub(super) fn length(ns: f64) -> String {
    match ns {
        ..1e3 => format!("{ns:.0} ns"),
        ..1e6 => format!("{:.2} µs", ns / 1e3),
        ..1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
