//! The watchdogs of lockups.

use ring_tune::Unread;

use super::super::present;
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const WATCHDOG: Row = Row {
    id: "watchdog",
    group: Group::Kernel,
    what: "watchdogs of lockups on the CPUs",
    source: "/proc/sys/kernel/{watchdog,nmi_watchdog,soft_watchdog,watchdog_cpumask}",
    profiles: Profile::POLLING,
    // https://docs.kernel.org/admin-guide/lockup-watchdogs.html: 2 * watchdog_thresh / 5, and watchdog_thresh.
    why: "every 4 s unless changed a timer and a kernel thread stop the thread, and every 10 s a \
          non-maskable interrupt does; the hard one takes a performance counter",
    price: "a lockup on those CPUs is not reported",
    now: "write the other CPUs to /proc/sys/kernel/watchdog_cpumask, or 0 to /proc/sys/kernel/nmi_watchdog and \
          soft_watchdog",
    boot: "nowatchdog, or nohz_full=, which leaves those CPUs out",
    judge: watchdog,
};

/// The kernel's admin-guide/sysctl/kernel.rst: `watchdog` is whether one of the two runs. `nmi_watchdog` may be
/// read-only, so that it is the mask that changes.
fn watchdog(host: &Host) -> Result<Judged, Unread> {
    const RUNS: &str = "proc/sys/kernel/watchdog";
    const MASK: &str = "proc/sys/kernel/watchdog_cpumask";
    let wanted = "off, or on other CPUs";
    if host.tree.number(RUNS)? == 0 {
        return Ok(Judged::ok("off", wanted));
    }
    let mask = present(host.tree.cpus(MASK))?;
    let watched = mask.as_ref().unwrap_or(host.topology.online()).intersection(host.topology.online());
    let disturbed = watched.intersection(&host.cpus);
    if disturbed.is_empty() {
        return Ok(Judged::ok(format!("on {watched}"), wanted));
    }
    let number = |name: &str| present(host.tree.number(&format!("proc/sys/kernel/{name}")));
    let [hard, soft] = [number("nmi_watchdog")?, number("soft_watchdog")?];
    let is_on = |value: Option<i64>| value.is_some_and(|value| value != 0);
    let kind = match (is_on(hard), is_on(soft)) {
        (true, true) => "hard and soft",
        (true, false) => "hard",
        (false, true) => "soft",
        (false, false) => "some",
    };
    let judged = Judged::warn(format!("{kind} on {disturbed}"), wanted);
    let others = watched.difference(&disturbed);
    if mask.is_some() && !others.is_empty() {
        return Ok(judged.change(MASK, others.to_string()));
    }
    // Each by itself: 0 to the one for both would change two other files, whose old values nobody has kept.
    let kinds = [("nmi_watchdog", is_on(hard)), ("soft_watchdog", is_on(soft))];
    let on = kinds.into_iter().filter(|(_, is_on)| *is_on);
    Ok(on.fold(judged, |judged, (name, _)| judged.change(format!("proc/sys/kernel/{name}"), "0")))
}
