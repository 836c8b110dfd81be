//! The plan as settings of this process.

use ring_tune::{CpuSet, Error, Fifo, LatencyLimit, Topology, allowed_cpus, pin_to_set, set_memory_policy};

use super::plan::Plan;

/// Does as much of the plan as can be done, and returns what cannot; it holds for the program that this process becomes.
pub(super) fn apply(plan: &Plan) -> Vec<Error> {
    let steps = [
        plan.policy.map_or(Ok(()), set_memory_policy),
        LatencyLimit::hold(plan.latency_limit_us).and_then(LatencyLimit::keep_through_exec),
        pin_to_set(&plan.cpus),
        // Last, so that nothing of the above is done with a priority that starves others.
        plan.fifo.map_or(Ok(()), |priority| Fifo::begin(priority).map(Fifo::keep)),
    ];
    steps.into_iter().filter_map(Result::err).collect()
}

/// The CPUs that this process may run on: those of its affinity, and isolated ones, which a shell's affinity leaves out,
/// as far as its cpuset has them.
pub(super) fn reachable_cpus(topology: &Topology) -> Result<CpuSet, Error> {
    let allowed = allowed_cpus()?;
    let wished = allowed.union(topology.isolated());
    if wished == allowed {
        return Ok(allowed);
    }
    let reachable = match pin_to_set(&wished) {
        // The kernel has narrowed the set to the cpuset.
        Ok(()) | Err(Error::PinThreadNotInEffect { .. }) => allowed_cpus(),
        Err(_) => Ok(allowed.clone()),
    };
    // Where the plan's CPUs cannot be had, the command keeps those of its starter.
    let _ = pin_to_set(&allowed);
    reachable
}
