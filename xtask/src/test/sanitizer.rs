//! The sanitizers that come with the stable toolchain, unlocked.
//!
//! Doc tests are left out: they would be built without the flags. ThreadSanitizer does not see through mappings
//! that two processes share and ignores stand-alone fences, so it gets the tests of rings between threads.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// One of them, and what it gets.
pub(super) struct Sanitizer {
    title: &'static str,
    /// The compiler's name for it.
    name: &'static str,
    /// The variable in the environment that the sanitizer reads, and what it finds there.
    options: (&'static str, &'static str),
    /// Reports that are known to be false, in the sanitizer's own words.
    suppressions: &'static str,
    crates: &'static [&'static str],
    /// Crates that have tests of threads or of memory, and find nothing under it.
    pub(super) crates_left_out: &'static [LeftOut],
    /// Tests that cannot pass under it or find nothing.
    pub(super) tests_left_out: &'static [LeftOut],
}

/// What a step passes over.
pub(super) struct LeftOut {
    /// Of a crate, or what the names of tests have in them.
    pub(super) name: &'static str,
    reason: &'static str,
}

impl LeftOut {
    /// For the summary.
    pub(super) fn note(&self) -> String {
        format!("left out: {}: {}", self.name, self.reason)
    }
}

/// Finds data races.
pub(super) const THREAD: Sanitizer = Sanitizer {
    title: "ThreadSanitizer",
    name: "thread",
    options: ("TSAN_OPTIONS", ""),
    // The standard library is not built with the sanitizer: the channel on which the test harness waits, the
    // fence in the drop of an Arc, and the lazy cell of proptest's configuration are edges that it does not see.
    suppressions: "race:test::event::CompletedTest\nrace:<alloc::sync::Arc<*> as core::ops::drop::Drop>::drop\n\
        race:proptest::test_runner::config\n",
    crates: &["ring-core", "ring-verbs"],
    crates_left_out: &[LeftOut {
        name: "ring-notify",
        reason: "waiting is ordered by stand-alone fences and system calls, which the sanitizer does not see",
    }],
    // These are most of its time, and AddressSanitizer has them.
    tests_left_out: &[
        LeftOut { name: "behaves_as_a_queue", reason: ONE_THREAD },
        LeftOut { name: "each_consumer_sees_all_or_learns_what_it_lost", reason: ONE_THREAD },
        LeftOut { name: "a_hostile_peer_only_spoils_messages", reason: ONE_THREAD },
    ],
};

const NEEDS_PROC: &str = "the sanitizer needs /proc itself";
const ONE_THREAD: &str = "in a single thread there is no race to find";

/// Finds accesses outside of what is allocated. Tests leak handles on purpose, as a killed process does.
pub(super) const ADDRESS: Sanitizer = Sanitizer {
    title: "AddressSanitizer",
    name: "address",
    options: ("ASAN_OPTIONS", "detect_leaks=0"),
    suppressions: "",
    crates: &["ring-core", "ring-notify", "ring-shm", "ring-verbs"],
    crates_left_out: &[],
    tests_left_out: &[
        LeftOut {
            name: "the_limit_on_locked_memory_is_told_apart",
            reason: "the sanitizer replaces mlock with nothing",
        },
        LeftOut { name: "no_proc", reason: NEEDS_PROC },
        LeftOut { name: "without_proc", reason: NEEDS_PROC },
        LeftOut { name: "_is_killed", reason: "the instructions stepped through are to be the ring's own" },
    ],
};

impl Sanitizer {
    /// What the summary calls its step.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.title, self.crates.join(", "))
    }

    /// The runner over the crates' unit and integration tests.
    ///
    /// # Errors
    ///
    /// Why this machine cannot run it, for the summary.
    pub(super) fn tests(&self, workspace: &Workspace) -> Result<Command, String> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
            return Err(format!("the recipe is for {TARGET}"));
        }
        let folder = workspace.target("xtask");
        let suppressions = folder.join(format!("{}-suppressions", self.name));
        let write = fs::create_dir_all(&folder).and_then(|()| fs::write(&suppressions, self.suppressions));
        write.map_err(|error| format!("cannot write {}: {error}", suppressions.display()))?;
        self.probe(&folder)?;

        let purpose = format!("{}-sanitizer", self.name);
        let mut command = workspace.cargo_with_flags(&self.flags().join(" "), &purpose);
        let (variable, options) = self.options;
        command.env(variable, format!("{options} suppressions='{}'", suppressions.display()));
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["test", "--lib", "--tests", "--all-features", "--target", TARGET]);
        command.args(self.crates.iter().map(|name| format!("--package={name}")));
        Ok(command)
    }

    fn flags(&self) -> [String; 2] {
        [format!("-Zsanitizer={}", self.name), "-Cunsafe-allow-abi-mismatch=sanitizer".into()]
    }

    /// Compiles and runs an empty program: toolchains differ in flags and in the run-time libraries they bring.
    fn probe(&self, folder: &Path) -> Result<(), String> {
        let (program, source) = (folder.join(format!("probe-{}", self.name)), folder.join("probe.rs"));
        fs::write(&source, "fn main() {}\n").map_err(|error| format!("cannot write a probe: {error}"))?;

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
