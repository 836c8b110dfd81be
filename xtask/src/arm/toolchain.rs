//! A compiler, a linker, a C library and an emulator from Debian's packages, unpacked below the target folder.
//!
//! The packages are not installed: they would conflict with rustup's toolchain, and nobody need be root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::step::Runner;
use crate::tools;
use crate::workspace::Workspace;

/// The target with an operating system.
pub(super) const HOSTED: &str = "aarch64-unknown-linux-gnu";

/// What runs on this machine.
const PACKAGES: [&str; 6] = [
    "rustc-web",
    "rust-web-src",
    "libstd-rust-web-dev",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
];

/// The standard library for the other.
const FOREIGN_PACKAGE: &str = "libstd-rust-web-dev";

/// Where everything was unpacked.
#[derive(Debug)]
pub(super) struct Toolchain {
    root: PathBuf,
    /// Folders with shared libraries that its programs need.
    libraries: String,
}

impl Toolchain {
    /// Takes what an earlier run left, or downloads 280 MB.
    ///
    /// # Errors
    ///
    /// Where the machine is none that the packages are for, or the network is not there.
    pub(super) fn get(workspace: &Workspace, runner: &Runner) -> Result<Self> {
        ensure!(cfg!(all(target_arch = "x86_64", target_os = "linux")), "the recipe is for x86-64 hosts");
        let folder = workspace.target("arm");
        let complete = folder.join("complete");
        if !complete.exists() {
            for program in ["/usr/bin/apt-get", "/usr/bin/dpkg-deb"] {
                ensure!(
                    Path::new(program).exists(),
                    "the toolchain comes from Debian's packages: no {program}"
                );
            }
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            for mut command in downloads(&folder)? {
                let captured = runner.capture(&mut command)?;
                ensure!(captured.success, "cannot download the toolchain:\n{}", captured.output);
            }
            unpack(&folder, runner)?;
            fs::write(&complete, "")?;
        }
        Self::in_folder(&folder)
    }

    fn in_folder(folder: &Path) -> Result<Self> {
        let root = folder.join("root");
        let lib = root.join("usr/lib");
        let mut libraries = lib.join("x86_64-linux-gnu").display().to_string();
        for entry in fs::read_dir(&lib)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-")) {
                libraries.push_str(&format!(":{}", path.join("lib").display()));
            }
        }
        Ok(Self { root, libraries })
    }

    /// `cargo` with this compiler; builds go below the folder of the toolchain.
    pub(super) fn cargo(&self, workspace: &Workspace) -> Command {
        let program = |name: &str| self.root.join("usr/bin").join(name);
        let runner = format!(
            "{} -L {}",
            program("qemu-aarch64-static").display(),
            self.root.join("usr/aarch64-linux-gnu").display()
        );
        let prefix = format!("CARGO_TARGET_{}", HOSTED.to_uppercase().replace('-', "_"));

        let mut command = workspace.cargo();
        command.env("CARGO_TARGET_DIR", workspace.target("arm").join("build"));
        command.env("LD_LIBRARY_PATH", &self.libraries).env("RUSTC", program("rustc"));
        command.env(format!("{prefix}_LINKER"), program("aarch64-linux-gnu-gcc"));
        command.env(format!("{prefix}_RUSTFLAGS"), format!("-Clink-arg=--sysroot={}", self.root.display()));
        command.env(format!("{prefix}_RUNNER"), runner);
        command
    }
}

fn downloads(folder: &Path) -> Result<[Command; 4]> {
    let apt_get = |architecture: &str, arguments: &[&str]| {
        tools::private_apt(folder, architecture, "apt-get", arguments)
    };
    Ok([
        apt_get("amd64", &["update"])?,
        apt_get("amd64", &[tools::WITH_DEPENDENCIES.as_slice(), &PACKAGES].concat())?,
        apt_get("arm64", &["update"])?,
        apt_get("arm64", &["download", FOREIGN_PACKAGE])?,
    ])
}

fn unpack(folder: &Path, runner: &Runner) -> Result<()> {
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    for architecture in ["amd64", "arm64"] {
        for entry in fs::read_dir(tools::private_packages(folder, architecture))? {
            let package = entry?.path();
            if package.extension().is_some_and(|extension| extension == "deb") {
                let captured = runner.capture(Command::new("dpkg-deb").arg("-x").args([&package, &root]))?;
                ensure!(captured.success, "cannot unpack {}:\n{}", package.display(), captured.output);
            }
        }
    }
    // 280 MB that nobody needs again.
    fs::remove_dir_all(folder.join("cache"))?;
    Ok(())
}
