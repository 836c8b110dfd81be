//! The matrix as a picture.

use anyhow::anyhow;
use plotters::prelude::*;

use super::report::Report;

/// Of a cell; all else follows from it.
const CELL: i32 = 44;
const MARGIN: i32 = 64;

/// What the title takes.
const TITLE: u32 = 480;
const FONT: &str = "sans-serif";

/// Draws an SVG: a cell for each pair, the darker the slower, with the time in it.
pub(super) fn svg(report: &Report) -> anyhow::Result<String> {
    let mut text = String::new();
    let cells = i32::try_from(report.cpus.len())?;
    let side = u32::try_from(cells * CELL + 2 * MARGIN)?;
    draw(report, &SVGBackend::with_string(&mut text, (side.max(TITLE), side)).into_drawing_area())
        .map_err(|error| anyhow!("cannot draw the heat map: {error}"))?;
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(report: &Report, area: &Area<'_>) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    area.fill(&WHITE)?;
    let ways = || report.pairs.iter().map(|pair| pair.one_way_ns.p50);
    let (least, most) = (ways().fold(f64::INFINITY, f64::min), ways().fold(0.0, f64::max));
    let title = format!("one-way hand-over between CPUs, {least:.0} (white) to {most:.0} ns (blue)");
    area.draw(&Text::new(title, (8, 8), (FONT, 14)))?;
    let at = |place: usize| MARGIN + i32::try_from(place).unwrap_or(0) * CELL;
    for (row, &one) in report.cpus.iter().enumerate() {
        area.draw(&Text::new(one.to_string(), (MARGIN - 28, at(row) + CELL / 3), (FONT, 14)))?;
        area.draw(&Text::new(one.to_string(), (at(row) + CELL / 3, MARGIN - 20), (FONT, 14)))?;
        for (column, &other) in report.cpus.iter().enumerate() {
            let Some(way) = report.between(one, other) else { continue };
            let depth = if most > least { (way.p50 - least) / (most - least) } else { 0.0 };
            let corners = [(at(column), at(row)), (at(column) + CELL - 2, at(row) + CELL - 2)];
            area.draw(&Rectangle::new(corners, BLUE.mix(0.1 + 0.7 * depth).filled()))?;
            let place = (at(column) + 6, at(row) + CELL / 3);
            area.draw(&Text::new(format!("{:.0}", way.p50), place, (FONT, 12)))?;
        }
    }
    area.present()
}
