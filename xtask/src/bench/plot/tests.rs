use roxmltree::Document;

use super::*;
use crate::bench::plan::Scale;
use crate::bench::rounds::{Outcome, Tally};
use crate::bench::row;
use crate::bench::suites::Suite;

/// Rows of the suite with these figures, by strategy and gap.
fn rows(figure: impl Fn(usize, usize) -> Option<f64>) -> Vec<Row> {
    let scale = Scale { rounds: 1, quick: true, compare: false, at_most: None };
    let plan = Suite::Notify.plan(scale, true);
    let outcome = Outcome { tallies: vec![Tally::default(); plan.cases.len()], ..Outcome::default() };
    let mut rows = row::rows(&plan, &outcome);
    for (index, row) in rows.iter_mut().enumerate() {
        row.p50 = figure(index / GAPS.len(), index % GAPS.len());
        row.cpu_ns_per_message = row.p50;
    }
    rows
}

/// Lines through several points that have a strategy's colour.
fn lines(svg: &Document<'_>, strategy: usize) -> Vec<usize> {
    let RGBColor(red, green, blue) = COLOURS[strategy];
    let colour = format!("#{red:02X}{green:02X}{blue:02X}");
    let polylines = svg.descendants().filter(|node| node.has_tag_name("polyline"));
    let points = polylines
        .filter(|node| node.attribute("stroke") == Some(&colour))
        .map(|node| node.attribute("points").unwrap().split_whitespace().count());
    // What stands beside a name in the legend has two.
    points.filter(|&points| points > 2).collect()
}

#[test]
fn each_strategy_has_a_line_and_a_name_in_each_panel() {
    let text =
        svg(&rows(|strategy, gap| Some(50.0 * (strategy + 1) as f64 * 4_f64.powf(gap as f64)))).unwrap();
    let svg = Document::parse(&text).unwrap();
    assert!(svg.root_element().has_tag_name("svg"));
    for (index, (strategy, _)) in STRATEGIES.into_iter().enumerate() {
        assert_eq!(lines(&svg, index), [GAPS.len(); 2], "{strategy}");
        let names = svg.descendants().filter(|node| node.text().is_some_and(|text| text.trim() == strategy));
        assert_eq!(names.filter(|node| node.is_element()).count(), 2, "{strategy}");
    }
    for (gap, _) in GAPS {
        assert!(text.contains(&gap_label(gap_number(gap))), "{gap}");
    }
}

fn gap_number(gap: &str) -> f64 {
    GAPS.iter().position(|(known, _)| *known == gap).unwrap() as f64
}

#[test]
fn what_is_missing_or_nothing_has_no_point() {
    let text = svg(&rows(|strategy, gap| match (strategy, gap) {
        (0, 0) => None,
        (1, 0) => Some(0.0),
        (2, _) => None,
        _ => Some(1_000.0),
    }))
    .unwrap();
    let svg = Document::parse(&text).unwrap();
    assert_eq!(lines(&svg, 0), [GAPS.len() - 1; 2]);
    assert_eq!(lines(&svg, 1), [GAPS.len() - 1; 2]);
    assert!(lines(&svg, 2).is_empty());
    assert_eq!(lines(&svg, 3), [GAPS.len(); 2]);
}

#[test]
fn rows_that_are_not_there_leave_an_empty_plot() {
    Document::parse(&svg(&[]).unwrap()).unwrap();
}

#[test]
fn axes_are_labelled_in_units() {
    assert_eq!(
        (time_label(100.0), time_label(10_000.0), time_label(1e7)),
        ("100 ns".into(), "10 µs".into(), "10 ms".into())
    );
    assert_eq!((gap_label(0.0), gap_label(1.0), gap_label(5.0)), ("0".into(), "1 µs".into(), "10 ms".into()));
    assert_eq!(gap_label(0.5), "", "between two gaps");
}
