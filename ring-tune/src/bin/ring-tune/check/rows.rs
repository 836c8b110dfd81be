//! The rows, a file for each group of them.

mod clock;
mod disturbance;
mod frequency;
mod interrupts;
mod isolation;
mod kernel;
mod memory;
mod network;
mod per_cpu;
mod placement;

use super::row::Row;

/// Those that compare two samples last: the time between the samples has passed meanwhile.
pub(super) const ALL: &[&[Row]] = &[
    isolation::ROWS,
    frequency::ROWS,
    placement::ROWS,
    memory::ROWS,
    kernel::ROWS,
    clock::ROWS,
    network::ROWS,
    interrupts::ROWS,
    disturbance::ROWS,
];
