//! `ring-tune run`.

/// What to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> crate::Result {
    anyhow::bail!("not there yet")
}
