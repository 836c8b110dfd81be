//! Ticks as people read them: a line for each counter that has changed, in columns.

#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use core::fmt::Write as _;

use super::counts::{Count, Group, Whose};
use crate::say::plain;

/// The columns so far. They only become wider, so that lines stay below each other.
#[derive(Debug)]
pub(super) struct Table {
    whose: usize,
    what: usize,
    /// Lines until the header comes again.
    until_header: usize,
}

/// As many as a screen holds.
const LINES_A_HEADER: usize = 40;

/// The most frequent ones of a kind are shown, such as interrupts; the others are summed.
const FEW: usize = 5;
const MANY: [&str; 2] = ["interrupt", "softirq"];

const HEADERS: [&str; 2] = ["whose", "what"];

impl Table {
    pub(super) fn new() -> Self {
        let [whose, what] = HEADERS.map(str::len);
        Self { whose, what, until_header: 0 }
    }

    /// The lines of a tick `at` seconds from the start, over which so many `seconds` went by.
    pub(super) fn tick(&mut self, at: f64, seconds: f64, groups: &[Group]) -> String {
        let lines: Vec<(String, String, u64)> = groups.iter().flat_map(lines).collect();
        let (whose, what) = (self.whose, self.what);
        for (line_whose, line_what, _) in &lines {
            self.whose = self.whose.max(line_whose.chars().count());
            self.what = self.what.max(line_what.chars().count());
        }
        let mut text = String::new();
        if self.until_header == 0 || (whose, what) != (self.whose, self.what) {
            self.until_header = LINES_A_HEADER;
            let [whose, what] = HEADERS;
            self.line(&mut text, "at s", [whose, what], ["count", "a second"]);
        }
        let at = format!("{at:.2}");
        for (whose, what, count) in &lines {
            let rate = format!("{:.1}", *count as f64 / seconds.max(f64::MIN_POSITIVE));
            self.line(&mut text, &at, [whose, what], [&count.to_string(), &rate]);
        }
        if lines.is_empty() {
            let _ = writeln!(text, "{at:>9}  nothing changed");
        }
        self.until_header = self.until_header.saturating_sub(lines.len().max(1));
        text
    }

    fn line(&self, text: &mut String, at: &str, [whose, what]: [&str; 2], [count, rate]: [&str; 2]) {
        let (width, wide) = (self.whose, self.what);
        let _ = writeln!(text, "{at:>9}  {whose:width$}  {what:wide$}  {count:>12}  {rate:>14}");
    }
}

/// Whose, what, and how much.
fn lines(group: &Group) -> Vec<(String, String, u64)> {
    let whose = plain(&whose(group));
    let line = |count: &Count| (whose.clone(), plain(&count.full_name()), count.count);
    let (many, one): (Vec<&Count>, _) = group.counts.iter().partition(|count| MANY.contains(&count.kind));
    let mut lines: Vec<_> = one.into_iter().map(line).collect();
    for kind in MANY {
        let mut of_kind: Vec<&Count> = many.iter().copied().filter(|count| count.kind == kind).collect();
        of_kind.sort_by_key(|count| Reverse(count.count));
        // A sum of one would say less than that one.
        let shown = if of_kind.len() == FEW + 1 { FEW + 1 } else { FEW };
        lines.extend(of_kind.iter().take(shown).copied().map(line));
        let rest = of_kind.get(shown..).unwrap_or_default();
        if !rest.is_empty() {
            let sum = rest.iter().fold(0_u64, |sum, count| sum.saturating_add(count.count));
            lines.push((whose.clone(), format!("{kind} of {} others", rest.len()), sum));
        }
    }
    lines
}

fn whose(group: &Group) -> String {
    match &group.whose {
        Whose::Process(id) => format!("process {id} {}", group.name),
        Whose::Thread { id, .. } => format!("thread {id} {}", group.name),
        Whose::Cpu(cpu) => format!("CPU {cpu}"),
        Whose::Machine => "machine".into(),
        Whose::Device(name) => name.clone(),
    }
}
