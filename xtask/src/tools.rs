//! Programs from outside that some steps need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

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

/// Downloads packages and what they need, for [`private_apt`].
pub(crate) const WITH_DEPENDENCIES: [&str; 5] =
    ["install", "--download-only", "--reinstall", "--yes", "--no-install-recommends"];

/// `apt-get` or `apt-cache` with lists and packages in a folder of their own, so that the machine's stay as they are and
/// nobody need be root.
pub(crate) fn private_apt(
    folder: &Path,
    architecture: &str,
    program: &str,
    arguments: &[&str],
) -> Result<Command> {
    let (lists, cache) = (folder.join("lists").join(architecture), folder.join("cache").join(architecture));
    let packages = private_packages(folder, architecture);
    fs::create_dir_all(lists.join("partial"))?;
    fs::create_dir_all(packages.join("partial"))?;
    let mut command = Command::new(program);
    command.current_dir(packages);
    command.arg("-oDebug::NoLocking=true");
    command.arg(format!("-oDir::State::Lists={}", lists.display()));
    command.arg(format!("-oDir::Cache={}", cache.display()));
    command.arg(format!("-oAPT::Architecture={architecture}"));
    command.arg(format!("-oAPT::Architectures={architecture}"));
    command.args(arguments);
    Ok(command)
}

/// Where [`private_apt`] leaves packages.
pub(crate) fn private_packages(folder: &Path, architecture: &str) -> PathBuf {
    folder.join("cache").join(architecture).join("archives")
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
    succeeds(&mut command)
}

fn works(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

/// Whether packages can be installed.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t0\t")))
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
