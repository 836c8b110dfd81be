//! Huge pages: those that the kernel makes by itself, and the pools that are reserved.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ring_tune::Unread;

use super::super::present;
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

const FOLDER: &str = "sys/kernel/mm/transparent_hugepage";

pub(super) const THP: Row = Row {
    id: "thp",
    group: Group::Memory,
    what: "transparent huge pages",
    source: "/sys/kernel/mm/transparent_hugepage/{enabled,defrag,hugepages-*/enabled}",
    profiles: Profile::ALL,
    why: "a fault that makes a huge page clears 2 MiB at once, and may first move other pages out of the \
          way; khugepaged holds up faults and mappings of a process while it merges its pages",
    price: "large heaps, databases and virtual machines miss the TLB more often; rings can use reserved huge pages",
    now: "write never to /sys/kernel/mm/transparent_hugepage/enabled, before the programs start",
    boot: "transparent_hugepage=never",
    judge: thp,
};

/// The kernel's admin-guide/mm/transhuge.rst.
fn thp(host: &Host) -> Result<Judged, Unread> {
    let wanted = "never";
    let switches = Switch::all(host, "enabled")?;
    let actual = described(&switches);
    let has = |mode: &str| switches.iter().any(|switch| switch.mode == mode);
    let judged = if has("always") {
        Judged::fail(actual, wanted).note("programs that run already keep the huge pages that they have")
    } else if has("madvise") {
        Judged::warn(actual, wanted).note("only for memory that asks for it by madvise(MADV_HUGEPAGE)")
    } else {
        return Ok(Judged::ok(actual, wanted));
    };
    let judged = switched_off(judged, &switches, &["always", "madvise"]);
    Ok(judged.boot("transparent_hugepage=never"))
}

pub(super) const SHMEM_THP: Row = Row {
    id: "shmem-thp",
    group: Group::Memory,
    what: "transparent huge pages of shared memory",
    source: "/sys/kernel/mm/transparent_hugepage/{shmem_enabled,hugepages-*/shmem_enabled}, /proc/self/mountinfo",
    profiles: Profile::ALL,
    why: "rings live in shared memory: a first touch clears 2 MiB at once, and khugepaged may replace the \
          pages of a ring while it is in use, so that each side faults again",
    price: "what is large and shared misses the TLB more often; rings can use reserved huge pages",
    now: "write never to /sys/kernel/mm/transparent_hugepage/shmem_enabled; mount -o remount,huge=never /dev/shm",
    boot: "transparent_hugepage_shmem=never (Linux 6.13 and later); huge=never among the options of /dev/shm in \
           /etc/fstab",
    judge: shmem_thp,
};

/// The kernel's admin-guide/mm/transhuge.rst: the switches are those of memory without a mount that one sees (memfd,
/// anonymous and System V shared memory), the option `huge=` that of a mount; `deny` and `force` rule over both.
fn shmem_thp(host: &Host) -> Result<Judged, Unread> {
    const UNASKED: [&str; 3] = ["always", "within_size", "force"];
    let wanted = "never, advise or deny";
    let top = chosen(host, &format!("{FOLDER}/shmem_enabled"))?;
    if top == "deny" {
        return Ok(Judged::ok(top, wanted));
    }
    let switches = match top.as_str() {
        "force" => vec![Switch { size: String::new(), path: format!("{FOLDER}/shmem_enabled"), mode: top }],
        _ => Switch::all(host, "shmem_enabled")?,
    };
    let mut actual = described(&switches);
    let mount = mounted_huge(host)?.filter(|mode| UNASKED.contains(&mode.as_str()));
    if let Some(mode) = &mount {
        actual.push_str(&format!(", and huge={mode} for /dev/shm"));
    }
    if mount.is_none() && !switches.iter().any(|switch| UNASKED.contains(&switch.mode.as_str())) {
        return Ok(Judged::ok(actual, wanted));
    }
    let judged = switched_off(Judged::warn(actual, wanted), &switches, &UNASKED);
    Ok(match mount {
        Some(_) => judged.command("mount -o remount,huge=never /dev/shm"),
        None => judged,
    })
}

/// A page size and whether the kernel makes pages of it.
#[derive(Debug)]
struct Switch {
    /// `2048kB`; empty before Linux 6.8, which has one switch.
    size: String,
    /// What is in effect.
    mode: String,
    /// The file that says so, perhaps that of all sizes.
    path: String,
}

impl Switch {
    fn all(host: &Host, file: &str) -> Result<Vec<Self>, Unread> {
        let top = format!("{FOLDER}/{file}");
        let mode = chosen(host, &top)?;
        let mut switches = vec![];
        for path in host.tree.find(&format!("{FOLDER}/hugepages-*/{file}"))? {
            let size = path.split("/hugepages-").nth(1).and_then(|rest| rest.split('/').next());
            let size = size.unwrap_or_default().to_owned();
            let own = chosen(host, &path)?;
            switches.push(match own == "inherit" {
                true => Self { size, mode: mode.clone(), path: top.clone() },
                false => Self { size, mode: own, path },
            });
        }
        if switches.is_empty() {
            switches.push(Self { size: String::new(), mode, path: top });
        }
        Ok(switches)
    }
}

/// The word in brackets of a file that lists all: `always [madvise] never`.
fn chosen(host: &Host, path: &str) -> Result<String, Unread> {
    const KNOWN: [&str; 8] =
        ["always", "madvise", "never", "inherit", "within_size", "advise", "deny", "force"];
    let text = host.tree.text(path)?;
    let word = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    let word = word.filter(|word| KNOWN.contains(word));
    word.map(Into::into).ok_or_else(|| Unread::strange(path, "has no known word in brackets"))
}

/// Sizes by mode, without those that are off: `always for 2048kB`.
fn described(switches: &[Switch]) -> String {
    let on = || switches.iter().filter(|switch| switch.mode != "never");
    let modes: BTreeSet<&str> = on().map(|switch| switch.mode.as_str()).collect();
    let part = |mode: &str| {
        let sizes = on().filter(|switch| switch.mode == mode && !switch.size.is_empty());
        let sizes: Vec<&str> = sizes.map(|switch| switch.size.as_str()).collect();
        if sizes.is_empty() { mode.to_owned() } else { format!("{mode} for {}", sizes.join(", ")) }
    };
    let parts: Vec<String> = modes.into_iter().map(part).collect();
    if parts.is_empty() { "never".into() } else { parts.join("; ") }
}

/// Adds `never` for each file whose mode is one of those.
fn switched_off(mut judged: Judged, switches: &[Switch], modes: &[&str]) -> Judged {
    let bad = switches.iter().filter(|switch| modes.contains(&switch.mode.as_str()));
    let paths: BTreeSet<&str> = bad.map(|switch| switch.path.as_str()).collect();
    for path in paths {
        judged = judged.change(path, "never");
    }
    judged
}

/// The option `huge=` of the mount at /dev/shm; proc_pid_mountinfo(5): the last mount at a place covers the others.
fn mounted_huge(host: &Host) -> Result<Option<String>, Unread> {
    let mounts = present(host.tree.text("proc/self/mountinfo"))?.unwrap_or_default();
    let mut halves = mounts.lines().filter_map(|line| line.split_once(" - "));
    let mount = halves.rfind(|(mount, _)| mount.split(' ').nth(4) == Some("/dev/shm"));
    let options = mount.and_then(|(_, kind)| kind.strip_prefix("tmpfs ")?.rsplit(' ').next());
    let mut options = options.unwrap_or_default().split(',');
    Ok(options.find_map(|option| option.strip_prefix("huge=")).map(Into::into))
}

pub(super) const POOL: Row = Row {
    id: "huge-page-pool",
    group: Group::Memory,
    what: "huge pages reserved on the node of the CPUs",
    source: "/sys/devices/system/node/node*/hugepages/hugepages-*/{nr,free}_hugepages",
    profiles: Profile::ALL,
    why: "a ring on huge pages cannot be made there, or lies on another node, where each miss takes longer; \
          on pages of 4 KiB a large ring misses the TLB",
    price: "reserved memory is lost to everything else",
    now: "write the number of pages to /sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages, soon \
          after boot, while there is memory in one piece",
    boot: "hugepagesz=2M hugepages=N:PAGES for node N (Linux 5.16 and later)",
    judge: pool,
};

/// The pages of one size on one node.
#[derive(Debug)]
struct Pool {
    /// None where the kernel knows of no nodes.
    node: Option<usize>,
    size: String,
    reserved: i64,
    free: i64,
}

/// The kernel's admin-guide/mm/hugetlbpage.rst.
fn pool(host: &Host) -> Result<Judged, Unread> {
    let pools = pools(host)?;
    let wanted = "pages free on the node of the CPUs";
    if pools.iter().all(|pool| pool.reserved == 0) {
        let note = "rings of 4 KiB pages work; large ones miss the TLB less on huge pages";
        return Ok(Judged::info("none reserved").note(note));
    }
    host.must_know("/node/")?;
    let nodes: BTreeSet<usize> = host.cpus.iter().filter_map(|cpu| host.topology.node(cpu)).collect();
    let is_near = |pool: &Pool| pool.node.is_none_or(|node| nodes.is_empty() || nodes.contains(&node));
    let has_free =
        |node: usize| pools.iter().any(|pool| pool.free > 0 && pool.node.is_none_or(|at| at == node));
    let lacking: Vec<String> = nodes
        .iter()
        .filter(|node| !has_free(**node))
        .map(|node| format!("none free on node {node}"))
        .collect();
    let is_shown = |pool: &&Pool| pool.reserved > 0 && (is_near(pool) || !lacking.is_empty());
    let parts = [lacking.clone(), pools.iter().filter(is_shown).map(Pool::described).collect()].concat();
    Ok(match lacking.is_empty() {
        true => Judged::ok(parts.join(", "), wanted),
        false => Judged::warn(parts.join(", "), wanted),
    })
}

fn pools(host: &Host) -> Result<Vec<Pool>, Unread> {
    const ALL: &str = "sys/kernel/mm/hugepages";
    let mut folders = host.tree.find("sys/devices/system/node/node*/hugepages/hugepages-*")?;
    if folders.is_empty() {
        folders = host.tree.find(&format!("{ALL}/hugepages-*"))?;
    }
    if folders.is_empty() {
        return Err(Unread::Absent { path: ALL.into() });
    }
    let pool = |folder: String| {
        let mut parts = folder.split('/');
        let size = parts.clone().find_map(|part| part.strip_prefix("hugepages-"));
        Ok(Pool {
            node: parts.find_map(|part| part.strip_prefix("node")?.parse().ok()),
            size: size.unwrap_or_default().into(),
            reserved: host.tree.number(&format!("{folder}/nr_hugepages"))?,
            free: host.tree.number(&format!("{folder}/free_hugepages"))?,
        })
    };
    folders.into_iter().map(pool).collect()
}

impl Pool {
    fn described(&self) -> String {
        let Self { size, reserved, free, .. } = self;
        let place = self.node.map(|node| format!(" on node {node}")).unwrap_or_default();
        format!("{free} of {reserved} free of {size}{place}")
    }
}
