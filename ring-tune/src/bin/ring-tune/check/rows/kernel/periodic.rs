//! Timers and ticks.

use ring_tune::Unread;

use super::{is_at_least, is_left_alone, tickless};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const STAT_INTERVAL: Row = Row {
    id: "stat-interval",
    group: Group::Kernel,
    what: "how often each CPU's memory statistics are collected",
    source: "/proc/sys/vm/stat_interval",
    profiles: Profile::POLLING,
    // https://github.com/torvalds/linux/commit/be5e015d107d
    why: "a kernel worker pre-empts the thread whenever it has changed counters, as by a fault or an allocation: 7 µs \
          on bare metal, more than 50 µs in a virtual machine (Linux commit be5e015d107d)",
    price: "vmstat and the like lag behind by some seconds",
    now: "write 10 to /proc/sys/vm/stat_interval",
    boot: "vm.stat_interval = 10 in a file of /etc/sysctl.d",
    judge: stat_interval,
};

/// The kernel's admin-guide/sysctl/vm.rst: seconds, 1 unless changed. From 6.5 on isolated CPUs are left out.
fn stat_interval(host: &Host) -> Result<Judged, Unread> {
    const INTERVAL: &str = "proc/sys/vm/stat_interval";
    const FEWEST: i64 = 10;
    let wanted = format!("{FEWEST} s at least");
    let seconds = host.tree.number(INTERVAL)?;
    if seconds >= FEWEST {
        return Ok(Judged::ok(format!("{seconds} s"), wanted));
    }
    if is_at_least(&host.tree, (6, 5))? && is_left_alone(host)? {
        return Ok(Judged::ok(format!("{seconds} s, but not on isolated CPUs"), wanted));
    }
    Ok(Judged::warn(format!("{seconds} s"), wanted).change(INTERVAL, FEWEST.to_string()))
}

pub(super) const SKEW_TICK: Row = Row {
    id: "skew-tick",
    group: Group::Kernel,
    what: "whether all CPUs tick in the same moment",
    source: "/proc/cmdline",
    profiles: Profile::POLLING,
    why: "on large machines the ticks of all CPUs contend for the same locks, so that each lasts longer",
    price: "CPUs wake one after the other instead of together, and idle ones save less power",
    now: "",
    boot: "skew_tick=1",
    judge: skew_tick,
};

/// The kernel's admin-guide/kernel-parameters.txt speaks of larger systems; it shows the state nowhere but in its
/// command line.
fn skew_tick(host: &Host) -> Result<Judged, Unread> {
    const LARGE: usize = 16;
    let wanted = "skew_tick=1";
    if host.parameter("skew_tick")?.is_some_and(|value| value == "1") {
        return Ok(Judged::ok(wanted, wanted));
    }
    if host.cpus.is_subset(&tickless(host)?) {
        return Ok(Judged::skip("the CPUs do not tick (nohz_full)"));
    }
    let count = host.topology.online().len();
    if count <= LARGE {
        return Ok(Judged::skip(format!("{count} CPUs are too few for their ticks to contend")));
    }
    Ok(Judged::warn(format!("{count} CPUs tick at once"), wanted).boot(wanted))
}

pub(super) const TIMER_MIGRATION: Row = Row {
    id: "timer-migration",
    group: Group::Kernel,
    what: "whether idle CPUs pass their timers on to busy ones",
    source: "/proc/sys/kernel/timer_migration",
    profiles: Profile::POLLING,
    why: "a thread that spins makes its CPU the busy one: timers of others run there, and interrupt it",
    price: "idle CPUs are woken by their own timers and save less power",
    now: "write 0 to /proc/sys/kernel/timer_migration, which holds for high-resolution timers alone from Linux 6.9 on",
    boot: "kernel.timer_migration = 0 in a file of /etc/sysctl.d; nohz_full=LIST from Linux 6.9 on",
    judge: timer_migration,
};

/// Up to Linux 6.8 an idle CPU gives its timers to a busy one of its scheduling domain that does housekeeping
/// (`get_nohz_timer_target` in kernel/sched/core.c): isolated CPUs are in no domain, and tickless ones do none. From
/// 6.9 on only high-resolution timers go that way; any CPU that ticks pulls the others
/// (kernel/time/timer_migration.c), from 6.19 on no isolated one
/// (<https://git.kernel.org/linus/7dec062cfcf27808dbb70a0b231d1a698792743d>).
fn timer_migration(host: &Host) -> Result<Judged, Unread> {
    const MIGRATION: &str = "proc/sys/kernel/timer_migration";
    let value = host.tree.number(MIGRATION)?;
    let are_pulled = is_at_least(&host.tree, (6, 9))?;
    let is_isolation_enough = !are_pulled || is_at_least(&host.tree, (6, 19))?;
    let wanted = match (are_pulled, is_isolation_enough) {
        (false, _) => "0, or isolated CPUs",
        (true, true) => "isolated CPUs, or ones without a tick",
        (true, false) => "CPUs without a tick",
    };
    let is_spared = host.cpus.is_subset(&tickless(host)?) || (is_isolation_enough && is_left_alone(host)?);
    if value == 0 && (is_spared || !are_pulled) {
        return Ok(Judged::ok("0", wanted));
    }
    if is_spared {
        return Ok(Judged::ok(format!("{value}, but not to these CPUs"), wanted));
    }
    let mut judged = Judged::warn(value.to_string(), wanted);
    if value != 0 {
        judged = judged.change(MIGRATION, "0");
    }
    Ok(match are_pulled {
        true => judged
            .note("This kernel obeys 0 for high-resolution timers alone; CPUs that tick run the others of idle ones."),
        false => judged,
    })
}

pub(super) const MCE_POLL: Row = Row {
    id: "mce-poll",
    group: Group::Kernel,
    what: "polling for hardware errors that were corrected",
    source: "/sys/devices/system/machinecheck/machinecheck*/{ignore_ce,check_interval}",
    profiles: Profile::POLLING,
    // INITIAL_CHECK_INTERVAL, https://github.com/torvalds/linux/blob/master/arch/x86/kernel/cpu/mce/internal.h
    why: "each CPU's timer reads a register of each of its banks, every five minutes unless changed, and in \
          a virtual machine each read may leave it",
    price: "corrected errors without an interrupt of their own stay unnoticed, as of memory that begins to fail",
    now: "write 0 to /sys/devices/system/machinecheck/machinecheck0/check_interval: it holds for all CPUs",
    boot: "mce=ignore_ce, which also turns the interrupts for corrected errors off",
    judge: mce_poll,
};

/// The kernel's ABI/testing/sysfs-mce: `ignore_ce` disables polling and interrupts, a `check_interval` of 0 polling
/// alone; both are one value for all CPUs. The interval was hexadecimal in old kernels: only 0 is told apart.
fn mce_poll(host: &Host) -> Result<Judged, Unread> {
    const ALL: &str = "sys/devices/system/machinecheck";
    let wanted = "no polling";
    let Some(folder) = host.tree.find(&format!("{ALL}/machinecheck*"))?.into_iter().next() else {
        return Err(Unread::Absent { path: ALL.into() });
    };
    if host.tree.number(&format!("{folder}/ignore_ce"))? != 0 {
        return Ok(Judged::ok("ignored (ignore_ce)", wanted));
    }
    let path = format!("{folder}/check_interval");
    let interval = host.tree.text(&path)?;
    match u64::from_str_radix(interval.trim_start_matches("0x"), 16) {
        Ok(0) => Ok(Judged::ok("not polled", wanted)),
        Ok(_) => Ok(Judged::warn(format!("every {interval} s"), wanted).change(path, "0")),
        Err(_) => Err(Unread::strange(&path, "is no number")),
    }
}
