//! What the CPUs are for.

use serde::Serialize;

/// What the CPUs are for; it decides what a row wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// Threads that poll without a break
    #[default]
    Spin,
    /// Threads that poll for a while, and then sleep
    Hybrid,
    /// Threads that poll completions of an RDMA device
    Rdma,
    /// Measurements that are to be the same tomorrow
    Bench,
}

impl Profile {
    pub(crate) const ALL: &'static [Self] = &[Self::Spin, Self::Hybrid, Self::Rdma, Self::Bench];
    /// Whose threads never sleep.
    pub(crate) const POLLING: &'static [Self] = &[Self::Spin, Self::Rdma, Self::Bench];
}
