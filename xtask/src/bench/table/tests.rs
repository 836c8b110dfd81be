use super::*;

#[test]
fn names_stand_to_the_left_and_figures_to_the_right() {
    let mut table = Table::new(&["ns", "p50"]);
    table.push(vec!["floor".into(), "50.1".into()]);
    table.push(vec!["pipe".into(), "5,210".into()]);
    assert_eq!(table.to_string(), "  ns       p50\n  floor   50.1\n  pipe   5,210\n");
}

#[test]
fn times_have_the_digits_that_mean_something() {
    assert_eq!(time(None), "–");
    assert_eq!(time(Some(3.24)), "3.2");
    assert_eq!(time(Some(99.94)), "99.9");
    assert_eq!(time(Some(100.4)), "100");
    assert_eq!(time(Some(1_234_567.0)), "1,234,567");
}

fn row(case: &str, p9999: Option<f64>) -> Row {
    Row {
        suite: "pingpong",
        case: case.into(),
        unit: "ns",
        p50: Some(50.0),
        p90: None,
        p99: None,
        p999: None,
        p9999,
        max: None,
        mean: Some(51.0),
        samples: 1,
        rounds: 1,
        dropped_rounds: 0,
        ratio_to_floor: Some(1.0),
        ratio_min: Some(0.9),
        ratio_max: Some(1.1),
        ratio_to_spsc: None,
        ratio_to_spsc_min: None,
        ratio_to_spsc_max: None,
        cpu_ns_per_message: None,
        sender_cpu_ns_per_message: None,
        syscalls_per_message: None,
        sender_syscalls_per_message: None,
        switches_per_message: None,
        sender_switches_per_message: None,
    }
}

#[test]
fn p9999_has_a_column_only_where_somebody_has_one() {
    assert!(!of_rows(&[row("floor", None)]).to_string().contains("p99.99"));
    let table = of_rows(&[row("floor", None), row("spsc", Some(700.0))]).to_string();
    assert!(table.contains("p99.99") && table.contains("700"), "{table}");
    assert!(table.contains("1.00 [0.90–1.10]"), "{table}");
}

#[test]
fn what_was_used_stands_in_the_place_of_the_floor() {
    let waits = Row {
        cpu_ns_per_message: Some(28_400.0),
        syscalls_per_message: Some(2.0),
        switches_per_message: Some(0.999),
        ..row("futex/1ms", None)
    };
    let uncounted = Row { syscalls_per_message: None, ..waits.clone() };
    let table = of_rows(&[waits, uncounted]).to_string();
    assert!(table.contains("28,400   2.00      1.00\n") && !table.contains("floor"), "{table}");
    assert!(table.contains("28,400      –      1.00\n"), "{table}");
    assert!(!of_rows(&[row("spsc", None)]).to_string().contains("CPU"));
}
