use super::*;

#[test]
fn the_count_is_read_from_what_callgrind_says() {
    let said =
        "==7== \n==7== Events    : Ir\n==7== Collected : 1053291\n==7== \n==7== I   refs:      1,053,291\n";
    assert_eq!(collected(said), Some(1_053_291));
    assert_eq!(collected("==7== Events    : Ir\n"), None);
}

#[test]
fn what_a_message_costs_more_is_bounded_and_told() {
    let cost = Cost { untracked: 93.0, tracked: 153.0 };
    assert!(cost.is_bounded());
    assert_eq!(cost.note(), "instructions a message: C 93.0, ring-verbs 153.0: 60.0 more, at most 60");
    assert!(!Cost { tracked: 153.5, ..cost }.is_bounded());
}
