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

use ring_tune::Unread;

use super::row::Row;
pub(crate) use kernel::RealTimeLimit;

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

/// What is absent is no error.
fn present<T>(read: Result<T, Unread>) -> Result<Option<T>, Unread> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}
