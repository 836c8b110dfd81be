//! What each part of a message costs, one change at a time.

use crate::bench::plan::{Plan, Scale};
use crate::bench::rounds::Outcome;

pub(super) fn plan(scale: Scale, pair: bool) -> Plan {
    Plan::new("breakdown", scale, pair)
}

pub(super) fn reading(_: &Plan, _: &Outcome) -> String {
    String::new()
}
