//! What test runners report.

use core::fmt;
use core::ops::AddAssign;

/// Numbers of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Ignored tests, tests that were left out or found that they cannot run here, and steps that cannot.
    pub(super) skipped: u64,
}

/// The name of the other process of a test, which that test starts: to the runner a test that is ignored.
const PEER: &str = "child";

/// How a test says that it cannot run here. Its runner takes it for passed.
const SKIPPED: &str = "SKIPPED ";

impl Counts {
    /// Sums the `test result:` lines of everything that a runner printed.
    pub(super) fn read(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines().filter(|line| line.starts_with("test result:")) {
            let number_before = |word: &str| {
                let (before, _) = line.split_once(word)?;
                before.split_whitespace().last()?.parse::<u64>().ok()
            };
            counts += Self {
                passed: number_before(" passed;").unwrap_or(0),
                failed: number_before(" failed;").unwrap_or(0),
                skipped: number_before(" ignored;").unwrap_or(0)
                    + number_before(" filtered out;").unwrap_or(0),
            };
        }
        let lines = |is_one: fn(&str) -> bool| output.lines().filter(|line| is_one(line)).count() as u64;
        let skipped = lines(|line| line.starts_with(SKIPPED)).min(counts.passed);
        counts.passed -= skipped;
        counts.skipped = counts.skipped.saturating_sub(lines(is_peer)) + skipped;
        counts
    }
}

fn is_peer(line: &str) -> bool {
    let name = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ignored"));
    name.is_some_and(|(name, _)| name.rsplit("::").next() == Some(PEER))
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(formatter, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_result_lines_are_summed() {
        let output = "\
            running 3 tests\n\
            test a ... ok\n\
            test result: FAILED. 2 passed; 1 failed; 3 ignored; 0 measured; 4 filtered out; finished in 6.06s\n\
            \n\
            Doc-tests ring_core\n\
            test result: ok. 18 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.07s\n";
        assert_eq!(Counts::read(output), Counts { passed: 20, failed: 1, skipped: 7 });
    }

    #[test]
    fn the_other_process_of_a_test_is_no_test() {
        let output = "\
            test child ... ignored, the other process\n\
            test socket::tests::child ... ignored, the other process\n\
            test grandchild ... ignored\n\
            test result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(Counts::read(output), Counts { passed: 1, failed: 0, skipped: 1 });
    }

    #[test]
    fn a_test_that_says_that_it_is_skipped_has_not_passed() {
        let output = "\
            running 3 tests\n\
            test of_root ... \n\
            SKIPPED a full /dev/shm: only root can mount a small one\n\
            ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(Counts::read(output), Counts { passed: 2, failed: 0, skipped: 2 });
    }

    #[test]
    fn what_does_not_compile_has_no_tests() {
        assert_eq!(Counts::read("error: could not compile `ring-core`\n"), Counts::default());
    }

    #[test]
    fn the_last_line_is_what_ci_reads() {
        let counts = Counts { passed: 12, failed: 0, skipped: 1 };
        assert_eq!(counts.to_string(), "12 passed, 0 failed, 1 skipped");
    }
}
