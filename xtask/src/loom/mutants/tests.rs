use std::path::Path;

use super::*;

const TEXT: &str = "\
fn f(x: &AtomicU64) {
    // ORDERING: Release (R1): …
    x.store(1, Ordering::Release);
    // ORDERING: Release (R2): … Unmodelled: shown by a litmus test.
    x.store(2, Ordering::Release);
    // ORDERING: Relaxed: …
    x.load(Ordering::Relaxed);
    let _ = x.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Acquire);
    x.compare_exchange(
        1,
        2,
        Ordering::Release,
        Ordering::Relaxed,
    );
    sync::fence(Ordering::Acquire);
}
";

fn places(quick: bool) -> (Vec<String>, u64) {
    let source = Source::parse(Path::new("spsc/producer.rs"), TEXT).unwrap();
    let shim = Source::parse(Path::new("sync/atomic.rs"), TEXT).unwrap();
    let (mutants, exempt) = find(&[source, shim], quick);
    let place =
        |mutant: &Mutant| mutant.place.trim_start_matches("ring-core/src/spsc/producer.rs:").to_owned();
    (mutants.iter().map(place).collect(), exempt)
}

#[test]
fn each_ordering_that_says_more_than_relaxed_is_found_where_the_call_stands() {
    assert_eq!(places(false), (["3:7:0", "8:15:0", "8:15:1", "9:7:0", "15:5:0"].map(Into::into).to_vec(), 1));
}

#[test]
fn a_quick_run_has_one_of_each_sort() {
    assert_eq!(places(true).0, ["3:7:0", "8:15:0", "8:15:1"]);
}

/// A program that says what a test runner would.
fn fate_of(says: &str) -> Fate {
    let mut child = Command::new("printf").arg(says).stdout(Stdio::piped()).spawn().unwrap();
    let fate = watch(&mut child).unwrap();
    child.wait().unwrap();
    fate
}

#[test]
fn a_model_that_fails_kills_and_an_end_in_the_middle_as_well() {
    let passed = "test a::b ... ok\n";
    let end = "test result: ok. 1 passed; 0 failed\n";
    assert_eq!(fate_of(&format!("{passed}{end}")), Fate::Survived);
    assert_eq!(fate_of(&format!("{passed}test a::c ... FAILED\n{end}")), Fate::Killed("a::c".into()));
    assert_eq!(fate_of(passed), Fate::Killed("an abort".into()));
    let mut child = Command::new("printf").arg(end).stdout(Stdio::piped()).spawn().unwrap();
    assert!(watch(&mut child).is_err(), "no model ran");
    child.wait().unwrap();
}
