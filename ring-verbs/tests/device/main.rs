//! Tests on a real device: the one that the environment variable `RING_VERBS_DEVICE` names.
//!
//! Those that lose packets, or take a port down, have two more, joined by a pair of veth interfaces `va` and `vb`:
//! `RING_VERBS_PAIR=rxea,rxeb`. They are left out without, and where this is not root.

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
    let has_device = rig::device_name().is_some();
    let is_root = has_device && child::is_root();
    let has_pair = is_root && rig::pair_names().is_some();
    let groups: &[(&str, bool, Tests)] = &[
        ("attacks", has_device, attacks::TESTS),
        ("connections", has_device, connections::TESTS),
        ("datagrams", has_device, datagrams::TESTS),
        ("driver", has_device, driver::TESTS),
        ("events", has_device, events::TESTS),
        ("handshake", has_device, handshake::TESTS),
        ("interop", has_device, interop::TESTS),
        ("lifetimes", has_device, lifetimes::TESTS),
        ("loss", has_pair, loss::TESTS),
        ("misuse", has_device, misuse::TESTS),
        ("refusals", has_device, refusals::TESTS),
        ("refusals", is_root, refusals::TESTS_OF_ROOT),
        ("refusals", has_pair, refusals::TESTS_OF_A_PAIR),
        ("shared", has_device, shared::TESTS),
        ("support", has_device, support::TESTS),
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
    if !has_device {
        eprintln!(
            "these tests need an RDMA device, named by RING_VERBS_DEVICE; `cargo xtask test` has one in a virtual machine"
        );
    }
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
