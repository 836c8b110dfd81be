//! Tables for people.

#[cfg(test)]
mod tests;

use super::row::Row;

/// Lines of cells: the first column to the left, the others to the right.
#[derive(Debug)]
pub(crate) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { lines: vec![head.iter().map(|&cell| cell.into()).collect()] }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: Vec<String>) {
        self.lines.push(line);
    }
}

impl core::fmt::Display for Table {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for line in &self.lines {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(formatter, "  {cell:<width$}")?,
                    _ => write!(formatter, "  {cell:>width$}")?,
                }
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

/// The table of a suite. p99.99 has a column only where somebody has one. What was used for a message stands in the
/// place of the floor, which means little to who sleeps.
pub(crate) fn of_rows(rows: &[Row]) -> Table {
    let has_p9999 = rows.iter().any(|row| row.p9999.is_some());
    let has_usage = rows.iter().any(|row| row.cpu_ns_per_message.is_some());
    let mut head = vec!["ns", "p50", "p90", "p99", "p99.9"];
    if has_p9999 {
        head.push("p99.99");
    }
    head.extend(["max", "mean"]);
    match has_usage {
        true => head.extend(["CPU", "calls", "switches"]),
        false => head.push("over floor"),
    }
    let mut table = Table::new(&head);
    for row in rows {
        let mut line = vec![row.case.clone(), time(row.p50), time(row.p90), time(row.p99), time(row.p999)];
        if has_p9999 {
            line.push(time(row.p9999));
        }
        line.extend([time(row.max), time(row.mean)]);
        if has_usage {
            let count = |count: Option<f64>| count.map_or("–".into(), |count| format!("{count:.2}"));
            line.push(time(row.cpu_ns_per_message));
            line.extend([row.syscalls_per_message, row.switches_per_message].map(count));
        } else {
            line.push(ratio(row));
        }
        table.push(line);
    }
    table
}

/// Nanoseconds, with as many digits as mean something.
pub(crate) fn time(ns: Option<f64>) -> String {
    match ns {
        None => "–".into(),
        Some(ns) if ns < 100.0 => format!("{ns:.1}"),
        Some(ns) => grouped(&format!("{ns:.0}")),
    }
}

fn ratio(row: &Row) -> String {
    match (row.ratio_to_floor, row.ratio_min, row.ratio_max) {
        (Some(ratio), Some(min), Some(max)) => format!("{ratio:.2} [{min:.2}–{max:.2}]"),
        _ => "–".into(),
    }
}

/// Commas between groups of three digits.
fn grouped(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
