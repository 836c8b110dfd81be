//! What is left out of files that tell more than the rows ask for.

/// What stands for a parameter that is left out.
pub(crate) const REDACTED: &str = "redacted";

/// Parameters of the kernel's command line whose values concern latency, and nobody's secrets.
const PARAMETERS: &[&str] = &[
    "amd_pstate",
    "audit",
    "clocksource",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "numa_balancing",
    "pcie_aspm",
    "pci",
    "preempt",
    "processor.max_cstate",
    "psi",
    "quiet",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "transparent_hugepage_shmem",
    "tsc",
];

/// The standard part of a device's configuration; behind it may be a serial number, which is a network address.
const CONFIGURATION_BYTES: usize = 256;

/// What is saved of a file.
pub(super) fn removed(path: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lines = |keep: fn(&str) -> bool| kept(&bytes, '\n', keep);
    match (path, name) {
        ("proc/cmdline", _) => command_line(&String::from_utf8_lossy(&bytes)).into_bytes(),
        ("proc/cpuinfo", _) => lines(|line| !line.starts_with("Serial")),
        ("proc/self/mountinfo", _) => lines(|line| line.contains(" - cgroup") || line.contains(" /dev/shm ")),
        ("proc/self/status", _) => {
            lines(|line| ["Vm", "Cap", "Cpus_allowed_list:"].iter().any(|start| line.starts_with(start)))
        }
        ("proc/swaps", _) => swaps(&String::from_utf8_lossy(&bytes)).into_bytes(),
        (_, "irqbalance") => lines(|line| line.contains("IRQBALANCE_BANNED_")),
        (_, "environ") => kept(&bytes, '\0', |variable| variable.starts_with("IRQBALANCE_BANNED_")),
        (_, "config") => {
            bytes.truncate(CONFIGURATION_BYTES);
            bytes
        }
        _ => bytes,
    }
}

fn kept(bytes: &[u8], end: char, keep: fn(&str) -> bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split_inclusive(end).filter(|part| keep(part));
    parts.collect::<String>().into_bytes()
}

/// An unknown parameter is a word in the same place; what is for the first process is none of the kernel's.
fn command_line(line: &str) -> String {
    let mut is_quoted = false;
    let words = line.split(|letter: char| {
        is_quoted ^= letter == '"';
        !is_quoted && letter.is_ascii_whitespace()
    });
    let words = words.filter(|word| !word.is_empty()).take_while(|word| *word != "--").map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let is_known = PARAMETERS.contains(&name) && !value.contains('"');
        if is_known { word } else { REDACTED }
    });
    words.collect::<Vec<_>>().join(" ") + "\n"
}

/// Names of files are replaced.
fn swaps(text: &str) -> String {
    let mut lines = text.lines();
    let mut swaps: String = lines.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for line in lines {
        let rest = line.split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
        swaps.push_str(&format!("/redacted {rest}\n"));
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> String {
        String::from_utf8(removed(path, text.into())).unwrap()
    }

    #[test]
    fn secrets_are_left_out() {
        let line =
            "BOOT_IMAGE=/v root=UUID=1-2 ro isolcpus=2,3 a=\"isolcpus=1 password\" nohz_full=2 -- --key k";
        assert_eq!(
            of("proc/cmdline", line),
            "redacted redacted redacted isolcpus=2,3 redacted nohz_full=2\n"
        );
        let environment = "HOME=/root\0IRQBALANCE_BANNED_CPULIST=2\0KEY=1\0";
        assert_eq!(of("proc/7/environ", environment), "IRQBALANCE_BANNED_CPULIST=2\0");
        assert_eq!(
            of("etc/default/irqbalance", "KEY=1\nIRQBALANCE_BANNED_CPUS=f\n"),
            "IRQBALANCE_BANNED_CPUS=f\n"
        );
        assert_eq!(of("proc/cpuinfo", "flags : a\nSerial : 12\n"), "flags : a\n");
        let mounts =
            "1 0 8:1 / /home rw - ext4 /dev/disk/secret rw\n2 1 0:9 / /sys/fs/cgroup rw - cgroup2 c rw\n";
        assert_eq!(of("proc/self/mountinfo", mounts), "2 1 0:9 / /sys/fs/cgroup rw - cgroup2 c rw\n");
        assert_eq!(
            of("proc/swaps", "Filename Type\n/home/name/swap file 1 0 -2\n"),
            "Filename Type\n/redacted file 1 0 -2\n"
        );
        assert_eq!(removed("sys/class/infiniband/a/device/config", vec![7; 4096]).len(), 256);
        assert_eq!(of("proc/sys/vm/swappiness", "60\n"), "60\n");
    }
}
