//! Runs an example of the package, which cargo has built beside its tests.

use std::path::PathBuf;
use std::process::Command;

use crate::common::skip;

/// What an example prints. None, and said so: it is not built, since cargo was asked for this test alone.
pub(crate) fn run(test: &str, example: &str) -> Option<String> {
    // .../target/PROFILE/deps/examples-HASH
    let this = std::env::current_exe().unwrap();
    let folder: PathBuf = this.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(example);
    if !program.exists() {
        skip(
            test,
            "cargo builds examples with all tests of a package and all features, not with this test alone",
        );
        return None;
    }
    let output = Command::new(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}, having said {text:?} and {error:?}", output.status);
    Some(text)
}
