//! How long the NIC gathers events before it interrupts.

use ring_tune::Unread;

use super::worst;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::check::{Host, asked, nic};
use crate::counters::field;
use crate::say::word;

pub(super) const MODERATION: Row = Row {
    id: "nic-moderation",
    group: Group::Network,
    what: "interrupt moderation",
    source: "ethtool -c",
    profiles: &[Profile::Hybrid],
    // `rx_profile`, https://github.com/torvalds/linux/blob/master/drivers/net/ethernet/intel/ice/ice_main.c
    why: "a thread that sleeps is woken that much later, and with adaptive moderation by a time that \
          changes with the load: with ice 2 to 126 µs",
    price: "more interrupts: throughput falls where one CPU takes them all",
    now: "ethtool -C NETDEV rx-usecs 0, with adaptive-rx off where that is on",
    boot: "the same in a .link file of systemd: UseAdaptiveRxCoalesce=no, RxCoalesceSec=0",
    judge: moderation,
};

/// ethtool(8), -c; threads that poll never wait for it. The adaptive moderation that `rdma dev show` tells of is left
/// out on purpose: completion queues of the kernel follow it, and those of programs do not (`rdma_dim_init` in
/// <https://github.com/torvalds/linux/blob/master/drivers/infiniband/core/cq.c>).
fn moderation(host: &Host) -> Result<Judged, Unread> {
    let nics = nic::in_use(&host.tree)?;
    let mut parts = vec![];
    for netdev in nics.iter().flat_map(|nic| &nic.netdevs) {
        let path = format!("ethtool/{netdev}/coalesce");
        let text = match asked::text(&host.tree, &path) {
            Err(Unread::Absent { .. }) => continue,
            text => text?,
        };
        let number = |name| field(&text, name).and_then(|value| value.parse::<u64>().ok());
        let (Some(adaptive), Some(wait_us)) = (number("adaptive-rx"), number("rx-usecs")) else {
            return Err(Unread::strange(&path, "has no adaptive-rx and rx-usecs"));
        };
        // A driver that knows no adaptive moderation refuses a command that names it, even to leave it off.
        let (adaptive, off) = if adaptive == 0 { ("", "") } else { (", adaptive", " adaptive-rx off") };
        let actual = format!("{netdev}: {wait_us} µs{adaptive}");
        let wanted = "0 µs, not adaptive";
        let is_off = wait_us == 0 && adaptive.is_empty();
        let command = format!("ethtool -C {}{off} rx-usecs 0", word(netdev));
        parts.push(match is_off {
            true => Judged::ok(actual, wanted),
            false => Judged::warn(actual, wanted).command(command),
        });
    }
    if parts.is_empty() {
        return Ok(Judged::skip("no NIC that is up tells it"));
    }
    Ok(worst(parts))
}
