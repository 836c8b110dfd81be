//! Tests on a real device: the one that the environment variable `RING_VERBS_DEVICE` names.
//!
//! Where it names none there is no test here. Those that lose packets, or take a port down, have two more devices, joined
//! by a pair of veth interfaces `va` and `vb`: `RING_VERBS_PAIR=rxea,rxeb`. They are ignored without, and where this is
//! not root.

mod attacks;
mod child;
mod connections;
mod datagrams;
mod driver;
mod events;
mod handshake;
mod interop;
mod lifetimes;
mod loss;
mod misuse;
mod objects;
mod refusals;
mod rig;
mod shared;
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Names of tests, and what they run.
pub(crate) type Tests = &'static [(&'static str, fn())];

fn main() -> ExitCode {
    if child::was_one() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    if rig::device_name().is_none() {
        eprintln!(
            "these tests need an RDMA device, named by RING_VERBS_DEVICE; `cargo xtask test` has one in a virtual machine"
        );
        return ExitCode::SUCCESS;
    }
    let is_root = child::is_root();
    let has_pair = is_root && rig::pair_names().is_some();
    let groups: &[(&str, bool, Tests)] = &[
        ("attacks", true, attacks::TESTS),
        ("connections", true, connections::TESTS),
        ("datagrams", true, datagrams::TESTS),
        ("driver", true, driver::TESTS),
        ("events", true, events::TESTS),
        ("handshake", true, handshake::TESTS),
        ("interop", true, interop::TESTS),
        ("lifetimes", true, lifetimes::TESTS),
        ("loss", has_pair, loss::TESTS),
        ("misuse", true, misuse::TESTS),
        ("refusals", true, refusals::TESTS),
        ("refusals", is_root, refusals::TESTS_OF_ROOT),
        ("refusals", has_pair, refusals::TESTS_OF_A_PAIR),
        ("shared", true, shared::TESTS),
        ("support", true, support::TESTS),
    ];
    let trials = groups.iter().flat_map(|(group, is_here, tests)| {
        tests.iter().map(move |(name, test)| {
            let run = || {
                test();
                Ok(())
            };
            Trial::test(format!("{group}::{name}"), run).with_ignored_flag(!is_here)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
