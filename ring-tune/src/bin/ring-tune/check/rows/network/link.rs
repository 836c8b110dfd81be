//! The link between the NIC and the machine.

use ring_tune::Unread;

use super::{each, worst};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::nic::{Nic, RDMA};
use crate::check::pci::{self, Link};
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::say::word;

pub(super) const SPEED: Row = Row {
    id: "pcie-link",
    group: Group::Network,
    what: "speed and width of the PCIe link",
    source: "/sys/class/infiniband/*/device/{current,max}_link_{speed,width}",
    profiles: Profile::ALL,
    // 8 lanes of 8 GT/s, of whose 130 bits 128 carry data.
    why: "half the lanes, or half the speed, is half the bandwidth, and each packet takes longer: 8.0 GT/s x8 \
          carries 63 Gbit/s, less than one port of 100",
    price: "none",
    now: "look again under load: a link may slow down while it idles, and says so here",
    boot: "seat the card again, choose a slot with all lanes, let the firmware train to the full speed",
    judge: speed,
};

pub(super) const PAYLOAD: Row = Row {
    id: "pcie-payload",
    group: Group::Network,
    what: "packet and read request size on PCIe",
    source: "/sys/class/infiniband/*/device/config",
    profiles: &[Profile::Rdma],
    // 24 bytes of header, sequence number, checksum and framing on 128: PCI Express Base Specification, 2.2, 3.6.
    why: "with 128 bytes a packet a sixth of the link carries headers; with small read requests the NIC waits for \
          memory more often as it sends",
    price: "large reads of one card keep others waiting",
    now: "MRRS: setpci -s ADDRESS CAP_EXP+8.w=5000:7000 sets 4096 bytes",
    boot: "MPS: the firmware's setup, or pci=pcie_bus_safe, which takes what all devices below the root complex can",
    judge: payload,
};

pub(super) const ASPM: Row = Row {
    id: "aspm",
    group: Group::Network,
    what: "power saving of the PCIe link",
    source: "/sys/class/infiniband/*/device/link/*_aspm, /sys/module/pcie_aspm/parameters/policy",
    profiles: Profile::ALL,
    // L1 Exit Latency of the Link Capabilities: PCI Express Base Specification, 7.5.3.6.
    why: "the first message after a pause waits until the link wakes up, for as long as lspci -vv shows as \
          its exit latency: from L1 up to 64 µs and more",
    price: "some watts",
    now: "echo performance > /sys/module/pcie_aspm/parameters/policy",
    boot: "",
    judge: aspm,
};

/// Where the kernel keeps its policy, also a parameter at boot:
/// <https://github.com/torvalds/linux/blob/master/drivers/pci/pcie/aspm.c>.
const POLICY: &str = "sys/module/pcie_aspm/parameters/policy";

/// A link that carries so much in the window does not idle.
const BUSY_BYTES: u64 = 1_000_000;

fn speed(host: &Host) -> Result<Judged, Unread> {
    let parts = each(host, |nic| {
        let Some((now, most)) = links(host, nic)? else { return Ok(no_link(nic)) };
        let wanted = most.to_string();
        let actual = format!("{}: {now}", nic.name);
        // The slot may be less than the card.
        let slot = match nic.functions.get(1).map(|port| pci::link(&host.tree, port, "max")) {
            Some(Ok(Some(slot))) => slot,
            _ => most,
        };
        let reachable = Link { speed: most.speed.min(slot.speed), width: most.width.min(slot.width) };
        if now.width < reachable.width {
            return Ok(
                Judged::fail(actual, wanted).note("Links keep their lanes while they idle: some are lost.")
            );
        }
        if now.speed < reachable.speed {
            return Ok(match is_busy(host, nic) {
                true => Judged::fail(actual, wanted)
                    .note("The NIC carries traffic: this is not a link that idles."),
                false => Judged::warn(actual, wanted).note("The link may idle: sample it under load."),
            });
        }
        Ok(match now.speed < most.speed || now.width < most.width {
            true => Judged::warn(actual, wanted).note("The slot, not the card, is the limit."),
            false => Judged::ok(actual, wanted),
        })
    })?;
    Ok(worst(parts))
}

/// What the link of a NIC runs at, and what the NIC can do.
fn links(host: &Host, nic: &Nic) -> Result<Option<(Link, Link)>, Unread> {
    let Some(function) = nic.functions.first() else { return Ok(None) };
    let link = |which| match pci::link(&host.tree, function, which) {
        Err(Unread::Absent { .. }) => Ok(None),
        link => link,
    };
    Ok(link("current")?.zip(link("max")?))
}

fn no_link(nic: &Nic) -> Judged {
    Judged::skip(format!("{}: not on a PCIe link of this machine", nic.name))
}

fn is_busy(host: &Host, nic: &Nic) -> bool {
    let mut paths = vec![];
    for netdev in &nic.netdevs {
        paths.extend(
            ["rx_bytes", "tx_bytes"].map(|name| (format!("sys/class/net/{netdev}/statistics/{name}"), 1)),
        );
    }
    for name in ["port_rcv_data", "port_xmit_data"] {
        // In words of four bytes; ABI/stable/sysfs-class-infiniband.
        let found =
            host.tree.find(&format!("{RDMA}/{}/ports/*/counters/{name}", nic.name)).unwrap_or_default();
        paths.extend(found.into_iter().map(|path| (path, 4)));
    }
    paths.iter().any(|(path, bytes)| {
        let Ok(Some((before, after))) = host.samples(path) else { return false };
        let [before, after] = [before, &after].map(|text| text.parse::<u64>());
        before
            .ok()
            .zip(after.ok())
            .is_some_and(|(before, after)| after.saturating_sub(before).saturating_mul(*bytes) > BUSY_BYTES)
    })
}

fn payload(host: &Host) -> Result<Judged, Unread> {
    let parts = each(host, |nic| {
        // Functions that a NIC lends to a virtual machine have no sizes of their own.
        let (Some(function), Some(_)) = (nic.functions.first(), links(host, nic)?) else {
            return Ok(no_link(nic));
        };
        let Some(express) = pci::express(&host.tree, function)? else { return Ok(no_link(nic)) };
        // A packet has to pass all ports on the way.
        let mut payload = express.payload_at_most;
        for port in nic.functions.iter().skip(1) {
            if let Ok(Some(port)) = pci::express(&host.tree, port) {
                payload = payload.min(port.payload_at_most);
            }
        }
        let actual = format!("{}: MPS {}, MRRS {}", nic.name, express.payload, express.read_request);
        let wanted = format!("MPS {payload}, MRRS 4096");
        if express.payload >= payload && express.read_request >= 4096 {
            return Ok(Judged::ok(actual, wanted));
        }
        let mut judged = Judged::warn(actual, wanted);
        if express.read_request < 4096 {
            let address = function.rsplit('/').next().unwrap_or_default();
            judged = judged.command(format!("setpci -s {} CAP_EXP+8.w=5000:7000", word(address)));
        }
        Ok(if express.payload < payload { judged.boot("pci=pcie_bus_safe") } else { judged })
    })?;
    Ok(worst(parts))
}

fn aspm(host: &Host) -> Result<Judged, Unread> {
    let parts = each(host, |nic| {
        let (Some(function), Some(_)) = (nic.functions.first(), links(host, nic)?) else {
            return Ok(no_link(nic));
        };
        let wanted = "off";
        let policy = host.tree.text(POLICY);
        let on = |what: &str| {
            let judged = Judged::warn(format!("{}: {what}", nic.name), wanted);
            let judged = if policy.is_ok() { judged.change(POLICY, "performance") } else { judged };
            judged.boot("pcie_aspm.policy=performance")
        };
        Ok(match states(host, function)? {
            Some(states) if states.is_empty() => Judged::ok(format!("{}: off", nic.name), wanted),
            Some(states) => on(&states.join(", ")),
            None => match chosen(policy.as_deref().map_err(Clone::clone)?) {
                "performance" => Judged::ok("policy performance", wanted),
                "default" => Judged::info("policy default: as the firmware left it; root sees more"),
                other => on(&format!("policy {other}")),
            },
        })
    })?;
    Ok(worst(parts))
}

/// The states that the link may go to; none where nothing tells this user.
fn states(host: &Host, function: &str) -> Result<Option<Vec<String>>, Unread> {
    // ABI/testing/sysfs-bus-pci: those that the link can, 1 for those that are allowed.
    let files = host.tree.find(&format!("{function}/link/l*_aspm"))?;
    if files.is_empty() {
        return Ok(match pci::express(&host.tree, function) {
            Ok(express) => express.map(|express| {
                let names = [(1, "L0s"), (2, "L1")];
                names
                    .into_iter()
                    .filter(|(bit, _)| express.aspm & bit != 0)
                    .map(|(_, name)| name.into())
                    .collect()
            }),
            Err(Unread::Absent { .. } | Unread::Denied { .. }) => None,
            Err(error) => return Err(error),
        });
    }
    let mut states = vec![];
    for path in files {
        if host.tree.text(&path)? == "1" {
            let name = path.rsplit('/').next().unwrap_or_default();
            states.push(name.trim_end_matches("_aspm").replace('l', "L").replace('_', "."));
        }
    }
    Ok(Some(states))
}

/// The word in brackets.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}
