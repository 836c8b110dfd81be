use super::*;

fn group(whose: Whose, name: &str, counts: &[(&'static str, &str, u64)]) -> Group {
    let mut group = Group::new(whose, name.into());
    counts.iter().for_each(|&(kind, name, count)| group.add_kind(kind, name, Some(count)));
    group
}

#[test]
fn lines_stand_in_columns_below_a_header() {
    let mut table = Table::new();
    let tick = [
        group(Whose::Thread { id: 7, start: 1 }, "worker", &[("", "minor_faults", 30)]),
        group(Whose::Machine, "", &[("", "pgfault", u64::MAX)]),
    ];
    let text = table.tick(2.0, 2.0, &tick);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["at", "s", "whose", "what", "count", "a", "second"]
    );
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["2.00", "thread", "7", "worker", "minor_faults", "30", "15.0"]
    );
    assert_eq!(lines[1].find("minor_faults"), lines[2].find("pgfault"), "{text}");
    assert_eq!(table.tick(3.0, 1.0, &[]), "     3.00  nothing changed\n");
}

#[test]
fn the_header_comes_again() {
    let mut table = Table::new();
    let headers = (0..100).filter(|_| table.tick(0.0, 1.0, &[]).contains("whose"));
    assert_eq!(headers.collect::<Vec<_>>(), [0, 40, 80]);
    let wide = [group(Whose::Device("a device with a long name".into()), "", &[("", "drops", 1)])];
    assert!(table.tick(0.0, 1.0, &wide).contains("whose"), "the columns have moved");
}

#[test]
fn the_most_frequent_interrupts_are_shown_and_the_rest_is_summed() {
    let names = ["24", "25", "26", "27", "28", "29", "30"];
    let counts: Vec<_> = names.iter().zip(1..).map(|(name, count)| ("interrupt", *name, count)).collect();
    let shown = |counts: &[(&'static str, &str, u64)]| {
        let lines = lines(&group(Whose::Cpu(3), "", counts));
        lines.into_iter().map(|(_, what, count)| (what, count)).collect::<Vec<_>>()
    };
    let seven = shown(&counts);
    assert_eq!(seven.len(), 6);
    assert_eq!(seven[0], ("interrupt 30".into(), 7));
    assert_eq!(seven[5], ("interrupt of 2 others".into(), 3));
    assert_eq!(shown(&counts[..6]).last().unwrap(), &("interrupt 24".into(), 1));
    let most = [("interrupt", "24", u64::MAX); 7];
    assert_eq!(shown(&most)[5].1, u64::MAX, "no overflow");
}

#[test]
fn names_from_outside_cannot_move_the_cursor() {
    let hostile = "a\nb\u{1b}[2J\u{202e}";
    let groups = [
        group(Whose::Thread { id: 1, start: 1 }, hostile, &[("", "minor_faults", 1)]),
        group(Whose::Device(hostile.into()), "", &[("ethtool", hostile, 1)]),
    ];
    let text = Table::new().tick(1.0, 1.0, &groups);
    assert_eq!(text.lines().count(), 3, "{text:?}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert!(text.contains(r"a\nb\u{1b}[2J\u{202e}"), "{text:?}");
}
