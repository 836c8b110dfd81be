//! What safety costs: to be known, and nobody's failure.

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const MITIGATIONS: Row = Row {
    id: "mitigations",
    group: Group::Kernel,
    what: "guards against leaks of the processor",
    source: "/sys/devices/system/cpu/vulnerabilities/*",
    profiles: Profile::ALL,
    why: "system calls, interrupts and switches take longer; code that stays in user space does not",
    price: "without them any program on the machine may read another's memory",
    now: "",
    boot: "mitigations=off, on machines that run no foreign code",
    judge: mitigations,
};

/// The kernel's ABI/testing/sysfs-devices-system-cpu: `Not affected`, `Vulnerable...` or `Mitigation: ...`; some say it
/// for a part, as in `KVM: Mitigation: VMX disabled`.
fn mitigations(host: &Host) -> Result<Judged, Unread> {
    const ALL: &str = "sys/devices/system/cpu/vulnerabilities";
    let [mut active, mut open, mut unclear] = [const { Vec::<String>::new() }; 3];
    for name in host.tree.names(ALL)? {
        let text = host.tree.text(&format!("{ALL}/{name}"))?;
        let text = text.strip_prefix("KVM: ").unwrap_or(&text);
        if text.starts_with("Mitigation") {
            active.push(name);
        } else if text.starts_with("Vulnerable") || text.starts_with("Processor vulnerable") {
            open.push(name);
        } else if !text.starts_with("Not affected") {
            unclear.push(name);
        }
    }
    let parts = [("active", active), ("vulnerable", open), ("unknown", unclear)];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect();
    Ok(Judged::info(if parts.is_empty() { "none needed".into() } else { parts.join("; ") }))
}

pub(super) const AUDIT: Row = Row {
    id: "audit",
    group: Group::Kernel,
    what: "auditing of system calls",
    source: "/proc/self/loginuid, /proc/cmdline",
    profiles: Profile::ALL,
    why: "once auditd or a rule has turned it on, each system call of a process that began since is looked \
          at on its way in and out, and takes longer, most of all where it is recorded",
    price: "without it there is no trail of who did what",
    now: "auditctl -e 0, after which system calls still take the longer way in; auditctl -a never,task spares them \
          that in processes that begin later",
    boot: "audit=0",
    judge: audit,
};

/// The kernel has `/proc/PID/loginuid` where it can audit. Whether it does is told only to who may change it; what
/// `audit=0` switches off stays off (admin-guide/kernel-parameters.txt).
fn audit(host: &Host) -> Result<Judged, Unread> {
    host.tree.text("proc/self/loginuid")?;
    let parameter = host.parameter("audit")?;
    Ok(match parameter.as_deref() {
        Some("0" | "off") => Judged::info("off (audit=0)"),
        _ => {
            Judged::info("possible").note("costs nothing until auditd or a rule turns it on: see auditctl -s")
        }
    })
}
