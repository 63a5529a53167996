//! The shapes and colours of a drawing, common to SVG and PNG.

use store::Split;

use super::chart::Line;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const TEXT: Colour = Colour(0x22, 0x2b, 0x33);
pub(super) const MUTED: Colour = Colour(0x5c, 0x66, 0x70);
pub(super) const GRID: Colour = Colour(0xe3, 0xe7, 0xea);
pub(super) const BACKGROUND: Colour = Colour(0xff, 0xff, 0xff);

/// Returns the colour of a line: the Okabe-Ito palette, distinguishable with any kind of colour blindness.
pub(super) const fn colour(line: Line) -> Colour {
    match line {
        Line::Overall => Colour(0x00, 0x00, 0x00),
        Line::Easy => Colour(0x00, 0x9e, 0x73),
        Line::Medium => Colour(0x00, 0x72, 0xb2),
        Line::Hard => Colour(0xd5, 0x5e, 0x00),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// Returns the marker of a line, so that colour is not the only difference.
pub(super) const fn marker(line: Line) -> Marker {
    match line {
        Line::Overall => Marker::Circle,
        Line::Easy => Marker::Square,
        Line::Medium => Marker::Triangle,
        Line::Hard => Marker::Diamond,
    }
}

pub(super) const fn is_dashed(split: Split) -> bool {
    matches!(split, Split::Test)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Lines between points, not filled.
    Stroke {
        points: Vec<(f64, f64)>,
        colour: Colour,
        width: f64,
        is_dashed: bool,
        opacity: f64,
    },
    /// A marker, filled with its colour or, if hollow, with the background colour.
    Marker {
        centre: (f64, f64),
        marker: Marker,
        colour: Colour,
        is_hollow: bool,
        opacity: f64,
    },
    Text {
        position: (f64, f64),
        text: String,
        size: f64,
        colour: Colour,
        anchor: Anchor,
        is_bold: bool,
    },
}

/// A drawing of a given size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

impl Marker {
    /// Returns the corners of the marker around its centre; a circle has none.
    pub(super) fn corners(self, (x, y): (f64, f64)) -> Vec<(f64, f64)> {
        const R: f64 = 3.4;
        match self {
            Self::Circle => Vec::new(),
            Self::Square => {
                vec![(x - 2.8, y - 2.8), (x + 2.8, y - 2.8), (x + 2.8, y + 2.8), (x - 2.8, y + 2.8)]
            }
            Self::Triangle => vec![(x, y - R - 0.4), (x + R, y + 2.6), (x - R, y + 2.6)],
            Self::Diamond => vec![(x, y - R - 0.6), (x + R + 0.6, y), (x, y + R + 0.6), (x - R - 0.6, y)],
        }
    }

    pub(super) const RADIUS: f64 = 3.0;
}
