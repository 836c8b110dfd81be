//! The benchmarks.

/// Nothing to choose yet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> anyhow::Result<()> {
    anyhow::bail!("not here yet")
}
