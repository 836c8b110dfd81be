//! Frequency and sleep states.

mod bounds;
mod idle;

use ring_tune::Unread;

use super::per_cpu::{CPU, grouped, path, texts, texts_if_any};
use super::present;
use crate::check::Host;
use crate::check::finding::{Judged, Verdict};
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "frequency-bounds",
        group: Group::Frequency,
        what: "bounds of the frequency",
        source: "/sys/devices/system/cpu/cpu*/cpufreq/{scaling_min_freq,scaling_max_freq,cpuinfo_max_freq}",
        profiles: Profile::ALL,
        why: "below the highest frequency all code runs slower in proportion; between the bounds the \
              frequency wanders, and every number that is measured wanders along",
        price: "power and heat; measured at a fixed frequency, numbers leave out what turbo adds",
        now: "cpupower -c LIST frequency-set --min F --max F",
        boot: "the same by a service of systemd, or ring-tune fix --format udev: the kernel has no \
               parameter for it",
        judge: bounds::bounds,
    },
    Row {
        id: "governor",
        group: Group::Frequency,
        what: "who chooses the frequency",
        source: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        profiles: Profile::ALL,
        why: "after a pause the CPU starts slow, and is fast only once the governor has seen that it is \
              busy again",
        price: "power and heat",
        now: "cpupower -c LIST frequency-set -g performance",
        boot: "cpufreq.default_governor=performance on the kernel's command line (Linux 5.9 and later)",
        judge: governor,
    },
    Row {
        id: "energy-bias",
        group: Group::Frequency,
        what: "what the processor prefers, speed or savings",
        source: "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference, \
                 /sys/devices/system/cpu/cpu*/power/energy_perf_bias, \
                 /sys/devices/system/cpu/intel_pstate/min_perf_pct",
        profiles: Profile::ALL,
        why: "a processor that is to save energy clocks down while a thread waits, and is slow to clock up \
              again",
        price: "power and heat",
        now: "write performance, 0 and 100 to these files; x86_energy_perf_policy performance does the \
              first two",
        boot: "the same by a service of systemd, or ring-tune fix --format udev; the firmware may have a \
               setting for it as well",
        judge: energy_bias,
    },
    Row {
        id: "turbo",
        group: Group::Frequency,
        what: "frequencies above the nominal one",
        source: "/sys/devices/system/cpu/intel_pstate/no_turbo, /sys/devices/system/cpu/cpufreq/boost",
        profiles: Profile::ALL,
        why: "",
        price: "",
        now: "",
        boot: "",
        judge: turbo,
    },
    Row {
        id: "cstate-limit",
        group: Group::Frequency,
        what: "latency that all sleep states must keep",
        source: "/dev/cpu_dma_latency",
        profiles: Profile::ALL,
        // exit_latency of C6 in skx_cstates, icx_cstates and spr_cstates,
        // https://github.com/torvalds/linux/blob/master/drivers/idle/intel_idle.c
        why: "a CPU leaves C6 after 133 to 290 µs (Xeons from Skylake to Sapphire Rapids, by the kernel's \
              intel_idle), and only then does the thread see what it waited for",
        price: "power and heat on all CPUs, and less room for turbo",
        now: "ring-tune run holds /dev/cpu_dma_latency open while the command runs, and so does tuned",
        boot: "processor.max_cstate=1 and, on Intel, intel_idle.max_cstate=1 on the kernel's command line",
        judge: idle::limit,
    },
    Row {
        id: "cstate-cpu",
        group: Group::Frequency,
        what: "sleep states that take long to leave",
        source: "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us, \
                 /sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,disable}",
        profiles: Profile::ALL,
        // exit_latency of C6 in skx_cstates, icx_cstates and spr_cstates,
        // https://github.com/torvalds/linux/blob/master/drivers/idle/intel_idle.c
        why: "a CPU leaves C6 after 133 to 290 µs (Xeons from Skylake to Sapphire Rapids, by the kernel's \
              intel_idle), and only then does the thread see what it waited for; one that polls pays when \
              it starts",
        price: "power and heat on these CPUs",
        now: "write the latency in microseconds to pm_qos_resume_latency_us of each CPU",
        boot: "processor.max_cstate=1 and, on Intel, intel_idle.max_cstate=1 on the kernel's command line",
        judge: idle::states,
    },
];

/// The kernel's admin-guide/pm/cpufreq.rst and intel_pstate.rst: where the processor chooses by itself, the preference
/// counts more than the governor.
fn governor(host: &Host) -> Result<Judged, Unread> {
    const FILE: &str = "cpufreq/scaling_governor";
    let governors = texts(host, FILE)?;
    let preferences = texts_if_any(host, "cpufreq/energy_performance_preference")?;
    let others: Vec<usize> =
        governors.iter().filter(|(_, governor)| governor != "performance").map(|(cpu, _)| *cpu).collect();
    let actual = grouped(governors.iter().map(|(cpu, governor)| (*cpu, governor.as_str())));
    if others.is_empty() {
        return Ok(Judged::ok(actual, "performance"));
    }
    let prefers_speed =
        |cpu: &usize| preferences.iter().any(|(other, value)| other == cpu && value == "performance");
    let mut judged = match others.iter().all(prefers_speed) {
        true => Judged::warn(actual, "performance").note("the processor chooses, and prefers speed"),
        false => Judged::fail(actual, "performance"),
    };
    for cpu in others {
        judged = judged.change(path(cpu, FILE), "performance");
    }
    Ok(judged.boot("cpufreq.default_governor=performance"))
}

/// admin-guide/pm/intel_pstate.rst, intel_epb.rst and amd-pstate.rst: the preference is a word or a number up to 255,
/// the bias a number up to 15; 0 is full speed for both. The governor performance goes to the upper bound whatever the
/// lower one is.
fn energy_bias(host: &Host) -> Result<Judged, Unread> {
    const PREFERENCE: &str = "cpufreq/energy_performance_preference";
    const BIAS: &str = "power/energy_perf_bias";
    let floor_path = format!("{CPU}/intel_pstate/min_perf_pct");
    let preferences = texts_if_any(host, PREFERENCE)?;
    let biases = texts_if_any(host, BIAS)?;
    let governors = texts_if_any(host, "cpufreq/scaling_governor")?;
    let floor = present(host.tree.number(&floor_path))?;
    if preferences.is_empty() && biases.is_empty() && floor.is_none() {
        return Ok(Judged::skip("the kernel cannot tell this processor what to prefer"));
    }
    let mut actual = vec![];
    let mut judged = Judged::ok("", "performance, bias 0, floor 100 %");
    if !preferences.is_empty() {
        actual.push(grouped(preferences.iter().map(|(cpu, value)| (*cpu, value.as_str()))));
    }
    for (cpu, _) in preferences.iter().filter(|(_, value)| value != "performance" && value != "0") {
        judged = judged.change(path(*cpu, PREFERENCE), "performance");
    }
    if !biases.is_empty() {
        actual.push(format!("bias {}", grouped(biases.iter().map(|(cpu, value)| (*cpu, value.as_str())))));
    }
    for (cpu, _) in biases.iter().filter(|(_, value)| value != "0" && value != "performance") {
        judged = judged.change(path(*cpu, BIAS), "0");
    }
    if let Some(floor) = floor {
        actual.push(format!("floor {floor} %"));
        let is_moot = !governors.is_empty() && governors.iter().all(|(_, value)| value == "performance");
        if floor < 100 && !is_moot {
            judged = judged.change(floor_path, "100");
        }
    }
    judged.actual = actual.join("; ");
    if !judged.changes.is_empty() {
        judged.verdict = Verdict::Warn;
    }
    Ok(judged)
}

/// Good and bad: no verdict. admin-guide/pm/intel_pstate.rst and cpufreq.rst.
fn turbo(host: &Host) -> Result<Judged, Unread> {
    let read = |file: &str| present(host.tree.number(&format!("{CPU}/{file}")));
    let is_on = match (read("intel_pstate/no_turbo")?, read("cpufreq/boost")?) {
        (Some(no_turbo), _) => no_turbo == 0,
        (None, Some(boost)) => boost != 0,
        (None, None) => return Ok(Judged::skip("the kernel does not control turbo here")),
    };
    let note = match (host.profile, is_on) {
        (Profile::Bench, true) => "numbers depend on heat and on who else is busy: off repeats better",
        (Profile::Bench, false) => "",
        (_, true) => "",
        (_, false) => "on is faster as long as few cores are busy",
    };
    Ok(Judged::info(if is_on { "on" } else { "off" }).note(note))
}
