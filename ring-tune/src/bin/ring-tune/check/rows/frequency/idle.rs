//! Sleep states, and who limits them.

use ring_tune::Unread;

use super::super::per_cpu::{CPU, grouped, path};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::rows::present;

const REQUEST: &str = "dev/cpu_dma_latency";
const OF_CPU: &str = "power/pm_qos_resume_latency_us";

/// Leaving C1 takes 1 or 2 µs on servers, and C1E of older ones 10; `spr_cstates` and `skx_cstates` of
/// <https://github.com/torvalds/linux/blob/master/drivers/idle/intel_idle.c>.
const MOST_US: i64 = 5;

/// Without a request the kernel answers its default; include/linux/pm_qos.h, PM_QOS_CPU_LATENCY_DEFAULT_VALUE.
const NO_LIMIT_US: i64 = 2_000_000_000;

/// A sleep state that a CPU may enter.
struct State {
    name: String,
    latency_us: i64,
}

/// The kernel's power/pm_qos_interface.rst: reading the device gives the smallest of all requests. Limits of the CPUs
/// themselves serve as well.
pub(super) fn limit(host: &Host) -> Result<Judged, Unread> {
    if !has_states(host)? {
        return Ok(Judged::skip("the kernel knows no sleep states here"));
    }
    let wanted = format!("at most {MOST_US} µs");
    let limit_us = match requested_us(host) {
        Err(Unread::Denied { .. }) if deep(host, NO_LIMIT_US)?.is_empty() => {
            return Ok(Judged::ok("may not be read, and is not needed", wanted).note(NOT_NEEDED));
        }
        other => other?,
    };
    let actual = if limit_us >= NO_LIMIT_US { "none".into() } else { format!("{limit_us} µs") };
    if limit_us <= MOST_US {
        return Ok(Judged::ok(actual, wanted));
    }
    Ok(match deep(host, NO_LIMIT_US)?.is_empty() {
        true => Judged::ok(actual, wanted).note(NOT_NEEDED),
        false => graded(host, actual, wanted),
    })
}

const NOT_NEEDED: &str = "the CPUs have no deep states, or limits of their own";

/// Who polls never lets its CPU sleep.
fn graded(host: &Host, actual: String, wanted: String) -> Judged {
    match host.profile {
        Profile::Hybrid => Judged::fail(actual, wanted),
        Profile::Spin | Profile::Rdma | Profile::Bench => Judged::warn(actual, wanted),
    }
}

/// The kernel's admin-guide/pm/cpuidle.rst: states that are enabled and whose latency the limits allow are entered.
pub(super) fn states(host: &Host) -> Result<Judged, Unread> {
    if !has_states(host)? {
        return Ok(Judged::skip("the kernel knows no sleep states here"));
    }
    let wanted = format!("none above {MOST_US} µs");
    // Where the CPUs are limited by themselves, it does not matter who may read the request.
    if deep(host, NO_LIMIT_US)?.is_empty() {
        return Ok(Judged::ok("none", wanted));
    }
    let deep = deep(host, requested_us(host)?)?;
    if deep.is_empty() {
        return Ok(Judged::ok("none", wanted).note("as long as the request for all CPUs stands"));
    }
    let texts: Vec<(usize, String)> = deep
        .iter()
        .map(|(cpu, states)| {
            let states = states.iter().map(|state| format!("{} ({} µs)", state.name, state.latency_us));
            (*cpu, states.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let mut judged = graded(host, grouped(texts.iter().map(|(cpu, text)| (*cpu, text.as_str()))), wanted);
    for (cpu, _) in deep {
        let path = path(cpu, OF_CPU);
        if host.tree.exists(&path) {
            judged = judged.change(path, MOST_US.to_string());
        }
    }
    Ok(judged)
}

fn has_states(host: &Host) -> Result<bool, Unread> {
    for cpu in host.cpus.iter() {
        if !host.tree.find(&path(cpu, "cpuidle/state*/latency"))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The smallest request for all CPUs; without the device nobody can have made one.
fn requested_us(host: &Host) -> Result<i64, Unread> {
    let request = present(host.tree.device::<4>(REQUEST))?;
    Ok(request.map_or(NO_LIMIT_US, |bytes| i32::from_ne_bytes(bytes).into()))
}

/// The states above [`MOST_US`] that the pinned CPUs may enter while the request for all CPUs is `limit_us`; CPUs
/// without such a state are left out.
fn deep(host: &Host, limit_us: i64) -> Result<Vec<(usize, Vec<State>)>, Unread> {
    let mut deep = vec![];
    for cpu in host.cpus.iter() {
        let limit_us = limit_us.min(own_limit_us(host, cpu)?);
        let mut states = vec![];
        for folder in host.tree.find(&format!("{CPU}/cpu{cpu}/cpuidle/state*"))? {
            let latency_us = host.tree.number(&format!("{folder}/latency"))?;
            let is_disabled = host.tree.number(&format!("{folder}/disable"))? != 0;
            if !is_disabled && latency_us > MOST_US && latency_us <= limit_us {
                states.push(State { name: host.tree.text(&format!("{folder}/name"))?, latency_us });
            }
        }
        if !states.is_empty() {
            deep.push((cpu, states));
        }
    }
    Ok(deep)
}

/// ABI/testing/sysfs-devices-power: `n/a` tolerates no latency at all, and 0 any.
fn own_limit_us(host: &Host, cpu: usize) -> Result<i64, Unread> {
    let path = path(cpu, OF_CPU);
    match present(host.tree.text(&path))?.as_deref() {
        None => Ok(NO_LIMIT_US),
        Some("n/a") => Ok(0),
        Some(_) => Ok(Some(host.tree.number(&path)?).filter(|limit| *limit != 0).unwrap_or(NO_LIMIT_US)),
    }
}
