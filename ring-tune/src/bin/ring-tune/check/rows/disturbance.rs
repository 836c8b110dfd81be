//! Disturbance: what happened between the two samples.

mod firmware;

use ring_tune::Unread;

use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};
use crate::check::{Host, asked};
use crate::counters::{TICK_MS, field, pressure_us, steal_ticks};

pub(super) const ROWS: &[Row] = &[
    firmware::SMI,
    Row {
        id: "steal",
        group: Group::Disturbance,
        what: "time that the hypervisor gave to others",
        source: "/proc/stat",
        profiles: Profile::ALL,
        why: "the CPU stands still while the guest believes that it runs: no setting inside the guest mends \
              that, and no tail that was measured meanwhile means anything",
        price: "a dedicated host costs more",
        now: "",
        boot: "ask the provider for dedicated CPUs or a dedicated host; on a host of your own pin the virtual CPUs",
        judge: steal,
    },
    Row {
        id: "cpu-pressure",
        group: Group::Disturbance,
        what: "time in which some task waited for a CPU",
        source: "/proc/pressure/cpu",
        profiles: Profile::ALL,
        why: "more tasks want to run than there are CPUs: one that waits on the pinned CPUs, or a thread of \
              yours that is not pinned, is late by the others' time slices",
        price: "none",
        now: "find who runs (top, /proc/PID/schedstat), move it to another machine, or keep it off the CPUs by \
              cpusets",
        boot: "",
        judge: pressure,
    },
    Row {
        id: "spin-gaps",
        group: Group::Disturbance,
        what: "what a spin loop of 25 ms on one of the CPUs missed",
        source: "a spin loop",
        profiles: Profile::ALL,
        why: "that long a message waits though its thread polls: the sum of interrupts, other tasks, \
              firmware and hypervisor",
        price: "none",
        now: "ring-tune jitter --seconds 10 measures longer and names the likely causes; mend the rows above first",
        boot: "",
        judge: spin_gaps,
    },
    Row {
        id: "hypervisor",
        group: Group::Disturbance,
        what: "whether this is a virtual machine",
        source: "/proc/cpuinfo",
        profiles: Profile::ALL,
        why: "",
        price: "",
        now: "",
        boot: "",
        judge: hypervisor,
    },
];

/// Share of the window in which a task may wait for a CPU without it being a shortage.
const PRESSURE_SHARE: f64 = 0.01;

/// Share of the window in which the CPU may be busy before it is left alone.
const MOST_BUSY: f64 = 0.2;

/// What a loop may miss on a CPU that is quiet enough for polling threads.
const LONGEST_GAP_NS: u64 = 50_000;
const LOST_SHARE: f64 = 0.01;

fn one_sample() -> Judged {
    Judged::skip("one sample of the counters does not tell")
}

fn steal(host: &Host) -> Result<Judged, Unread> {
    const STAT: &str = "proc/stat";
    let Some((before, after)) = host.samples(STAT)? else { return Ok(one_sample()) };
    let mut ticks = 0_u64;
    for cpu in host.cpus.iter() {
        let counts = steal_ticks(before, cpu).zip(steal_ticks(&after, cpu));
        let (before, after) =
            counts.ok_or_else(|| Unread::strange(STAT, &format!("has no steal of cpu{cpu}")))?;
        ticks = ticks.saturating_add(after.saturating_sub(before));
    }
    let actual = format!("{} ms", ticks.saturating_mul(TICK_MS));
    Ok(if ticks == 0 { Judged::ok(actual, "0 ms") } else { Judged::warn(actual, "0 ms") })
}

/// The kernel's accounting/psi: microseconds in which at least one task waited.
fn pressure(host: &Host) -> Result<Judged, Unread> {
    const CPU: &str = "proc/pressure/cpu";
    let Some((before, after)) = host.samples(CPU)? else { return Ok(one_sample()) };
    let Some((before, after)) = pressure_us(before).zip(pressure_us(&after)) else {
        return Err(Unread::strange(CPU, "has no total of some"));
    };
    let window_us = host.sampled().unwrap_or_default().as_secs_f64() * 1e6;
    if window_us <= 0.0 {
        return Ok(one_sample());
    }
    let share = (after.saturating_sub(before) as f64 / window_us).min(1.0);
    let actual = format!("{:.1} % of the time", share * 100.0);
    let wanted = "below 1 %";
    Ok(match share < PRESSURE_SHARE {
        true => Judged::ok(actual, wanted),
        false => {
            Judged::warn(actual, wanted).note("It may be on any CPU, not only on those that are pinned.")
        }
    })
}

fn spin_gaps(host: &Host) -> Result<Judged, Unread> {
    let Some(cpu) = host.cpus.iter().next() else { return Ok(Judged::skip("no CPUs")) };
    let path = format!("spin/{cpu}");
    // The threads that the CPU is for may run there already, and are not to be disturbed.
    if let Some(busy) = busy(host, cpu).filter(|busy| host.tree.is_live() && *busy > MOST_BUSY) {
        return Ok(Judged::info(format!(
            "CPU {cpu} is busy, {:.0} % of the time: not measured",
            busy * 100.0
        )));
    }
    let text = match asked::text(&host.tree, &path) {
        Err(Unread::Absent { .. }) => return Ok(Judged::skip("a saved tree without a measurement")),
        text => text?,
    };
    let number = |name| field(&text, name).and_then(|value| value.parse::<u64>().ok());
    let (Some(spun_ns), Some(gaps), Some(lost_ns), Some(longest_ns)) =
        (number("spun-ns"), number("gaps"), number("lost-ns"), number("longest-ns"))
    else {
        return Err(Unread::strange(&path, "is no measurement"));
    };
    let lost = if spun_ns == 0 { 1.0 } else { lost_ns as f64 / spun_ns as f64 };
    let longest_us = longest_ns as f64 / 1e3;
    let actual = format!("CPU {cpu}: {gaps} gaps, {longest_us:.1} µs at most, {:.2} % lost", lost * 100.0);
    let wanted = "50 µs at most, 1 % lost";
    Ok(match longest_ns <= LONGEST_GAP_NS && lost <= LOST_SHARE {
        true => Judged::ok(actual, wanted),
        false => Judged::warn(actual, wanted),
    })
}

/// The share of the time between the samples in which a CPU did not idle; none where it cannot be told.
fn busy(host: &Host, cpu: usize) -> Option<f64> {
    let (before, after) = host.samples("proc/stat").ok()??;
    let [before, after] = [before, &after].map(|stat| idle_ticks(stat, cpu));
    let idle_ms = after?.saturating_sub(before?).saturating_mul(TICK_MS) as f64;
    // The count is not finer than a tick, on either side.
    let window_ms = host.sampled()?.as_secs_f64() * 1e3 - TICK_MS as f64;
    (window_ms > 0.0).then(|| (1.0 - idle_ms / window_ms).clamp(0.0, 1.0))
}

/// The fourth number of a CPU's line and the fifth, which is idling too; proc_stat(5).
fn idle_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    let mut numbers = line.split_whitespace().skip(4).map(str::parse::<u64>);
    numbers.next()?.ok()?.checked_add(numbers.next()?.ok()?)
}

/// The bit that processors keep free for hypervisors: CPUID leaf 1, ECX 31.
fn hypervisor(host: &Host) -> Result<Judged, Unread> {
    host.tree.text("proc/cpuinfo")?;
    if !host.is_virtual() {
        return Ok(Judged::skip("no hypervisor flag: bare metal"));
    }
    let name = ["sys_vendor", "product_name"].map(|name| {
        host.tree
            .text(&format!("sys/class/dmi/id/{name}"))
            .unwrap_or_default()
            .chars()
            .take(64)
            .collect::<String>()
    });
    let name = name.join(" ");
    let actual = match name.trim() {
        "" => "a virtual machine".to_owned(),
        name => format!("a virtual machine: {name}"),
    };
    Ok(Judged::info(actual)
        .note("The rows tell of the guest; what its host does is not seen, and caps what OK means."))
}
