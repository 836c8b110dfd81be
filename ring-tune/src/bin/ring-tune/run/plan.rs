//! What is to be done for a command, before anything is done.

use anyhow::ensure;
use ring_tune::{CpuSet, MemoryPolicy, Share, Topology, Tree};

use super::Args;
use super::device::node_of_device;
use crate::check::{Profile, RealTimeLimit};
use crate::say::plain;

/// From where memory comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Memory {
    /// From the node alone
    Bind,
    /// From the node, and from others if it has none left
    Preferred,
    /// From the node of the CPU that first touches it
    Local,
}

/// What a command is to run with.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) profile: Profile,
    pub(super) cpus: CpuSet,
    /// What a pair of CPUs has in common.
    pub(super) share: Option<Share>,
    /// From where memory comes; left as it is where there is nothing to choose from, or nothing to choose by.
    pub(super) policy: Option<MemoryPolicy>,
    pub(super) fifo: Option<u8>,
    pub(super) latency_limit_us: u32,
    /// What is worth to know about it.
    pub(super) notes: Vec<String>,
    /// The device's node was asked for, and the kernel does not tell it.
    pub(super) unknown_node: Option<String>,
}

impl Plan {
    /// `reachable` are the CPUs to choose from.
    pub(super) fn of(
        args: &Args,
        tree: &Tree,
        topology: &Topology,
        reachable: &CpuSet,
    ) -> anyhow::Result<Self> {
        let mut notes = vec![];
        let mut unknown_node = None;
        let wanted_node = wanted_node(args, tree, topology, &mut unknown_node)?;
        let cpus = match &args.cpus {
            Some(cpus) => cpus.clone(),
            None => chosen(topology, reachable, wanted_node),
        };
        ensure!(!cpus.is_empty(), "no CPUs to run on: name some, as in --cpus 2,3");
        ensure!(
            cpus.is_subset(topology.online()),
            "--cpus {cpus}: not all of them are online, only {} are",
            topology.online()
        );

        let own_node = only_node(topology, &cpus);
        if let Some(node) = wanted_node.filter(|_| own_node != wanted_node) {
            notes.push(format!("CPUs {cpus} are not all on node {node}: the way to it is longer"));
        }
        let policy = policy(args, topology, own_node, &mut notes)?;
        about_cpus(topology, &cpus, &mut notes);
        about_sleep(tree, &mut notes);
        if args.fifo.is_some() {
            about_real_time(tree, &mut notes);
        }
        Ok(Self {
            profile: args.profile,
            share: share(topology, &cpus),
            cpus,
            policy,
            fifo: args.fifo,
            latency_limit_us: args.latency_us,
            notes,
            unknown_node,
        })
    }
}

/// The node that CPUs are to be on.
fn wanted_node(
    args: &Args,
    tree: &Tree,
    topology: &Topology,
    unknown: &mut Option<String>,
) -> anyhow::Result<Option<usize>> {
    if let Some(node) = args.node {
        let numbers: Vec<String> = topology.nodes().iter().map(|(number, _)| number.to_string()).collect();
        ensure!(
            topology.nodes().iter().any(|(number, _)| *number == node),
            "--node {node}: there is no such NUMA node, only {}",
            if numbers.is_empty() { "one without a number".into() } else { numbers.join(",") }
        );
        return Ok(Some(node));
    }
    let Some(device) = &args.near else { return Ok(None) };
    let node = node_of_device(tree, device)?;
    if node.is_none() {
        *unknown = Some(format!(
            "cannot tell the NUMA node of {}, which the kernel does not know: no CPU is taken for nearer than another; \
             name the node with --node",
            plain(device)
        ));
    }
    Ok(node)
}

/// The best pair, or the one CPU that there is.
fn chosen(topology: &Topology, reachable: &CpuSet, node: Option<usize>) -> CpuSet {
    match topology.best_pair(reachable, node) {
        Some(pair) => pair.into_iter().collect(),
        None => reachable.intersection(topology.online()),
    }
}

/// The node that all of them are on.
fn only_node(topology: &Topology, cpus: &CpuSet) -> Option<usize> {
    let first = topology.node(cpus.iter().next()?)?;
    cpus.iter().all(|cpu| topology.node(cpu) == Some(first)).then_some(first)
}

fn policy(
    args: &Args,
    topology: &Topology,
    own_node: Option<usize>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<MemoryPolicy>> {
    if topology.nodes().is_empty() {
        return Ok(None);
    }
    let memory = args.memory.unwrap_or(match args.profile {
        // It shares its CPUs with others, and may grow beyond the node with them.
        Profile::Hybrid => Memory::Preferred,
        Profile::Spin | Profile::Rdma | Profile::Bench => Memory::Bind,
    });
    Ok(match (memory, args.node.or(own_node)) {
        (Memory::Local, _) => Some(MemoryPolicy::Local),
        (Memory::Bind, Some(node)) => Some(MemoryPolicy::Bind { node }),
        (Memory::Preferred, Some(node)) => Some(MemoryPolicy::Preferred { node }),
        (Memory::Bind | Memory::Preferred, None) => {
            let several =
                "the CPUs are on several nodes: name the one that memory is to come from with --node";
            ensure!(args.memory.is_none(), "--memory: {several}");
            notes.push(several.into());
            None
        }
    })
}

fn share(topology: &Topology, cpus: &CpuSet) -> Option<Share> {
    let mut numbers = cpus.iter();
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(other), None) => Some(topology.share(one, other)),
        _ => None,
    }
}

/// Who else is on these CPUs or beside them.
fn about_cpus(topology: &Topology, cpus: &CpuSet, notes: &mut Vec<String>) {
    let siblings = cpus.iter().fold(CpuSet::new(), |all, cpu| all.union(&topology.siblings(cpu)));
    let beside = siblings.difference(cpus);
    if !beside.is_empty() {
        notes.push(format!(
            "CPUs {beside} share cores with CPUs {cpus}, and take execution units from them: keep them idle"
        ));
    }
    if cpus.iter().any(|cpu| topology.siblings(cpu).intersection(cpus).len() > 1) {
        notes.push(format!("among CPUs {cpus} are threads of one core: they slow each other down"));
    }
    let isolated = cpus.intersection(topology.isolated());
    if isolated.len() > 1 {
        notes.push(format!(
            "the scheduler moves nothing between isolated CPUs: unless the command pins its threads, all of them share \
             one of {isolated}"
        ));
    }
    if topology.housekeeping().is_subset(cpus) {
        notes.push(format!(
            "CPUs {cpus} are all that do the housekeeping: interrupts and other programs run there too"
        ));
    } else if cpus.contains(0) {
        notes.push("most interrupts go to CPU 0: take another one if there is a choice".into());
    }
}

/// What stops threads of SCHED_FIFO.
fn about_real_time(tree: &Tree, notes: &mut Vec<String>) {
    notes.extend(match RealTimeLimit::of(tree) {
        Ok(RealTimeLimit::Budget { runtime_us, period_us }) => Some(format!(
            "a SCHED_FIFO thread that spins is stopped beyond {runtime_us} of each {period_us} µs, even if nobody else \
             wants its CPU (kernel.sched_rt_runtime_us)"
        )),
        Ok(RealTimeLimit::FairServers) => Some(
            "a SCHED_FIFO thread that spins is stopped for a part of each second, 50 ms unless changed, if others wait \
             for its CPU (/sys/kernel/debug/sched/fair_server)"
                .into(),
        ),
        Ok(RealTimeLimit::None) => Some(
            "nothing stops a SCHED_FIFO thread that spins: what else needs its CPU starves, the kernel's own threads \
             included"
                .into(),
        ),
        Err(_) => None,
    });
}

/// Where nobody sleeps the limit changes nothing, and says nothing of how long a wake-up takes.
fn about_sleep(tree: &Tree, notes: &mut Vec<String>) {
    let driver = tree.text("sys/devices/system/cpu/cpuidle/current_driver");
    if driver.is_ok_and(|driver| driver == "none") {
        notes.push(
            "the kernel knows no sleep states here, so the limit on the wake-up changes nothing: in a virtual machine \
             the host puts its CPUs to sleep, and takes some 30 µs and more to wake them"
                .into(),
        );
    }
}
