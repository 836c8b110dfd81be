//! Whether the NIC is near.

use ring_tune::Unread;

use super::{each, worst};
use crate::check::Host;
use crate::check::finding::{Judged, Verdict};
use crate::check::nic::Nic;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const NODE: Row = Row {
    id: "nic-node",
    group: Group::Network,
    what: "NUMA node of the NIC",
    source: "/sys/class/infiniband/*/device/{numa_node,local_cpulist}",
    profiles: &[Profile::Rdma],
    why: "each doorbell and each message crosses to the other socket, and the NIC's writes miss the cache \
          of the CPU that polls for them",
    price: "the CPUs near the NIC are few, and other NICs want them too",
    now: "choose CPUs of the NIC's node, as the note says",
    boot: "move the card to a slot of the socket whose CPUs are to poll",
    judge: node,
};

fn node(host: &Host) -> Result<Judged, Unread> {
    let parts = each(host, |nic| of_nic(host, nic))?;
    // Of several cards on several nodes one can be near: it is the one that the CPUs poll.
    let near = parts.iter().find(|part| part.verdict == Verdict::Ok);
    Ok(near.cloned().unwrap_or_else(|| worst(parts)))
}

/// `numa_node` and `local_cpulist`: the kernel's ABI/testing/sysfs-bus-pci.
fn of_nic(host: &Host, nic: &Nic) -> Result<Judged, Unread> {
    let Some(function) = nic.functions.first() else {
        return Ok(Judged::skip(format!("{}: no PCI device", nic.name)));
    };
    let number = host.tree.number(&format!("{function}/numa_node"))?;
    host.must_know("/node/")?;
    if host.topology.nodes().len() <= 1 {
        return Ok(Judged::ok(format!("{}: the machine has one node", nic.name), "the node of the CPUs"));
    }
    // -1 where the firmware does not tell.
    let Ok(number) = usize::try_from(number) else {
        return Ok(Judged::info(format!("{}: the firmware does not tell", nic.name)));
    };
    let local = host.tree.cpus(&format!("{function}/local_cpulist"))?;
    let actual = format!("{}: node {number}, CPUs {local}", nic.name);
    let wanted = "the node of the CPUs";
    if host.cpus.is_subset(&local) {
        return Ok(Judged::ok(actual, wanted));
    }
    let judged = Judged::fail(actual, wanted);
    Ok(match host.topology.best_pair(&local, Some(number)) {
        Some([one, other]) => judged.note(format!("--cpus {one},{other} would be near it.")),
        None => judged,
    })
}
