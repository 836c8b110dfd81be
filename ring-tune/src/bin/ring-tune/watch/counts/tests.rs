use super::*;

#[test]
fn what_changed_is_told_and_nothing_goes_back() {
    let counts = |list: &[(&str, u64)]| {
        let mut counts = Counts::default();
        list.iter().for_each(|&(name, count)| counts.add(name, count));
        counts
    };
    let before = counts(&[("same", 5), ("more", 1), ("reset", u64::MAX), ("gone", 9)]);
    let after = counts(&[("same", 5), ("more", u64::MAX), ("reset", 3), ("new", 2)]);
    assert_eq!(after.since(&before), [("more".into(), u64::MAX - 1), ("new".into(), 2)]);
}
