//! Puts charts on paper: three in a row, each with its title, axes, grid and lines.

use super::chart::{Chart, Charts, Series, Unit};
use super::legend;
use super::shape::{Anchor, Colour, Drawing, FAINT_INK, GRID, INK, Shape, colour, is_dashed, marker};
use super::ticks::Scale;

const COLUMNS: usize = 3;
const PANEL: (f64, f64) = (400.0, 270.0);
const HEAD: f64 = 78.0;
const EDGE: f64 = 18.0;
/// Inside a panel, around its plot: left, top, right, bottom.
const ROOM: (f64, f64, f64, f64) = (52.0, 48.0, 14.0, 40.0);
/// More iterations than this and the signs would hide the lines.
const MOST_MARKERS: usize = 40;

pub(super) fn draw(charts: &Charts) -> Drawing {
    let rows = charts.charts.len().div_ceil(COLUMNS);
    let title = "Over the iterations".to_owned();
    let mut shapes = vec![text((EDGE + 4.0, 30.0), &title, 19.0, INK, Anchor::Start, true)];
    shapes.extend(legend::draw(charts, EDGE + 4.0, 56.0));
    for (number, chart) in charts.charts.iter().enumerate() {
        let column = (number % COLUMNS) as f64;
        let row = (number / COLUMNS) as f64;
        let origin = (PANEL.0.mul_add(column, EDGE), PANEL.1.mul_add(row, HEAD));
        Panel::new(chart, origin).draw(&mut shapes);
    }
    Drawing {
        width: PANEL.0.mul_add(COLUMNS as f64, 2.0 * EDGE),
        height: PANEL.1.mul_add(rows as f64, HEAD + EDGE),
        title,
        shapes,
    }
}

struct Panel<'a> {
    chart: &'a Chart,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    across: Scale,
    up: Scale,
}

impl<'a> Panel<'a> {
    fn new(chart: &'a Chart, origin: (f64, f64)) -> Self {
        let iterations = || chart.series.iter().flat_map(|series| &series.iterations);
        let (first, last) = (iterations().min().copied(), iterations().max().copied());
        let values = chart.series.iter().flat_map(|series| &series.values).flatten();
        let highest = values.copied().fold(0.0, f64::max);
        Self {
            chart,
            left: origin.0 + ROOM.0,
            top: origin.1 + ROOM.1,
            width: PANEL.0 - ROOM.0 - ROOM.2,
            height: PANEL.1 - ROOM.1 - ROOM.3,
            across: Scale::whole(first.unwrap_or(0), last.unwrap_or(0), 6),
            up: match chart.unit {
                // Rates that are all small deserve to be seen, and never look larger than they are: the axis says so.
                Unit::Share if highest > 0.5 => Scale { low: 0.0, high: 1.0, step: 0.25 },
                Unit::Share => Scale::from_zero(highest.max(0.1), 4),
                Unit::Count => Scale::from_zero(highest, 4),
            },
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.across.part(value).mul_add(self.width, self.left)
    }

    fn y(&self, value: f64) -> f64 {
        (1.0 - self.up.part(value)).mul_add(self.height, self.top)
    }

    fn draw(&self, shapes: &mut Vec<Shape>) {
        let heading = (self.left - ROOM.0 + 6.0, self.top - 26.0);
        shapes.push(text(heading, self.chart.title, 15.0, INK, Anchor::Start, true));
        let below = (heading.0, self.top - 11.0);
        shapes.push(text(below, self.chart.explanation, 11.5, FAINT_INK, Anchor::Start, false));
        self.axes(shapes);
        if self.chart.series.is_empty() {
            let middle = (self.left + self.width / 2.0, self.top + self.height / 2.0);
            shapes.push(text(middle, "nothing measured", 13.0, FAINT_INK, Anchor::Middle, false));
        }
        // What is overall comes first and is drawn last, on top.
        for series in self.chart.series.iter().rev() {
            self.series(shapes, series);
        }
    }

    fn axes(&self, shapes: &mut Vec<Shape>) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for mark in self.up.marks() {
            let y = self.y(mark);
            let rule = if mark == 0.0 { FAINT_INK } else { GRID };
            shapes.push(stroke(vec![(self.left, y), (right, y)], rule, 1.0));
            let words = self.value_in_words(mark);
            shapes.push(text((self.left - 7.0, y + 4.0), &words, 11.5, FAINT_INK, Anchor::End, false));
        }
        for mark in self.across.marks() {
            let x = self.x(mark);
            shapes.push(stroke(vec![(x, bottom), (x, bottom + 4.0)], FAINT_INK, 1.0));
            let words = format!("{mark:.0}");
            shapes.push(text((x, bottom + 17.0), &words, 11.5, FAINT_INK, Anchor::Middle, false));
        }
        let middle = (self.left + self.width / 2.0, bottom + 33.0);
        shapes.push(text(middle, "iteration", 11.5, FAINT_INK, Anchor::Middle, false));
    }

    fn value_in_words(&self, value: f64) -> String {
        match self.chart.unit {
            Unit::Share if self.up.step < 0.00999 => format!("{:.1} %", value * 100.0),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Count if value >= 10_000.0 => format!("{:.0} k", value / 1000.0),
            Unit::Count if self.up.step < 1.0 => format!("{value:.1}"),
            Unit::Count => format!("{value:.0}"),
        }
    }

    fn series(&self, shapes: &mut Vec<Shape>, series: &Series) {
        let colour = colour(series.line);
        let is_dashed = is_dashed(series.split);
        let is_smoothed = series.smoothed.is_some();
        let mut line = |values: &[Option<f64>], width: f64, opacity: f64| {
            for points in self.runs(series, values) {
                if points.len() > 1 {
                    shapes.push(Shape::Stroke { points, colour, width, is_dashed, opacity });
                }
            }
        };
        if let Some(smoothed) = &series.smoothed {
            line(&series.values, 1.0, 0.35);
            line(smoothed, 2.2, 1.0);
        } else {
            line(&series.values, 2.0, 1.0);
        }
        let marked = series.smoothed.as_ref().unwrap_or(&series.values);
        let points: Vec<_> = self.runs(series, marked).concat();
        if points.len() <= MOST_MARKERS || !is_smoothed && points.len() <= 2 * MOST_MARKERS {
            shapes.extend(points.into_iter().map(|at| Shape::Marker {
                at,
                marker: marker(series.line),
                colour,
                is_hollow: is_dashed,
                opacity: 1.0,
            }));
        }
    }

    /// The points of a line, parted where there was nothing to measure.
    fn runs(&self, series: &Series, values: &[Option<f64>]) -> Vec<Vec<(f64, f64)>> {
        let mut runs = vec![Vec::new()];
        for (iteration, value) in series.iterations.iter().zip(values) {
            match (value, runs.last_mut()) {
                (Some(value), Some(run)) => run.push((self.x(*iteration as f64), self.y(*value))),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run: &Vec<_>| !run.is_empty());
        runs
    }
}

const fn stroke(points: Vec<(f64, f64)>, colour: Colour, width: f64) -> Shape {
    Shape::Stroke { points, colour, width, is_dashed: false, opacity: 1.0 }
}

fn text(at: (f64, f64), text: &str, size: f64, colour: Colour, anchor: Anchor, is_bold: bool) -> Shape {
    Shape::Text { at, text: text.to_owned(), size, colour, anchor, is_bold }
}
