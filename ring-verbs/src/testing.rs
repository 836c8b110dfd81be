//! What the models share: how they are run is that of the rings.

#[cfg(loom)]
pub(crate) use ring_core::sync::testing::thread;
pub(crate) use ring_core::sync::testing::{model, scaled, wide_model};
#[cfg(not(loom))]
pub(crate) use std::thread;
