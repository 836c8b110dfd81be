//! The sanitizers that come with the stable toolchain, unlocked.
//!
//! Doc tests are left out: they would be built without the flags. ThreadSanitizer does not see through mappings
//! that two processes share and ignores stand-alone fences, so it gets the tests of rings between threads.

use std::fs;
use std::process::Command;

use crate::workspace::Workspace;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A sanitizer by the compiler's name for it.
pub(super) struct Sanitizer {
    name: &'static str,
    /// The sanitizer's own options, in the environment.
    options: (&'static str, &'static str),
}

/// Finds data races.
pub(super) const THREAD: Sanitizer =
    Sanitizer { name: "thread", options: ("TSAN_OPTIONS", "halt_on_error=1") };

/// Finds accesses outside of what is allocated.
pub(super) const ADDRESS: Sanitizer =
    Sanitizer { name: "address", options: ("ASAN_OPTIONS", "detect_leaks=1") };

impl Sanitizer {
    /// The runner over the crates' unit and integration tests.
    ///
    /// # Errors
    ///
    /// Why this machine cannot run it, for the summary.
    pub(super) fn tests(&self, workspace: &Workspace, crates: &[&str]) -> Result<Command, String> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
            return Err(format!("the recipe is for {TARGET}"));
        }
        self.probe(workspace)?;
        let purpose = format!("{}-sanitizer", self.name);
        let mut command = workspace.cargo_with_flags(&self.flags().join(" "), &purpose);
        command.env("RUSTC_BOOTSTRAP", "1").env(self.options.0, self.options.1);
        command.args(["test", "--lib", "--tests", "--all-features", "--target", TARGET]);
        command.args(crates.iter().map(|name| format!("--package={name}")));
        Ok(command)
    }

    fn flags(&self) -> [String; 2] {
        [format!("-Zsanitizer={}", self.name), "-Cunsafe-allow-abi-mismatch=sanitizer".into()]
    }

    /// Compiles and runs an empty program: toolchains differ in flags and in the run-time libraries they bring.
    fn probe(&self, workspace: &Workspace) -> Result<(), String> {
        let folder = workspace.target("xtask");
        let (program, source) = (folder.join(format!("probe-{}", self.name)), folder.join("probe.rs"));
        let write = fs::create_dir_all(&folder).and_then(|()| fs::write(&source, "fn main() {}\n"));
        write.map_err(|error| format!("cannot write {}: {error}", source.display()))?;

        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut compile = Command::new(rustc);
        compile.env("RUSTC_BOOTSTRAP", "1").args(self.flags()).args(["--target", TARGET]);
        compile.arg("-o").arg(&program).arg(&source);
        for command in [&mut compile, &mut Command::new(&program)] {
            let output = command.output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let reason = said.lines().next().unwrap_or("it says nothing").to_owned();
                return Err(format!("this toolchain cannot build for the {} sanitizer: {reason}", self.name));
            }
        }
        Ok(())
    }
}
