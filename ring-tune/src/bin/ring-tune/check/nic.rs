//! Network devices with hardware behind them.

#[cfg(test)]
mod tests;

use ring_tune::{Tree, Unread};

use super::pci;

/// Where the kernel lists devices.
pub(crate) const RDMA: &str = "sys/class/infiniband";
const NETDEVS: &str = "sys/class/net";

/// A network card, or one port of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nic {
    /// Of the RDMA device if it is one, else of the network device.
    pub(crate) name: String,
    /// Its network devices: none for InfiniBand without IP.
    pub(crate) netdevs: Vec<String>,
    /// Its PCI function, and those between it and the root.
    pub(crate) functions: Vec<String>,
    is_up: bool,
}

/// The NICs that are in use: the RDMA devices where there are some, since the others only manage the machine then;
/// else all that are up. A device without hardware behind it is none.
pub(crate) fn in_use(tree: &Tree) -> Result<Vec<Nic>, Unread> {
    let mut nics = rdma(tree)?;
    if nics.is_empty() {
        nics = others(tree)?;
        nics.retain(|nic| nic.is_up);
    } else if nics.iter().any(|nic| nic.is_up) {
        nics.retain(|nic| nic.is_up);
    }
    Ok(nics)
}

fn rdma(tree: &Tree) -> Result<Vec<Nic>, Unread> {
    let mut nics = vec![];
    for name in names(tree, RDMA)? {
        let device = format!("{RDMA}/{name}/device");
        if !tree.exists(&device) {
            continue;
        }
        let states = tree.find(&format!("{RDMA}/{name}/ports/*/state"))?;
        // "4: ACTIVE"; the kernel's ABI/stable/sysfs-class-infiniband.
        let is_up = states.iter().any(|path| tree.text(path).is_ok_and(|state| state.starts_with("4:")));
        let netdevs = names(tree, &format!("{device}/net"))?;
        nics.push(Nic { netdevs, functions: pci::functions(tree, &device)?, is_up, name });
    }
    Ok(nics)
}

fn others(tree: &Tree) -> Result<Vec<Nic>, Unread> {
    let mut nics = vec![];
    for name in names(tree, NETDEVS)? {
        let device = format!("{NETDEVS}/{name}/device");
        if !tree.exists(&device) {
            continue;
        }
        // Drivers that do not tell say "unknown"; ABI/testing/sysfs-class-net.
        let is_up = tree
            .text(&format!("{NETDEVS}/{name}/operstate"))
            .is_ok_and(|state| state == "up" || state == "unknown");
        nics.push(Nic {
            netdevs: vec![name.clone()],
            functions: pci::functions(tree, &device)?,
            is_up,
            name,
        });
    }
    Ok(nics)
}

fn names(tree: &Tree, folder: &str) -> Result<Vec<String>, Unread> {
    match tree.names(folder) {
        Err(Unread::Absent { .. }) => Ok(vec![]),
        names => names,
    }
}

/// Parts of names in `statistics` and of `ethtool -S`; networking/statistics, and mlx5's counters, of the kernel.
const NIC_NAMES: &[&str] = &[
    "drop",
    "discard",
    "error",
    "_err",
    "missed",
    "pause",
    "out_of_buffer",
    "no_buffer",
    "nobuf",
    "xoff",
    "overrun",
];

/// Those that programs drop by themselves, and lengths of time beside their counts.
const NO_NAMES: &[&str] = &["xdp", "duration"];

/// Whether a NIC counts with this name that something went wrong.
pub(crate) fn is_trouble(name: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    has(NIC_NAMES) && !has(NO_NAMES)
}
