//! Lays out the charts: three in a row, each with title, axes, grid and lines.

use super::chart::{Chart, Charts, Series, Unit, XAxis};
use super::legend;
use super::shapes::{Anchor, Colour, Drawing, GRID, MUTED, Shape, TEXT, colour, is_dashed, marker};
use super::ticks::Scale;

const COLUMNS: usize = 3;
/// Width and height of one chart.
const PANEL: (f64, f64) = (400.0, 270.0);
const HEADER_HEIGHT: f64 = 78.0;
const PAGE_MARGIN: f64 = 18.0;
/// Space between a panel and its plot: left, top, right, bottom.
const PLOT_MARGIN: (f64, f64, f64, f64) = (52.0, 48.0, 14.0, 40.0);
/// With more points than this, markers would hide the lines and are left out.
const MAX_MARKERS: usize = 40;

pub(super) fn draw(charts: &Charts) -> Drawing {
    let rows = charts.charts.len().div_ceil(COLUMNS);
    let title = title(charts);
    let mut shapes = vec![text((PAGE_MARGIN + 4.0, 30.0), &title, 19.0, TEXT, Anchor::Start, true)];
    shapes.extend(legend::draw(charts, PAGE_MARGIN + 4.0, 56.0));
    let x_axis = (charts.x, x_scale(charts));
    for (number, chart) in charts.charts.iter().enumerate() {
        let column = (number % COLUMNS) as f64;
        let row = (number / COLUMNS) as f64;
        let origin = (PANEL.0.mul_add(column, PAGE_MARGIN), PANEL.1.mul_add(row, HEADER_HEIGHT));
        Panel::new(chart, x_axis, origin).draw(&mut shapes);
    }
    Drawing {
        width: PANEL.0.mul_add(COLUMNS as f64, 2.0 * PAGE_MARGIN),
        height: PANEL.1.mul_add(rows as f64, HEADER_HEIGHT + PAGE_MARGIN),
        title,
        shapes,
    }
}

fn title(charts: &Charts) -> String {
    let by = match charts.x {
        XAxis::Iterations => "iteration",
        XAxis::Trajectories => "number of trajectories",
    };
    let filter = if charts.is_ood_only { " (of test tasks only those out of distribution)" } else { "" };
    format!("Metrics by {by}{filter}")
}

/// Returns the scale that all charts share, so that they can be compared although some have no values of some iterations.
fn x_scale(charts: &Charts) -> Scale {
    let positions = || charts.charts.iter().flat_map(|chart| &chart.series).flat_map(|series| &series.x);
    let (first, last) = (positions().min().copied(), positions().max().copied());
    Scale::whole(first.unwrap_or(0), last.unwrap_or(0), 6)
}

/// One chart at its position on the page.
struct Panel<'a> {
    chart: &'a Chart,
    x_axis: XAxis,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x_scale: Scale,
    y_scale: Scale,
}

impl<'a> Panel<'a> {
    fn new(chart: &'a Chart, (x_axis, x_scale): (XAxis, Scale), origin: (f64, f64)) -> Self {
        let values = chart.series.iter().flat_map(|series| &series.values).flatten();
        let highest = values.copied().fold(0.0, f64::max);
        Self {
            chart,
            x_axis,
            left: origin.0 + PLOT_MARGIN.0,
            top: origin.1 + PLOT_MARGIN.1,
            width: PANEL.0 - PLOT_MARGIN.0 - PLOT_MARGIN.2,
            height: PANEL.1 - PLOT_MARGIN.1 - PLOT_MARGIN.3,
            x_scale,
            y_scale: match chart.unit {
                // Enlarge charts of small rates; the axis labels show the range.
                Unit::Share if highest > 0.5 => Scale { low: 0.0, high: 1.0, step: 0.25 },
                Unit::Share => Scale::from_zero(highest.max(0.1), 4),
                Unit::Count => Scale::from_zero(highest, 4),
            },
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.x_scale.position(value).mul_add(self.width, self.left)
    }

    fn y(&self, value: f64) -> f64 {
        (1.0 - self.y_scale.position(value)).mul_add(self.height, self.top)
    }

    fn draw(&self, shapes: &mut Vec<Shape>) {
        let heading = (self.left - PLOT_MARGIN.0 + 6.0, self.top - 26.0);
        shapes.push(text(heading, self.chart.title, 15.0, TEXT, Anchor::Start, true));
        let below = (heading.0, self.top - 11.0);
        shapes.push(text(below, self.chart.explanation, 11.5, MUTED, Anchor::Start, false));
        self.axes(shapes);
        if self.chart.series.is_empty() {
            let middle = (self.left + self.width / 2.0, self.top + self.height / 2.0);
            shapes.push(text(middle, "no data", 13.0, MUTED, Anchor::Middle, false));
        }
        // The overall line is the first series; draw it last, on top of the others.
        for series in self.chart.series.iter().rev() {
            self.series(shapes, series);
        }
    }

    fn axes(&self, shapes: &mut Vec<Shape>) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for tick in self.y_scale.ticks() {
            let y = self.y(tick);
            let line_colour = if tick == 0.0 { MUTED } else { GRID };
            shapes.push(stroke(vec![(self.left, y), (right, y)], line_colour, 1.0));
            let label = self.value_label(tick);
            shapes.push(text((self.left - 7.0, y + 4.0), &label, 11.5, MUTED, Anchor::End, false));
        }
        for tick in self.x_scale.ticks() {
            let x = self.x(tick);
            shapes.push(stroke(vec![(x, bottom), (x, bottom + 4.0)], MUTED, 1.0));
            let label = format!("{tick:.0}");
            shapes.push(text((x, bottom + 17.0), &label, 11.5, MUTED, Anchor::Middle, false));
        }
        let middle = (self.left + self.width / 2.0, bottom + 33.0);
        shapes.push(text(middle, self.x_axis.label(), 11.5, MUTED, Anchor::Middle, false));
    }

    fn value_label(&self, value: f64) -> String {
        match self.chart.unit {
            Unit::Share if self.y_scale.step < 0.00999 => format!("{:.1} %", value * 100.0),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Count if value >= 10_000.0 => format!("{:.0} k", value / 1000.0),
            Unit::Count if self.y_scale.step < 1.0 => format!("{value:.1}"),
            Unit::Count => format!("{value:.0}"),
        }
    }

    fn series(&self, shapes: &mut Vec<Shape>, series: &Series) {
        let colour = colour(series.line);
        let is_dashed = is_dashed(series.split);
        let is_smoothed = series.smoothed.is_some();
        let mut line = |values: &[Option<f64>], width: f64, opacity: f64| {
            for points in self.segments(series, values) {
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
        let points: Vec<_> = self.segments(series, marked).concat();
        if points.len() <= MAX_MARKERS || !is_smoothed && points.len() <= 2 * MAX_MARKERS {
            shapes.extend(points.into_iter().map(|centre| Shape::Marker {
                centre,
                marker: marker(series.line),
                colour,
                is_hollow: is_dashed,
                opacity: 1.0,
            }));
        }
    }

    /// Returns the points of a line, split at gaps.
    fn segments(&self, series: &Series, values: &[Option<f64>]) -> Vec<Vec<(f64, f64)>> {
        let mut segments = vec![Vec::new()];
        for (x, value) in series.x.iter().zip(values) {
            match (value, segments.last_mut()) {
                (Some(value), Some(segment)) => segment.push((self.x(*x as f64), self.y(*value))),
                _ => segments.push(Vec::new()),
            }
        }
        segments.retain(|segment: &Vec<_>| !segment.is_empty());
        segments
    }
}

const fn stroke(points: Vec<(f64, f64)>, colour: Colour, width: f64) -> Shape {
    Shape::Stroke { points, colour, width, is_dashed: false, opacity: 1.0 }
}

fn text(position: (f64, f64), text: &str, size: f64, colour: Colour, anchor: Anchor, is_bold: bool) -> Shape {
    Shape::Text { position, text: text.to_owned(), size, colour, anchor, is_bold }
}
