//! Isolation: who else may run on the CPUs.

mod partition;

use ring_tune::{CpuSet, Unread};

use super::per_cpu::{CPU, kernel_list};
use super::present;
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "isolated",
        group: Group::Isolation,
        what: "CPUs that the scheduler keeps free",
        source: "/sys/devices/system/cpu/isolated, cpuset.cpus.isolated of the root cgroup",
        profiles: Profile::POLLING,
        // 0.70 or 0.75 ms times 1 + log2 of the CPUs, of which 8 at most count: sysctl_sched_base_slice,
        // https://github.com/torvalds/linux/blob/master/kernel/sched/fair.c
        why: "the scheduler may put any task there, which then runs for a slice of some 3 ms before the \
              thread goes on",
        price: "the CPUs serve nobody else, and threads that are to run there must be pinned",
        now: "make a cgroup with cpuset.cpus set to them, and write isolated to its cpuset.cpus.partition",
        boot: "isolcpus=managed_irq,domain,LIST on the kernel's command line",
        judge: isolated,
    },
    Row {
        id: "partition",
        group: Group::Isolation,
        what: "partitions of CPUs among cgroups",
        source: "cpuset.cpus.partition of each cgroup",
        profiles: Profile::ALL,
        why: "a partition that has become invalid isolates nothing, and nobody is told: its CPUs are \
              shared with every other task",
        price: "none",
        now: "mend what stands between the brackets, and write to cpuset.cpus.partition again what stands before invalid",
        boot: "",
        judge: partition::partition,
    },
    Row {
        id: "nohz-full",
        group: Group::Isolation,
        what: "CPUs without a tick while one task runs",
        source: "/sys/devices/system/cpu/nohz_full",
        profiles: Profile::POLLING,
        // CONFIG_HZ, https://github.com/torvalds/linux/blob/master/kernel/Kconfig.hz
        why: "the tick interrupts a polling thread 100 to 1,000 times a second, by how the kernel was built",
        price: "each system call on these CPUs takes longer, since the kernel counts time as it enters and \
                leaves",
        now: "",
        boot: "nohz_full=LIST on the kernel's command line",
        judge: nohz_full,
    },
    Row {
        id: "rcu-offload",
        group: Group::Isolation,
        what: "CPUs whose RCU callbacks run elsewhere",
        source: "/sys/devices/system/cpu/nohz_full, rcu_nocbs= in /proc/cmdline",
        profiles: Profile::POLLING,
        why: "callbacks that free kernel memory run in softirqs on these CPUs, many at a time",
        price: "waking the threads that run the callbacks takes a little longer elsewhere",
        now: "",
        boot: "rcu_nocbs=LIST on the kernel's command line; nohz_full=LIST implies it",
        judge: rcu_offload,
    },
];

/// A thread that sleeps gives way to others anyway: it is only to be known there, by the row's profiles.
fn isolated(host: &Host) -> Result<Judged, Unread> {
    let mut isolated = host.topology.isolated().clone();
    if !host.cpus.is_subset(&isolated) {
        isolated = isolated.union(&partition::isolated(host)?);
    }
    // What the topology could not read is told here; so is whether the kernel tells at all.
    let told = host.tree.cpus(&format!("{CPU}/isolated"));
    if isolated.is_empty() || told.as_ref().is_err_and(|error| !error.is_absent()) {
        told?;
    }
    let wanted = format!("{} isolated, and another CPU for everything else", host.cpus);
    let actual = if isolated.is_empty() { "none".into() } else { isolated.to_string() };
    if host.topology.online().is_subset(&isolated) {
        return Ok(Judged::fail(actual, wanted).note("no CPU is left for everything else"));
    }
    if host.cpus.is_subset(&isolated) {
        return Ok(Judged::ok(actual, wanted));
    }
    let judged = Judged::fail(actual, wanted).list_at_boot(host, "isolcpus=managed_irq,domain,", &isolated);
    if judged.boot.is_empty() {
        return Ok(judged);
    }
    Ok(match partition::commands(host)? {
        Ok(commands) => commands.into_iter().fold(judged, Judged::command),
        Err(why) => judged.note(why),
    })
}

impl Judged {
    /// The pinned CPUs and those that are there already as a parameter, as long as a CPU is left.
    pub(super) fn list_at_boot(self, host: &Host, parameter: &str, already: &CpuSet) -> Self {
        let list = host.cpus.union(already);
        if host.topology.online().is_subset(&list) {
            return self.note("no CPU would be left for everything else: name fewer with --cpus");
        }
        self.boot(format!("{parameter}{list}"))
    }
}

/// The CPUs without a tick; kernels that were told none say `(null)` or nothing at all.
fn tickless(host: &Host) -> Result<CpuSet, Unread> {
    let path = format!("{CPU}/nohz_full");
    if host.tree.text(&path)? == "(null)" {
        return Ok(CpuSet::new());
    }
    host.tree.cpus(&path)
}

fn nohz_full(host: &Host) -> Result<Judged, Unread> {
    let tickless = tickless(host)?;
    let actual = if tickless.is_empty() { "none".into() } else { tickless.to_string() };
    if host.profile == Profile::Hybrid {
        let note = "threads that sleep make system calls, which take longer on CPUs without a tick";
        return Ok(Judged::info(actual).note(note));
    }
    let wanted = format!("{} among them", host.cpus);
    if host.cpus.is_subset(&tickless) {
        return Ok(Judged::ok(actual, wanted));
    }
    Ok(Judged::fail(actual, wanted).list_at_boot(host, "nohz_full=", &tickless))
}

/// The kernel's admin-guide/kernel-parameters.txt: `nohz_full=` offloads callbacks too. A kernel that shows no
/// `nohz_full` may be unable to offload any.
fn rcu_offload(host: &Host) -> Result<Judged, Unread> {
    let tickless = present(tickless(host))?;
    let parameter = host.parameter("rcu_nocbs")?;
    let listed = match parameter.as_deref() {
        Some(list) => kernel_list(list, host.topology.online()).ok_or_else(|| {
            Unread::strange("proc/cmdline", "has a parameter rcu_nocbs= that is no list of CPUs")
        })?,
        None if tickless.is_none() => {
            return Ok(Judged::skip("this kernel shows no CPUs without a tick, and rcu_nocbs= is not given"));
        }
        None => CpuSet::new(),
    };
    let offloaded = listed.union(&tickless.unwrap_or_default());
    let actual = if offloaded.is_empty() { "none".into() } else { offloaded.to_string() };
    let wanted = format!("{} among them", host.cpus);
    if host.cpus.is_subset(&offloaded) {
        return Ok(Judged::ok(actual, wanted));
    }
    Ok(Judged::warn(actual, wanted).list_at_boot(host, "rcu_nocbs=", &offloaded))
}
