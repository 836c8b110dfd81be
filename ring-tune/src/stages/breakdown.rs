//! The figures of stages, as numbers and as a table.

use core::fmt;
use std::vec::Vec;

use crate::Summary;

/// The figures of each step and of the whole operation; displayed as a table.
///
/// Means add up to that of the whole, percentiles do not: the slowest operation need not be slow in each step.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Breakdown {
    /// The steps in their order.
    pub parts: Vec<Part>,
    /// The sum of the steps.
    pub whole: Summary,
    /// Operations that were given up, which the figures leave out.
    pub abandoned: u64,
    /// Operations that passed a step out of turn, which the figures leave out.
    pub misordered: u64,
}

/// The figures of one step.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// As it was named.
    pub name: &'static str,
    /// Its own time, what an empty step shows taken off.
    pub summary: Summary,
    /// Its part of the time of the whole, from 0 to 1.
    pub share: f64,
}

impl fmt::Display for Breakdown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parts.iter().map(|part| part.name.chars().count());
        let width = names.max().unwrap_or(0).max("whole".len());
        let [p50, p99, p999, mean, share] = ["p50", "p99", "p99.9", "mean", "share"];
        writeln!(formatter, "{:width$} {p50:>11} {p99:>11} {p999:>11} {mean:>11} {share:>7}", "ns")?;
        let whole = ("whole", &self.whole, 1.0);
        for (name, summary, share) in
            self.parts.iter().map(|part| (part.name, &part.summary, part.share)).chain([whole])
        {
            let Summary { p50_ns, p99_ns, p999_ns, mean_ns, .. } = summary;
            writeln!(
                formatter,
                "{name:width$} {p50_ns:>11.1} {p99_ns:>11.1} {p999_ns:>11.1} {mean_ns:>11.1} {:>6.1}%",
                share * 100.0
            )?;
        }
        write!(formatter, "{} operations", self.whole.count)?;
        if self.abandoned > 0 {
            write!(formatter, ", {} more were given up", self.abandoned)?;
        }
        if self.misordered > 0 {
            write!(formatter, ", {} more passed a step out of turn", self.misordered)?;
        }
        Ok(())
    }
}
