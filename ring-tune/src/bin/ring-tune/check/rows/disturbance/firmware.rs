//! Firmware that stops all CPUs.

use ring_tune::Unread;

use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::check::{Host, asked};
use crate::counters::field;

pub(super) const SMI: Row = Row {
    id: "firmware-stalls",
    group: Group::Disturbance,
    what: "system management interrupts",
    source: "MSR 0x34 in /dev/cpu/*/msr, or the hwlat tracer in /sys/kernel/tracing",
    profiles: Profile::ALL,
    why: "the firmware stops all CPUs at once, for as long as it likes, and the kernel does not see it",
    price: "the firmware's own power and error management does less",
    now: "",
    boot: "the firmware's setup: low latency profile; memory scrubbing, USB legacy, power capping and thermal \
           polling off",
    judge: smi,
};

const TRACER: &str = "sys/kernel/tracing/current_tracer";
const LONGEST: &str = "sys/kernel/tracing/tracing_max_latency";

/// What the hwlat tracer reports by itself; the kernel's trace/hwlat_detector.
const HWLAT_US: f64 = 10.0;

fn smi(host: &Host) -> Result<Judged, Unread> {
    if host.is_virtual() {
        return Ok(Judged::skip("a virtual machine: its host's firmware is not seen"));
    }
    // Without privilege the folder is closed, and the counter tells.
    if host.tree.text(TRACER).is_ok_and(|tracer| tracer == "hwlat") {
        return hwlat(host);
    }
    let cpuinfo = host.tree.text("proc/cpuinfo")?;
    if field(&cpuinfo, "vendor_id") != Some("GenuineIntel") {
        return Ok(Judged::skip(
            "no MSR of this processor counts them: run hwlatdetect, or perf stat -a -e ls_smi_rx on AMD",
        ));
    }
    let Some(path) = asked::smi(&host.tree) else {
        return Ok(Judged::skip("neither the module msr nor the hwlat tracer is there: modprobe msr"));
    };
    let Some((before, after)) = host.samples(&path)? else {
        return Ok(Judged::skip("one sample of the counter does not tell"));
    };
    let count = |text: &str| text.parse::<u32>().map_err(|_| Unread::strange(&path, "is no count"));
    let count = count(&after)?.wrapping_sub(count(before)?);
    let within = format!("in {:.2} s", host.sampled().unwrap_or_default().as_secs_f64());
    Ok(match count {
        0 => Judged::ok(format!("0 {within}"), "0"),
        _ => Judged::fail(format!("{count} {within}"), "0"),
    })
}

fn hwlat(host: &Host) -> Result<Judged, Unread> {
    let text = host.tree.text(LONGEST)?;
    let longest_us: f64 =
        text.parse().map_err(|_| Unread::strange(LONGEST, "is no number of microseconds"))?;
    let actual = format!("hwlat: {longest_us} µs at most");
    let wanted = "below 10 µs";
    Ok(if longest_us < HWLAT_US { Judged::ok(actual, wanted) } else { Judged::fail(actual, wanted) })
}
