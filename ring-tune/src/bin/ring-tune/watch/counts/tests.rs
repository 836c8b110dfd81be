use super::*;

fn counts(groups: &[(Whose, &[(&str, u64)])]) -> Counts {
    let mut counts = Counts::default();
    for (whose, list) in groups {
        let group = counts.of(whose.clone());
        list.iter().for_each(|&(name, count)| group.add(name, Some(count)));
    }
    counts
}

fn flat(groups: &[Group]) -> Vec<(Whose, &str, u64)> {
    let counts = groups.iter().flat_map(|group| group.counts.iter().map(move |count| (group, count)));
    counts.map(|(group, count)| (group.whose.clone(), count.name.as_str(), count.count)).collect()
}

#[test]
fn what_changed_is_told_and_nothing_goes_back() {
    let device = || Whose::Device("mlx5_0".into());
    let before = counts(&[(device(), &[("same", 5), ("more", 1), ("reset", u64::MAX), ("gone", 9)])]);
    let after = counts(&[(device(), &[("same", 5), ("more", u64::MAX), ("reset", 3), ("new", 2)])]);
    assert_eq!(flat(&after.since(&before)), [(device(), "more", u64::MAX - 1)]);
}

#[test]
fn devices_that_go_are_named() {
    let device = |name: &str| Whose::Device(name.into());
    let before = counts(&[(device("eth0"), &[]), (Whose::Cpu(1), &[]), (device("mlx5_0"), &[("drops", 1)])]);
    let after = counts(&[(device("mlx5_0"), &[("other", 1)]), (device("eth1"), &[])]);
    assert_eq!(after.devices_gone(&before).collect::<Vec<_>>(), ["eth0"]);
    assert_eq!(before.devices_gone(&after).collect::<Vec<_>>(), ["eth1"]);
}

#[test]
fn only_a_new_thread_counts_from_nothing() {
    let thread = |start| Whose::Thread { id: 7, start };
    let before = counts(&[(thread(1), &[("faults", 90)])]);
    let after = counts(&[
        (thread(2), &[("faults", 3)]),
        (Whose::Cpu(1), &[("timer", 1_000_000)]),
        (Whose::Device("eth0".into()), &[("rx_dropped", 12)]),
    ]);
    assert_eq!(flat(&after.since(&before)), [(thread(2), "faults", 3)]);
}

#[test]
fn the_same_name_of_another_kind_is_another_counter() {
    let kinds = |ethtool| {
        let mut counts = Counts::default();
        let group = counts.of(Whose::Machine);
        group.add("rx_dropped", Some(u64::MAX));
        group.add_kind("ethtool", "rx_dropped", Some(ethtool));
        counts
    };
    let changed = kinds(7).since(&kinds(4));
    assert_eq!(flat(&changed), [(Whose::Machine, "rx_dropped", 3)]);
    assert_eq!(changed[0].counts[0].full_name(), "ethtool rx_dropped");
}
