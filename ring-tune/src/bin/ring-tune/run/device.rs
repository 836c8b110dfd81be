//! The NUMA node of a device.

use anyhow::{bail, ensure};
use ring_tune::Tree;

/// The node of an RDMA device, a network interface or a PCI function, by its name; none where the kernel does not tell,
/// as in many virtual machines.
pub(super) fn node_of_device(tree: &Tree, name: &str) -> anyhow::Result<Option<usize>> {
    let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '*', '\0']);
    ensure!(is_name, "--near {name:?} is no name of a device: write one as in mlx5_0, eth0 or 0000:81:00.0");
    let folders = [
        (format!("sys/class/infiniband/{name}"), "/device"),
        (format!("sys/class/net/{name}"), "/device"),
        (format!("sys/bus/pci/devices/{name}"), ""),
    ];
    for (folder, device) in folders {
        if tree.exists(&folder) {
            // The kernel writes -1 where the firmware says nothing.
            let number = tree.number(&format!("{folder}{device}/numa_node"));
            return Ok(number.ok().and_then(|number| usize::try_from(number).ok()));
        }
    }
    bail!("--near {name:?}: there is no such device; `ls /sys/class/infiniband /sys/class/net` lists them")
}
