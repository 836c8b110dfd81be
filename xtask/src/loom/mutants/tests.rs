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
    sync::fence(Ordering::Acquire);
    sync::light_fence();
}
";

fn places(quick: bool) -> (Vec<String>, u64) {
    let source = Source::parse(Path::new("spsc/producer.rs"), TEXT).unwrap();
    let shim = Source::parse(Path::new("sync/atomic.rs"), TEXT).unwrap();
    let (mutants, exempt) = find("ring-core", &[source, shim], quick);
    let place =
        |mutant: &Mutant| mutant.place.trim_start_matches("ring-core/src/spsc/producer.rs:").to_owned();
    (mutants.iter().map(place).collect(), exempt)
}

#[test]
fn each_ordering_that_says_more_than_relaxed_is_found_where_the_call_stands() {
    assert_eq!(
        places(false),
        (["3:7:0", "8:15:0", "8:15:1", "9:7:0", "15:5:0", "16:5:0", "17:5:0"].map(Into::into).to_vec(), 1)
    );
}

#[test]
fn a_quick_run_has_one_of_each_sort() {
    assert_eq!(places(true).0, ["3:7:0", "8:15:0", "8:15:1", "15:5:0", "17:5:0"]);
}

#[test]
fn a_mutant_says_what_becomes_of_it() {
    let source = Source::parse(Path::new("word.rs"), TEXT).unwrap();
    let (mutants, _) = find("ring-notify", &[source], false);
    let said: Vec<String> = mutants.iter().map(Mutant::to_string).collect();
    assert_eq!(said[0], "ring-notify/src/word.rs:3: Release -> Relaxed");
    assert_eq!(said[6], "ring-notify/src/word.rs:17: SeqCst -> no fence");
}
