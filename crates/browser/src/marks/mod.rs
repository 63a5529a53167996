//! Draws the set of marks: decodes the screenshot, paints boxes and then labels over it, encodes it again.
//! Pure pixels in, pixels out; runs off the async threads.

mod canvas;
mod codec;
mod colour;
mod label;
mod place;

use proto::{ImageFormat, page::Rect};

use crate::page::elements::MarkedElement;
use canvas::{Area, Canvas};
use colour::Colour;
use place::{Labelled, place_labels};

pub(crate) struct Drawn {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

const OUTLINE: i64 = 2;
const FILL_OPACITY: u8 = 28;

/// The PNG with the rows of an open drop-down on it, in the format asked for.
pub(crate) fn draw_rows(
    png: &[u8],
    rows: &[(Rect, (String, bool))],
    format: ImageFormat,
) -> Result<Drawn, String> {
    let mut canvas = codec::decode(png)?;
    for (rect, (text, chosen)) in rows {
        paint_row(&mut canvas, rect, text, *chosen);
    }
    finish(&canvas, format)
}

fn finish(canvas: &Canvas, format: ImageFormat) -> Result<Drawn, String> {
    let bytes = codec::encode(canvas, format)?;
    Ok(Drawn { width: canvas.width(), height: canvas.height(), bytes })
}

/// The PNG with every mark painted on it, in the format asked for.
pub(crate) fn annotate(png: &[u8], marks: &[MarkedElement], format: ImageFormat) -> Result<Drawn, String> {
    let mut canvas = codec::decode(png)?;
    for mark in marks {
        if let Some((text, chosen)) = &mark.row {
            paint_row(&mut canvas, &mark.rect, text, *chosen);
        }
    }
    for mark in marks {
        paint_box(&mut canvas, mark);
    }
    paint_labels(&mut canvas, marks);
    finish(&canvas, format)
}

/// Larger than any screen: boxes beyond it are cut, so that sums of their edges stay sums.
const FAR: f64 = 1e9;

fn area(rect: &Rect) -> Area {
    let pixel = |edge: f64| edge.clamp(-FAR, FAR).round() as i64;
    Area {
        left: pixel(rect.left),
        top: pixel(rect.top),
        right: pixel(rect.right),
        bottom: pixel(rect.bottom),
    }
}

/// The box with its outline: around the element rather than over its edge, where a link has its first and last
/// letter. A row of our own has room inside.
fn outlined(mark: &MarkedElement) -> Area {
    let area = area(&mark.rect);
    if mark.row.is_some() { area } else { area.grown(OUTLINE) }
}

fn paint_box(canvas: &mut Canvas, mark: &MarkedElement) {
    let colour = Colour::of_mark(mark.shown);
    canvas.blend(area(&mark.rect), colour, FILL_OPACITY);
    canvas.outline(outlined(mark), colour, OUTLINE);
}

fn paint_labels(canvas: &mut Canvas, marks: &[MarkedElement]) {
    let labelled = |mark: &MarkedElement| {
        let size = label::size(&mark.shown.to_string());
        Labelled { area: outlined(mark), size, row: mark.row.is_some() }
    };
    let elements: Vec<Labelled> = marks.iter().map(labelled).collect();
    let places = place_labels(&elements, (canvas.width(), canvas.height()));
    for (mark, place) in marks.iter().zip(places) {
        let colour = Colour::of_mark(mark.shown);
        canvas.blend(place, colour, 255);
        label::write(canvas, &mark.shown.to_string(), place, colour.readable_text());
    }
}

/// One row of a drop-down that Chromium would show in a window of its own.
fn paint_row(canvas: &mut Canvas, rect: &Rect, text: &str, chosen: bool) {
    let area = area(rect);
    let (back, front) = if chosen {
        (Colour(25, 103, 210), Colour(255, 255, 255))
    } else {
        (Colour(255, 255, 255), Colour(32, 33, 36))
    };
    canvas.blend(area, back, 255);
    canvas.outline(area, Colour(200, 204, 209), 1);
    label::write_left(canvas, text, area, front);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn white(width: u32, height: u32) -> Vec<u8> {
        codec::encode(&Canvas::filled(width, height, Colour(255, 255, 255)), ImageFormat::Png).unwrap()
    }

    fn mark(shown: usize, rect: Rect) -> MarkedElement {
        MarkedElement { shown, rect, row: None }
    }

    #[test]
    fn a_mark_paints_its_outline_fill_and_label_and_nothing_else() {
        let drawn =
            annotate(&white(200, 100), &[mark(7, Rect::new(50.0, 40.0, 60.0, 30.0))], ImageFormat::Png)
                .unwrap();
        let canvas = codec::decode(&drawn.bytes).unwrap();
        let colour = Colour::of_mark(7);
        let white = Colour(255, 255, 255);
        assert_eq!(canvas.pixel(48, 38), colour, "the outline runs around the element");
        assert_eq!(canvas.pixel(111, 71), colour);
        assert_ne!(canvas.pixel(50, 40), colour);
        assert_ne!(canvas.pixel(80, 55), white, "translucent fill");
        assert_ne!(canvas.pixel(80, 55), colour, "translucent fill");
        assert_eq!(canvas.pixel(40, 55), white);
        assert_eq!(canvas.pixel(111, 36), colour, "the tag stands above the top-right corner");
        assert_eq!(canvas.pixel(60, 36), white);
    }

    #[test]
    fn boxes_that_reach_outside_do_not_matter() {
        let wild = [
            mark(1, Rect::new(-1e9, -1e9, 2e9, 2e9)),
            mark(2, Rect::new(1e9, 1e9, 5.0, 5.0)),
            mark(3, Rect::new(f64::NAN, 0.0, 5.0, f64::INFINITY)),
        ];
        assert!(annotate(&white(64, 64), &wild, ImageFormat::Png).is_ok());
    }

    #[test]
    fn every_format_can_be_had() {
        for (format, magic) in [
            (ImageFormat::Png, &b"\x89PNG"[..]),
            (ImageFormat::Jpeg, b"\xff\xd8\xff"),
            (ImageFormat::Webp, b"RIFF"),
        ] {
            let drawn =
                annotate(&white(64, 64), &[mark(1, Rect::new(5.0, 30.0, 20.0, 20.0))], format).unwrap();
            assert!(drawn.bytes.starts_with(magic), "{format:?}");
        }
    }
}
