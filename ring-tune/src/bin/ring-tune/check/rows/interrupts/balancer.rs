//! irqbalance, and the CPUs that it leaves alone.

use ring_tune::{CpuSet, Unread};

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::rows::per_cpu::CPU;
use crate::check::rows::present;

/// Where distributions keep its environment: Debian's and Fedora's kind.
const CONFIGURATION: [&str; 2] = ["etc/default/irqbalance", "etc/sysconfig/irqbalance"];

/// `setup_banned_cpus`, <https://github.com/Irqbalance/irqbalance/blob/master/cputree.c>: the CPUs of the mask
/// IRQBALANCE_BANNED_CPUS, else those of IRQBALANCE_BANNED_CPULIST, are left alone; without either, as where they are
/// empty, the isolated ones and those without a tick are.
pub(super) fn irqbalance(host: &Host) -> Result<Judged, Unread> {
    let wanted = format!("not running, or {} banned", host.cpus);
    let commands = host.tree.find("proc/*/comm")?;
    let process = |path: &str| -> Option<String> {
        let process = path.strip_prefix("proc/")?.strip_suffix("/comm")?;
        process.parse::<u32>().is_ok().then(|| process.to_owned())
    };
    let processes: Vec<String> = commands.iter().filter_map(|path| process(path)).collect();
    if processes.is_empty() {
        return Ok(Judged::skip("no processes are shown"));
    }
    let is_it = |process: &&String| {
        // Who ends meanwhile is not running.
        host.tree.text(&format!("proc/{process}/comm")).is_ok_and(|name| name == "irqbalance")
    };
    let Some(process) = processes.iter().find(is_it) else { return Ok(Judged::ok("not running", wanted)) };
    let (banned, by) = banned(host, process)?;
    let list = if banned.is_empty() { "no CPU".into() } else { banned.to_string() };
    let actual = format!("running, {list} banned by {by}");
    Ok(match host.cpus.is_subset(&banned) {
        true => Judged::ok(actual, wanted),
        false => Judged::fail(actual, wanted),
    })
}

/// The CPUs that it leaves alone, and what says so. Only root may read its environment.
fn banned(host: &Host, process: &str) -> Result<(CpuSet, &'static str), Unread> {
    if let Ok(environment) = host.tree.bytes(&format!("proc/{process}/environ")) {
        let environment = String::from_utf8_lossy(&environment).into_owned();
        return Ok(match listed(environment.split('\0')) {
            Some(banned) => (banned, "its environment"),
            None => (by_default(host), "itself"),
        });
    }
    for path in CONFIGURATION {
        let configured = present(host.tree.text(path))?.and_then(|text| listed(text.lines()));
        if let Some(banned) = configured {
            return Ok((banned, "its configuration"));
        }
    }
    Ok((by_default(host), "itself"))
}

/// What the variables say; nothing where neither is set. What is no list, such as `-`, bans no CPU.
fn listed<'a>(variables: impl Iterator<Item = &'a str>) -> Option<CpuSet> {
    let mut list = None;
    for variable in variables {
        let Some((name, value)) = variable.split_once('=') else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        match name.trim().trim_start_matches("export ") {
            _ if value.is_empty() => {}
            "IRQBALANCE_BANNED_CPULIST" => list = Some(value.parse().unwrap_or_default()),
            "IRQBALANCE_BANNED_CPUS" => return Some(CpuSet::from_mask(value).unwrap_or_default()),
            _ => {}
        }
    }
    list
}

/// It does not look at partitions of cgroups.
fn by_default(host: &Host) -> CpuSet {
    let [isolated, tickless] = ["isolated", "nohz_full"].map(|file| host.tree.cpus(&format!("{CPU}/{file}")));
    isolated.unwrap_or_default().union(&tickless.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_variables_the_mask_counts() {
        let listed = |variables: &str| listed(variables.lines()).map(|cpus| cpus.to_string());
        let (mask, list) = ("IRQBALANCE_BANNED_CPUS=\"c\"", "IRQBALANCE_BANNED_CPULIST=5-6");
        for both in [format!("{mask}\n{list}"), format!("{list}\nexport {mask}")] {
            assert_eq!(listed(&both).as_deref(), Some("2-3"), "{both}");
        }
        assert_eq!(listed(&format!("{list}\nIRQBALANCE_BANNED_CPUS=")).as_deref(), Some("5-6"));
        assert_eq!(listed("IRQBALANCE_BANNED_CPULIST=-\n").as_deref(), Some(""));
        assert_eq!(listed("IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_ONESHOT=1"), None);
    }
}
