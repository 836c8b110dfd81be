//! Programs without std that link the library crates and use them.
//!
//! A crate that uses std brings a second panic handler, and ring-core with `alloc` asks for an allocator that is
//! not there: either does not link.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::{Outcome, Runner};
use crate::workspace::Workspace;

/// The program that goes with a crate.
struct Program {
    name: &'static str,
    /// Other crates of the workspace that it uses.
    with: &'static [&'static str],
    main: &'static str,
    /// Whether a C library is there.
    hosted: bool,
}

const PROGRAMS: [Program; 5] = [
    Program { name: "ring-core", with: &[], main: include_str!("../../no-std/ring-core.rs"), hosted: false },
    Program {
        name: "ring-notify",
        with: &["ring-core"],
        main: include_str!("../../no-std/ring-notify.rs"),
        hosted: true,
    },
    Program {
        name: "ring-shm",
        with: &["ring-core"],
        main: include_str!("../../no-std/ring-shm.rs"),
        hosted: true,
    },
    Program { name: "ring-tune", with: &[], main: include_str!("../../no-std/ring-tune.rs"), hosted: true },
    Program { name: "ring-verbs", with: &[], main: include_str!("../../no-std/ring-verbs.rs"), hosted: true },
];

const BARE: &str = include_str!("../../no-std/bare.rs");
const HOSTED: &str = include_str!("../../no-std/hosted.rs");

/// Builds and runs the program of one library crate.
pub(super) fn check(workspace: &Workspace, runner: &Runner, name: &str) -> Result<Outcome> {
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else {
        return Ok(Outcome::Failed(format!("{name} has no program in xtask/no-std")));
    };
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Ok(Outcome::Skipped(
            "the programs know how to start and to end on x86-64 and AArch64".into(),
        ));
    }

    let folder = workspace.target("no-std").join(name);
    let build_folder = workspace.target("no-std").join("build");
    write_out(workspace, program, &folder)?;
    let built = runner.capture(&mut build(workspace, program, &folder, &build_folder))?;
    if !built.success {
        return Ok(built.into());
    }
    let executable = build_folder.join("release").join(format!("no-std-{name}"));
    Ok(runner.capture(&mut Command::new(executable))?.into())
}

/// Makes a package of its own, with the workspace's lock file so that the dependencies are the same.
fn write_out(workspace: &Workspace, program: &Program, folder: &Path) -> Result<()> {
    let Program { name, with, main, hosted } = program;
    let mut manifest = format!(
        "[package]\nname = \"no-std-{name}\"\nedition = \"2024\"\n\n\
         [profile.release]\npanic = \"abort\"\n\n[workspace]\n\n[dependencies]\n"
    );
    for dependency in [name].into_iter().chain(*with) {
        let path = workspace.root().join(dependency);
        manifest.push_str(&format!("{dependency} = {{ path = {path:?}, default-features = false }}\n"));
    }
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), main)?;
    let (module, text) = if *hosted { ("hosted", HOSTED) } else { ("bare", BARE) };
    fs::write(folder.join("src").join(module).with_extension("rs"), text)?;
    fs::copy(workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

fn build(workspace: &Workspace, program: &Program, folder: &Path, build_folder: &Path) -> Command {
    let mut command = workspace.cargo();
    command.args(["rustc", "--quiet", "--release", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(build_folder);
    if !program.hosted {
        command.args(["--", "-Crelocation-model=static"]);
        command
            .args(["-nostartfiles", "-nostdlib", "-static"].map(|argument| format!("-Clink-arg={argument}")));
    }
    command
}
