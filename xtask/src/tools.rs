//! Programs from outside that some steps need.

use std::path::Path;
use std::process::{Command, Stdio};

/// Makes sure that a program can be started; installs its Debian package where that is possible.
///
/// # Errors
///
/// Why the program is not there, for the summary.
pub(crate) fn require(program: &str, package: &str) -> Result<(), String> {
    if works(program) {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!(
            "{program} is not installed; install the package that has it ({package} on Debian)"
        ));
    }
    if !is_root() {
        return Err(format!("{program} is not installed; run: sudo apt-get install {package}"));
    }
    install(&[package])?;
    if works(program) {
        Ok(())
    } else {
        Err(format!("{package} was installed, but {program} does not start"))
    }
}

/// Installs Debian packages; updates the lists where the first attempt fails.
///
/// # Errors
///
/// What to do by hand, for the summary.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let install = || apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
    if install() || (apt_get(&["update"]) && install()) {
        return Ok(());
    }
    Err(format!("apt-get could not install {}; is the network there?", packages.join(" ")))
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
    succeeds(&mut command)
}

fn works(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t0\t")))
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
