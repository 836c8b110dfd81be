//! Our ring as ring-shm gives it: a segment of its own for each, made or attached to in one call, every role claimed.
//!
//! Nothing but that differs from the arm of the bare ring, so that a ratio of the two is the price of the claims:
//!
//! - The segments are made with the same options: all of them of 2 MiB pages, the bare ring's too, or, where the pool
//!   has too few for all, all of the system's own. A page more or less in the translation's caches, or pages of another
//!   size, would be taken for the claims' doing.
//! - In both arms a ring begins 128 bytes behind a multiple of 4 KiB, which is the length of a segment's header and the
//!   distance of parts: the same lines meet in the sets of a first-level cache.

use core::time::Duration;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use measure::{Arm, Duplex, Message};
use ring_core::spsc::{Consumer, Layout, Producer};
use ring_shm::{Claim, Options, Pages};

use super::LeadSide;

/// How long the peer waits for the ring, which is there.
const AT_MOST: Duration = Duration::from_secs(5);

/// Makes both rings, and the lead's ends of them.
pub(super) fn create(pages: Pages, depth: u64) -> Result<LeadSide> {
    let layout = Layout::new(depth)?;
    let options = Options::new().pages(pages);
    let to: Producer<Message, Claim> = options.create_anonymous_ring(&layout)?;
    let from: Consumer<Message, Claim> = options.create_anonymous_ring(&layout)?;
    // No program but the peer is to inherit them.
    let for_peer =
        vec![from.region().as_fd().try_clone_to_owned()?, to.region().as_fd().try_clone_to_owned()?];
    Ok(LeadSide { arm: Box::new(Duplex::new(to, from)), for_peer })
}

/// Makes the peer's ends: of the ring that it writes to, then of the one that it reads from.
pub(super) fn attach(descriptors: Vec<OwnedFd>) -> Result<Box<dyn Arm>> {
    let [to, from] = <[OwnedFd; 2]>::try_from(descriptors).ok().context("this arm has two descriptors")?;
    let options = Options::new();
    let to: Producer<Message, Claim> = options.attach_ring_fd(to, AT_MOST)?;
    let from: Consumer<Message, Claim> = options.attach_ring_fd(from, AT_MOST)?;
    Ok(Box::new(Duplex::new(to, from)))
}
