//! The plot of the suite `notify`: latency and CPU time over the gap between messages, a line a strategy.

#[cfg(test)]
mod tests;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::row::Row;
use super::suites::notify::{GAPS, STRATEGIES};

const WIDTH: u32 = 1_280;
const HEIGHT: u32 = 560;
const FONT: &str = "sans-serif";

/// Told apart by those who see no difference between red and green.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// One half of the plot.
struct Panel {
    title: &'static str,
    value: fn(&Row) -> Option<f64>,
}

const PANELS: [Panel; 2] = [
    Panel { title: "one-way latency, p50", value: |row| row.p50 },
    Panel { title: "CPU time of the receiver, per message", value: |row| row.cpu_ns_per_message },
];

/// Draws an SVG.
pub(crate) fn svg(rows: &[Row]) -> Result<String> {
    let mut text = String::new();
    draw(rows, SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area())
        .map_err(|error| anyhow!("cannot draw the plot: {error}"))?;
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn draw(rows: &[Row], area: Area<'_>) -> Drawn {
    area.fill(&WHITE)?;
    for (panel, area) in PANELS.iter().zip(area.split_evenly((1, PANELS.len()))) {
        panel.draw(rows, &area)?;
    }
    area.present()
}

impl Panel {
    fn draw(&self, rows: &[Row], area: &Area<'_>) -> Drawn {
        let lines = STRATEGIES.map(|(strategy, _)| (strategy, self.points(rows, strategy)));
        let values = || lines.iter().flat_map(|(_, points)| points).map(|&(_, value)| value);
        // Whole powers of ten around all values.
        let lowest = 10_f64.powf(values().fold(1_000.0, f64::min).log10().floor());
        let highest = 10_f64.powf(values().fold(1_000.0, f64::max).log10().ceil());
        let last = GAPS.len() - 1;

        // Gaps are powers of ten, so their numbers are their logarithms; that of no gap is put one step before.
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, (FONT, 24))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(-0.2..last as f64 + 0.2, (lowest..highest).log_scale())?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .x_labels(GAPS.len())
            .x_label_formatter(&|&position| gap_label(position))
            .y_label_formatter(&|&ns| time_label(ns))
            .x_desc("gap between messages (0: due once the one before was taken)")
            .label_style((FONT, 18))
            .draw()?;
        for ((strategy, points), colour) in lines.into_iter().zip(COLOURS) {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(strategy)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 18))
            .draw()
    }

    /// What a strategy has at each gap, by the gap's number. A logarithm has no place for 0.
    fn points(&self, rows: &[Row], strategy: &str) -> Vec<(f64, f64)> {
        let value = |gap: &str| {
            let row = rows.iter().find(|row| row.case == format!("{strategy}/{gap}"))?;
            (self.value)(row).filter(|&value| value > 0.0)
        };
        let gaps = GAPS.into_iter().enumerate();
        gaps.filter_map(|(number, (gap, _))| Some((number as f64, value(gap)?))).collect()
    }
}

fn gap_label(position: f64) -> String {
    let gap = GAPS.iter().enumerate().find(|(number, _)| (*number as f64 - position).abs() < 0.01);
    gap.map_or(String::new(), |(_, &(_, ns))| if ns == 0 { "0".into() } else { time_label(ns as f64) })
}

fn time_label(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{} µs", ns / 1e3),
        ns => format!("{ns} ns"),
    }
}
