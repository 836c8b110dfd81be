//! `cargo xtask test`: every test there is, and one summary.

mod counts;
mod sanitizer;
mod verbs_cost;

use core::time::Duration;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Result;

use crate::loom::{self, mutants};
use crate::say::say;
use crate::step::{Outcome, Runner};
use crate::vm::{self, Machine};
use crate::workspace::Workspace;
use counts::Counts;
use sanitizer::{ADDRESS, LeftOut, THREAD};

/// How long the tests of verbs may take in the virtual machine, which is slow.
const VM_TIMEOUT: Duration = Duration::from_secs(1800);

/// Tests read this for the figures of a soak run.
const LONG: &str = "RING_LONG";

/// How long it may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Soak: the stress tests pass a hundred times as many messages
    #[arg(long)]
    long: bool,
    /// Whether it is a failure that the virtual machine cannot be had here.
    #[arg(skip)]
    is_vm_mandatory: bool,
}

impl Args {
    /// What CI asks for.
    pub(crate) fn ci() -> Self {
        Self { long: false, is_vm_mandatory: true }
    }
}

/// Runs every step, also after one has failed, and ends with a line `N passed, N failed, N skipped`.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut summary =
        Summary { workspace: &workspace, is_long: args.long, rows: Vec::new(), total: Counts::default() };

    summary.step("unit, integration and doc tests", Ok(native(&workspace, args.long)), &[], &[])?;
    summary.models()?;
    summary.mutants()?;
    for sanitizer in [&THREAD, &ADDRESS] {
        let command = sanitizer.tests(&workspace);
        summary.step(&sanitizer.title(), command, sanitizer.tests_left_out, sanitizer.crates_left_out)?;
    }
    summary.verbs_cost()?;
    summary.verbs(args.is_vm_mandatory)?;

    summary.print()?;
    Ok(if summary.total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The only step that soaks: the others would take hours. It does so in the code that users run.
fn native(workspace: &Workspace, long: bool) -> Command {
    let mut command = workspace.cargo();
    command.args(["test", "--workspace", "--all-features"]);
    if long {
        command.arg("--release").env(LONG, "1");
    }
    command
}

/// The programs that the tests in the guest start.
fn device_examples(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["build", "--package=ring-verbs", "--all-features", "--examples"]);
    command.env("CARGO_TARGET_DIR", workspace.target(""));
    command
}

/// Cargo starts each test program in a guest, on the devices that are named there.
fn device_tests(workspace: &Workspace) -> Result<Command> {
    let runner = serde_json::to_string(&vm::cargo_runner(VM_TIMEOUT)?)?;
    let mut command = workspace.cargo();
    command.arg("--config").arg(format!("target.x86_64-unknown-linux-gnu.runner={runner}"));
    command.args([
        "test",
        "--package=ring-verbs",
        "--package=ring-tune",
        "--all-features",
        "--test=device",
        "--test=own_machine",
        "--no-fail-fast",
        "--",
        "--test-threads=1",
    ]);
    // The runner is started in the crate's folder: a relative target folder would be another one there.
    command.env("CARGO_TARGET_DIR", workspace.target("")).env("RING_VERBS_DEVICE", "rxe0");
    command.env("RING_VERBS_PAIR", "rxea,rxeb").env("RING_TUNE_OWN_MACHINE", "1");
    Ok(command)
}

/// A step that could not even judge.
fn broken(name: &str, error: &anyhow::Error) -> Result<Counts> {
    say(format_args!("{name} FAILED\n\n{error:#}\n\n"))?;
    Ok(Counts { failed: 1, ..Counts::default() })
}

struct Summary<'a> {
    workspace: &'a Workspace,
    is_long: bool,
    rows: Vec<String>,
    total: Counts,
}

impl Summary<'_> {
    /// Runs a test runner to its end; in its place stands the reason where it cannot run here.
    fn step(
        &mut self,
        name: &str,
        command: Result<Command, String>,
        tests_left_out: &[LeftOut],
        crates_left_out: &[LeftOut],
    ) -> Result<()> {
        let mut runner = Runner::new(self.workspace, &format!("test {name}"))?;
        if self.is_long {
            runner = runner.patient();
        }
        let mut notes: Vec<String> = crates_left_out.iter().map(LeftOut::note).collect();
        let counts = match command {
            Ok(mut command) => {
                command.args(["--no-fail-fast", "--"]);
                for test in tests_left_out {
                    command.args(["--skip", test.name]);
                    notes.push(test.note());
                }
                let (counts, outcome) = Self::run(&runner, &mut command)?;
                if let Outcome::Failed(output) = outcome {
                    say(format_args!("{name} FAILED\n\n{}\n\n", output.trim_end()))?;
                }
                counts
            }
            Err(reason) => {
                notes.push(format!("skipped: {reason}"));
                Counts { skipped: 1, ..Counts::default() }
            }
        };

        self.add(name, counts, runner.seconds(), &notes);
        Ok(())
    }

    fn models(&mut self) -> Result<()> {
        let name = "loom models";
        let begin = Instant::now();
        let report = |line: &str| if line.starts_with("ok") { Ok(()) } else { say(format_args!("{line}\n")) };
        let counts = match loom::explore(&loom::cargo_test(self.workspace, None), |_| true, report) {
            Ok(explored) => Counts { passed: explored.passed, failed: explored.failed, skipped: 0 },
            Err(error) => broken(name, &error)?,
        };
        self.add(name, counts, begin.elapsed().as_secs_f64(), &[]);
        Ok(())
    }

    /// Some of the orderings, weakened: `cargo xtask loom --mutants` has them all.
    fn mutants(&mut self) -> Result<()> {
        let name = "orderings weakened, some of each ring";
        let begin = Instant::now();
        let report =
            |line: &str| if line.starts_with("killed") { Ok(()) } else { say(format_args!("{line}\n")) };
        let models = loom::cargo_test(self.workspace, None);
        let counts = match mutants::run(self.workspace, &models, None, true, report) {
            Ok(tally) => Counts { passed: tally.killed, failed: tally.survived, skipped: 0 },
            Err(error) => broken(name, &error)?,
        };
        self.add(name, counts, begin.elapsed().as_secs_f64(), &[]);
        Ok(())
    }

    /// The tests that need a device or a machine of their own, one after the other: they count what the driver has left.
    fn verbs(&mut self, is_mandatory: bool) -> Result<()> {
        let name = "verbs on soft-RoCE, tuning, in a virtual machine";
        let runner = Runner::new(self.workspace, &format!("test {name}"))?.patient();
        let (counts, outcome) = match Machine::get(self.workspace) {
            Ok(_) => {
                let built = runner.capture(&mut device_examples(self.workspace))?;
                if built.success {
                    Self::run(&runner, &mut device_tests(self.workspace)?)?
                } else {
                    (Counts { failed: 1, ..Counts::default() }, built.into())
                }
            }
            Err(error) if is_mandatory => (
                Counts { failed: 1, ..Counts::default() },
                Outcome::Failed(format!("the machine cannot be had: {error:#}")),
            ),
            Err(error) => {
                (Counts { skipped: 1, ..Counts::default() }, Outcome::Skipped(format!("{error:#}")))
            }
        };
        let mut notes = Vec::new();
        match outcome {
            Outcome::Passed => {}
            Outcome::Skipped(reason) => notes.push(format!("skipped: {reason}")),
            Outcome::Failed(output) => say(format_args!("{name} FAILED\n\n{}\n\n", output.trim_end()))?,
        }
        self.add(name, counts, runner.seconds(), &notes);
        Ok(())
    }

    /// Instructions, which are the same however busy the machine is.
    fn verbs_cost(&mut self) -> Result<()> {
        let name = "what ring-verbs adds to a send";
        let runner = Runner::new(self.workspace, &format!("test {name}"))?;
        let mut counts = Counts::default();
        let note = match verbs_cost::require() {
            Ok(()) => match verbs_cost::measure(self.workspace, &runner) {
                Ok(cost) => {
                    *(if cost.is_bounded() { &mut counts.passed } else { &mut counts.failed }) = 1;
                    cost.note()
                }
                Err(error) => {
                    counts.failed = 1;
                    say(format_args!("{name} FAILED\n\n{error:#}\n\n"))?;
                    "not measured".into()
                }
            },
            Err(reason) => {
                counts.skipped = 1;
                format!("skipped: {reason}")
            }
        };
        self.add(name, counts, runner.seconds(), &[note]);
        Ok(())
    }

    fn add(&mut self, name: &str, counts: Counts, seconds: f64, notes: &[String]) {
        let Counts { passed, failed, skipped } = counts;
        self.rows.push(format!("{name:<52} {passed:>6} {failed:>6} {skipped:>7} {seconds:>7.1}"));
        self.rows.extend(notes.iter().map(|note| format!("  {note}")));
        self.total += counts;
    }

    fn run(runner: &Runner, command: &mut Command) -> Result<(Counts, Outcome)> {
        let captured = runner.capture(command)?;
        let mut counts = Counts::read(&captured.output);
        let outcome = if captured.success && counts.passed == 0 {
            Outcome::Failed(format!("{}\nno test ran", captured.output))
        } else {
            captured.into()
        };
        // A step that does not compile, or is killed, has no line that says so.
        if matches!(outcome, Outcome::Failed(_)) {
            counts.failed = counts.failed.max(1);
        }
        Ok((counts, outcome))
    }

    fn print(&self) -> Result<()> {
        say(format_args!(
            "{:<52} {:>6} {:>6} {:>7} {:>7}\n",
            "step", "passed", "failed", "skipped", "seconds"
        ))?;
        self.rows.iter().try_for_each(|row| say(format_args!("{row}\n")))?;
        say(format_args!("{}\n", self.total))
    }
}
