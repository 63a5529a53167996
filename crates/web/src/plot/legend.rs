//! What the lines mean: colour and sign for the difficulty class, full or dashed for the split.

use store::Split;

use super::chart::{Charts, Line};
use super::shape::{Anchor, FAINT_INK, INK, Shape, colour, is_dashed, marker};

const SAMPLE: f64 = 34.0;

/// One row, from `x` on at height `y`; only what occurs.
pub(super) fn draw(charts: &Charts, x: f64, y: f64) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let series = || charts.charts.iter().flat_map(|chart| &chart.series);
    let mut x = x;
    for line in Line::ALL.into_iter().filter(|line| series().any(|one| one.line == *line)) {
        stroke(&mut shapes, x, y, (colour(line), false));
        shapes.push(Shape::Marker {
            at: (x + SAMPLE / 2.0, y),
            marker: marker(line),
            colour: colour(line),
            is_hollow: false,
            opacity: 1.0,
        });
        x = label(&mut shapes, x, y, line.as_str());
    }
    x += 16.0;
    for split in Split::ALL.into_iter().filter(|split| series().any(|one| one.split == *split)) {
        stroke(&mut shapes, x, y, (FAINT_INK, is_dashed(split)));
        let words = if is_dashed(split) { "test (hollow)" } else { "train" };
        x = label(&mut shapes, x, y, words);
    }
    if let Some(weight) = charts.ema {
        label(&mut shapes, x - SAMPLE + 6.0, y, &format!("smoothed, EMA {weight}; thin: as measured"));
    }
    shapes
}

fn stroke(shapes: &mut Vec<Shape>, x: f64, y: f64, (colour, is_dashed): (super::shape::Colour, bool)) {
    let points = vec![(x, y), (x + SAMPLE, y)];
    shapes.push(Shape::Stroke { points, colour, width: 2.0, is_dashed, opacity: 1.0 });
}

/// Answers where the next entry begins.
fn label(shapes: &mut Vec<Shape>, x: f64, y: f64, text: &str) -> f64 {
    let at = (x + SAMPLE + 7.0, y + 4.0);
    let (size, anchor) = (13.0, Anchor::Start);
    shapes.push(Shape::Text { at, text: text.to_owned(), size, colour: INK, anchor, is_bold: false });
    7.2_f64.mul_add(text.chars().count() as f64, at.0) + 14.0
}
