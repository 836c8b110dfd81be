//! Clock.

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::counters::field;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "clock-source",
        group: Group::Clock,
        what: "what the kernel reads the time from",
        source: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        profiles: Profile::ALL,
        why: "each clock_gettime takes longer: through the page of kvm-clock or xen a little, and with hpet or \
              acpi_pm a system call that reads a slow device",
        price: "a kernel that left the TSC had seen it drift: look into its log first",
        now: "write tsc to the file, where available_clocksource beside it has it",
        boot: "",
        judge: clock_source,
    },
    Row {
        id: "tsc-flags",
        group: Group::Clock,
        what: "whether the processor's counter is a clock",
        source: "/proc/cpuinfo",
        profiles: Profile::ALL,
        why: "a counter that changes its rate, or stops while the CPU sleeps, measures no time: stamps of two CPUs \
              cannot be compared, and one-way latencies are wrong",
        price: "none",
        now: "measure round trips, or with CLOCK_MONOTONIC",
        boot: "a virtual machine: let the hypervisor pass the invariant TSC on",
        judge: tsc_flags,
    },
];

/// The kernel's virt/kvm/x86/timekeeping and admin-guide/kernel-parameters, clocksource.
fn clock_source(host: &Host) -> Result<Judged, Unread> {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let current_path = format!("{FOLDER}/current_clocksource");
    let current = host.tree.text(&current_path)?;
    if current.is_empty() || current.len() > 64 {
        return Err(Unread::strange(&current_path, "names no clock source"));
    }
    let wanted = "tsc";
    let judged = match current.as_str() {
        "tsc" => return Ok(Judged::ok(current, wanted)),
        "arch_sys_counter" => return Ok(Judged::ok(current.clone(), current)),
        // Read in user space as well, through a page that the hypervisor writes.
        "kvm-clock" | "xen" | "hyperv_clocksource_tsc_page" => Judged::warn(current, wanted),
        _ => Judged::fail(current, wanted),
    };
    let available = host.tree.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    Ok(match available.split_whitespace().any(|name| name == "tsc") {
        true => judged.change(current_path, "tsc").boot("clocksource=tsc"),
        false => judged.note("The kernel does not offer tsc here."),
    })
}

/// arch/x86/include/asm/cpufeatures.h: constant in all frequencies, running in all sleep states.
fn tsc_flags(host: &Host) -> Result<Judged, Unread> {
    let cpuinfo = host.tree.text("proc/cpuinfo")?;
    let Some(flags) = field(&cpuinfo, "flags") else { return Ok(Judged::skip("no processor with a TSC")) };
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let names = ["constant_tsc", "nonstop_tsc", "rdtscp"];
    let wanted = names.join(" ");
    let missing: Vec<&str> = names.into_iter().filter(|name| !flags.contains(name)).collect();
    Ok(match missing[..] {
        [] => Judged::ok(wanted.clone(), wanted),
        // The rate holds; a CPU that polls does not sleep.
        ["nonstop_tsc"] => Judged::warn("no nonstop_tsc", wanted),
        _ => Judged::fail(format!("no {}", missing.join(" ")), wanted),
    })
}
