//! What stands in no file of a live machine, but is asked or measured; a saved tree holds the answers as texts.

use std::os::unix::fs::FileExt;

use ring_tune::{Tree, Unread};

use super::{ethtool, nic, spin};

/// Those that count, as a saved tree has them.
pub(crate) const COUNTERS: &[&str] = &["ethtool/*/statistics", "smi/*"];

/// MSR_SMI_COUNT of Intel's processors, one for each thread; Software Developer's Manual, volume 4, table 2-15.
const SMI_COUNT: u64 = 0x34;

/// The answer to one of the paths: `ethtool/NETDEV/coalesce`, `ethtool/NETDEV/statistics`, `smi/CPU` or `spin/CPU`.
pub(crate) fn text(tree: &Tree, path: &str) -> Result<String, Unread> {
    if !tree.is_live() {
        return tree.text(path);
    }
    match path.split('/').collect::<Vec<_>>()[..] {
        ["ethtool", netdev, "coalesce"] => ethtool::coalesce(netdev),
        ["ethtool", netdev, "statistics"] => ethtool::statistics(netdev),
        ["smi", cpu] => smi_count(tree, cpu),
        ["spin", cpu] => spin::gaps(cpu),
        _ => Err(Unread::Absent { path: path.into() }),
    }
}

/// Whether a path is such a one, and no file.
pub(crate) fn is_asked(path: &str) -> bool {
    ["ethtool/", "smi/", "spin/"].iter().any(|start| path.starts_with(start))
}

/// Those of a live machine that count: not all of its devices, since each takes its time.
pub(crate) fn counters(tree: &Tree) -> Vec<String> {
    let nics = nic::in_use(tree).unwrap_or_default();
    let netdevs = nics.iter().flat_map(|nic| &nic.netdevs);
    let mut paths: Vec<String> = netdevs.map(|netdev| format!("ethtool/{netdev}/statistics")).collect();
    paths.extend(smi(tree));
    paths
}

/// A system management interrupt stops all threads, so that one CPU tells for all; none without the module msr.
pub(crate) fn smi(tree: &Tree) -> Option<String> {
    if !tree.is_live() {
        return tree.find("smi/*").ok()?.into_iter().next();
    }
    let path = tree.find("dev/cpu/*/msr").ok()?.into_iter().next()?;
    path.split('/').nth(2).map(|cpu| format!("smi/{cpu}"))
}

fn smi_count(tree: &Tree, cpu: &str) -> Result<String, Unread> {
    let path = format!("dev/cpu/{cpu}/msr");
    let failed = |error: std::io::Error| match error.raw_os_error() {
        // The kernel's answer where a processor has no such register.
        Some(libc::EIO | libc::ENOENT | libc::ENXIO) => Unread::Absent { path: path.clone() },
        Some(libc::EACCES | libc::EPERM) => Unread::Denied { path: path.clone() },
        _ => Unread::strange(&path, "cannot be read"),
    };
    let file = std::fs::File::open(tree.path(&path)).map_err(failed)?;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, SMI_COUNT).map_err(failed)?;
    // The upper half is reserved.
    let [first, second, third, fourth, ..] = bytes;
    Ok(u32::from_le_bytes([first, second, third, fourth]).to_string())
}
