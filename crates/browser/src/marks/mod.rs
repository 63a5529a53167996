//! Draws marks and drop-down rows onto a screenshot: decodes it, draws, and encodes it again. Pure functions on pixels,
//! called outside the async threads.

mod canvas;
mod codec;
mod colour;
mod label;
mod label_layout;

use proto::{ImageFormat, page::Rect};

use crate::page::elements::{Mark, RowText};
use canvas::{Area, Canvas};
use colour::Colour;
use label_layout::{LabelledElement, layout_labels};

/// An encoded image.
pub(crate) struct DrawnImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

const OUTLINE_WIDTH: i64 = 2;
const FILL_OPACITY: u8 = 28;

/// Draws the rows of an open drop-down onto a PNG and encodes it in `format`.
pub(crate) fn draw_rows(
    png: &[u8],
    rows: &[(Rect, RowText)],
    format: ImageFormat,
) -> Result<DrawnImage, String> {
    let mut canvas = codec::decode(png)?;
    for (rect, row) in rows {
        draw_row(&mut canvas, rect, row);
    }
    encode(&canvas, format)
}

fn encode(canvas: &Canvas, format: ImageFormat) -> Result<DrawnImage, String> {
    let bytes = codec::encode(canvas, format)?;
    Ok(DrawnImage { width: canvas.width(), height: canvas.height(), bytes })
}

/// Draws the marks onto a PNG and encodes it in `format`.
pub(crate) fn draw_marks(png: &[u8], marks: &[Mark], format: ImageFormat) -> Result<DrawnImage, String> {
    let mut canvas = codec::decode(png)?;
    for mark in marks {
        if let Some(row) = &mark.row {
            draw_row(&mut canvas, &mark.rect, row);
        }
    }
    for mark in marks {
        draw_box(&mut canvas, mark);
    }
    draw_labels(&mut canvas, marks);
    encode(&canvas, format)
}

/// Coordinates are clamped to this, far outside any screen, so that sums of them do not overflow.
const MAX_COORDINATE: f64 = 1e9;

fn area(rect: &Rect) -> Area {
    let pixel = |edge: f64| edge.clamp(-MAX_COORDINATE, MAX_COORDINATE).round() as i64;
    Area {
        left: pixel(rect.left),
        top: pixel(rect.top),
        right: pixel(rect.right),
        bottom: pixel(rect.bottom),
    }
}

/// Returns the area with its outline. The outline is drawn around an element, so that it does not cover the first and last
/// letter of a link; the rows that we draw have space for it inside.
fn outlined_area(mark: &Mark) -> Area {
    let area = area(&mark.rect);
    if mark.row.is_some() { area } else { area.grown(OUTLINE_WIDTH) }
}

fn draw_box(canvas: &mut Canvas, mark: &Mark) {
    let colour = Colour::of_mark(mark.number);
    canvas.blend(area(&mark.rect), colour, FILL_OPACITY);
    canvas.outline(outlined_area(mark), colour, OUTLINE_WIDTH);
}

fn draw_labels(canvas: &mut Canvas, marks: &[Mark]) {
    let to_labelled = |mark: &Mark| {
        let size = label::size(&mark.number.to_string());
        LabelledElement { area: outlined_area(mark), label_size: size, is_row: mark.row.is_some() }
    };
    let elements: Vec<LabelledElement> = marks.iter().map(to_labelled).collect();
    let label_areas = layout_labels(&elements, (canvas.width(), canvas.height()));
    for (mark, area) in marks.iter().zip(label_areas) {
        let colour = Colour::of_mark(mark.number);
        canvas.blend(area, colour, 255);
        label::draw_centred(canvas, &mark.number.to_string(), area, colour.readable_text());
    }
}

/// Draws one row of an open drop-down.
fn draw_row(canvas: &mut Canvas, rect: &Rect, row: &RowText) {
    let area = area(rect);
    let (background, foreground) = if row.selected {
        (Colour(25, 103, 210), Colour(255, 255, 255))
    } else {
        (Colour(255, 255, 255), Colour(32, 33, 36))
    };
    canvas.blend(area, background, 255);
    canvas.outline(area, Colour(200, 204, 209), 1);
    label::draw_left(canvas, &row.text, area, foreground);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn white(width: u32, height: u32) -> Vec<u8> {
        codec::encode(&Canvas::filled(width, height, Colour(255, 255, 255)), ImageFormat::Png).unwrap()
    }

    fn mark(number: usize, rect: Rect) -> Mark {
        Mark { number, rect, row: None }
    }

    #[test]
    fn mark_draws_outline_fill_and_label_only() {
        let drawn =
            draw_marks(&white(200, 100), &[mark(7, Rect::new(50.0, 40.0, 60.0, 30.0))], ImageFormat::Png)
                .unwrap();
        let canvas = codec::decode(&drawn.bytes).unwrap();
        let colour = Colour::of_mark(7);
        let white = Colour(255, 255, 255);
        assert_eq!(canvas.pixel(48, 38), colour, "the outline is around the element");
        assert_eq!(canvas.pixel(111, 71), colour);
        assert_ne!(canvas.pixel(50, 40), colour);
        assert_ne!(canvas.pixel(80, 55), white, "translucent fill");
        assert_ne!(canvas.pixel(80, 55), colour, "translucent fill");
        assert_eq!(canvas.pixel(40, 55), white);
        assert_eq!(canvas.pixel(111, 36), colour, "the label is above the top-right corner");
        assert_eq!(canvas.pixel(60, 36), white);
    }

    #[test]
    fn boxes_outside_the_image_are_clipped() {
        let marks = [
            mark(1, Rect::new(-1e9, -1e9, 2e9, 2e9)),
            mark(2, Rect::new(1e9, 1e9, 5.0, 5.0)),
            mark(3, Rect::new(f64::NAN, 0.0, 5.0, f64::INFINITY)),
        ];
        assert!(draw_marks(&white(64, 64), &marks, ImageFormat::Png).is_ok());
    }

    #[test]
    fn all_formats_are_encoded() {
        for (format, magic) in [
            (ImageFormat::Png, &b"\x89PNG"[..]),
            (ImageFormat::Jpeg, b"\xff\xd8\xff"),
            (ImageFormat::Webp, b"RIFF"),
        ] {
            let drawn =
                draw_marks(&white(64, 64), &[mark(1, Rect::new(5.0, 30.0, 20.0, 20.0))], format).unwrap();
            assert!(drawn.bytes.starts_with(magic), "{format:?}");
        }
    }
}
