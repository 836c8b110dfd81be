//! Placement.

use crate::check::row::Row;

pub(super) const ROWS: &[Row] = &[];
