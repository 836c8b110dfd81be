//! The examples that start all their processes do what they say.

mod common;
#[path = "common/examples.rs"]
mod program;

use program::run;

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
