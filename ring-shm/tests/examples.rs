//! The examples that start all their processes do what they say.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::skip;

/// What an example prints. None, and said so: it is not built, since cargo was asked for this test alone.
fn run(test: &str, example: &str) -> Option<String> {
    // .../target/PROFILE/deps/examples-HASH
    let this = std::env::current_exe().unwrap();
    let folder: PathBuf = this.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(example);
    if !program.exists() {
        skip(test, "cargo builds the examples with all tests of the package, not with this one alone");
        return None;
    }
    let output = Command::new(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}, having said {text:?} and {error:?}", output.status);
    Some(text)
}

#[test]
fn a_price_feed_has_three_readers() {
    let Some(text) = run("a_price_feed_has_three_readers", "price_feed") else { return };
    let sums: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("saw "))
        .map(|line| {
            let (seen, missed) = line.split_once(" prices, missed ").unwrap();
            seen.parse::<u64>().unwrap() + missed.parse::<u64>().unwrap()
        })
        .collect();
    assert_eq!(sums.len(), 3, "{text}");
    // One that starts late sees fewer.
    assert!(sums.iter().all(|sum| *sum <= 1_000_000) && sums.iter().any(|sum| *sum > 0), "{text}");
}

#[test]
fn an_order_gateway_loses_no_order_when_a_client_is_killed() {
    let test = "an_order_gateway_loses_no_order_when_a_client_is_killed";
    let Some(text) = run(test, "order_gateway") else { return };
    assert!(text.contains("of the others: [100000, 100000, 100000]"), "{text}");
}

#[test]
fn a_log_shipper_loses_no_line_when_it_is_killed() {
    let Some(text) = run("a_log_shipper_loses_no_line_when_it_is_killed", "log_shipper") else { return };
    assert!(text.starts_with("200000 lines arrived, "), "{text}");
}

#[test]
fn a_handover_brings_all_messages() {
    let Some(text) = run("a_handover_brings_all_messages", "handover") else { return };
    assert!(text.contains("the numbers add up to 4999950000"), "{text}");
    assert!(text.contains("has the consumer"), "{text}");
}
