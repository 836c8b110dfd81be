//! `cargo xtask arm`: what can be known of 64-bit Arm on another machine.
//!
//! The code compiles and layouts agree. The emulator does not reorder memory, so loom stays the judge of orderings.

mod toolchain;

use std::process::Command;

use anyhow::{Result, bail};

use crate::say::say;
use crate::step::{Captured, Runner};
use crate::workspace::Workspace;
use toolchain::Toolchain;

/// Tests that need nothing but threads: the emulator does not follow into a process that is started.
const TESTS: [(&str, &[&str]); 2] = [
    ("tests under QEMU", &["--package=ring-core", "--package=ring-tune", "--lib", "--tests"]),
    ("tests of waiting under QEMU", &["--package=ring-notify", "--lib", "--test=threads"]),
];

/// Gets a toolchain where there is none yet, runs the tests under QEMU, and builds ring-core for bare metal.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::find()?;
    let toolchain = Toolchain::get(&workspace, &Runner::new(&workspace, "arm toolchain")?)?;

    let mut failed = false;
    let tests = TESTS.map(|(name, which)| (name, tests(&workspace, &toolchain, which)));
    for (name, mut command) in tests.into_iter().chain([("bare metal", bare_metal(&workspace, &toolchain))]) {
        let runner = Runner::new(&workspace, &format!("arm {name}"))?;
        let Captured { success, output } = runner.capture(&mut command)?;
        let seconds = runner.seconds();
        if success {
            for line in output.lines().filter(|line| line.starts_with("test result:")) {
                say(format_args!("  {line}\n"))?;
            }
            say(format_args!("{name:<40} ok       {seconds:6.1} s\n"))?;
        } else {
            failed = true;
            say(format_args!("{name:<40} FAILED   {seconds:6.1} s\n\n{output}\n"))?;
        }
    }
    if failed { bail!("64-bit Arm") } else { Ok(()) }
}

fn tests(workspace: &Workspace, toolchain: &Toolchain, which: &[&str]) -> Command {
    let mut command = toolchain.cargo(workspace);
    command.args(["test", "--all-features", "--target", toolchain::HOSTED]).args(which);
    // Emulated code is slow enough.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
    command
}

/// Builds core itself as well, since nobody ships it for this target here.
fn bare_metal(workspace: &Workspace, toolchain: &Toolchain) -> Command {
    let mut command = toolchain.cargo(workspace);
    command.args(["build", "-Zbuild-std=core", "--package=ring-core", "--target", "aarch64-unknown-none"]);
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}
