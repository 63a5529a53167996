//! The legend: colour and marker show the difficulty class, solid or dashed lines the split.

use store::Split;

use super::chart::{Charts, Line};
use super::shapes::{Anchor, MUTED, Shape, TEXT, colour, is_dashed, marker};

/// Length of the line in front of a label.
const SAMPLE_WIDTH: f64 = 34.0;

/// Draws one row starting at (`x`, `y`), with entries only for lines and splits that occur.
pub(super) fn draw(charts: &Charts, x: f64, y: f64) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let series = || charts.charts.iter().flat_map(|chart| &chart.series);
    let mut x = x;
    for line in Line::ALL.into_iter().filter(|line| series().any(|series| series.line == *line)) {
        stroke(&mut shapes, x, y, (colour(line), false));
        shapes.push(Shape::Marker {
            centre: (x + SAMPLE_WIDTH / 2.0, y),
            marker: marker(line),
            colour: colour(line),
            is_hollow: false,
            opacity: 1.0,
        });
        x = label(&mut shapes, x, y, line.as_str());
    }
    x += 16.0;
    for split in Split::ALL.into_iter().filter(|split| series().any(|series| series.split == *split)) {
        stroke(&mut shapes, x, y, (MUTED, is_dashed(split)));
        let text = if is_dashed(split) { "test (hollow)" } else { "train" };
        x = label(&mut shapes, x, y, text);
    }
    if let Some(alpha) = charts.ema {
        label(
            &mut shapes,
            x - SAMPLE_WIDTH + 6.0,
            y,
            &format!("smoothed (EMA, alpha {alpha}); thin lines: unsmoothed"),
        );
    }
    shapes
}

fn stroke(shapes: &mut Vec<Shape>, x: f64, y: f64, (colour, is_dashed): (super::shapes::Colour, bool)) {
    let points = vec![(x, y), (x + SAMPLE_WIDTH, y)];
    shapes.push(Shape::Stroke { points, colour, width: 2.0, is_dashed, opacity: 1.0 });
}

/// Draws a label and returns where the next entry starts.
fn label(shapes: &mut Vec<Shape>, x: f64, y: f64, text: &str) -> f64 {
    let position = (x + SAMPLE_WIDTH + 7.0, y + 4.0);
    let (size, anchor) = (13.0, Anchor::Start);
    shapes.push(Shape::Text { position, text: text.to_owned(), size, colour: TEXT, anchor, is_bold: false });
    7.2_f64.mul_add(text.chars().count() as f64, position.0) + 14.0
}
