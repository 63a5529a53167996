//! Draws the set of marks: decodes the screenshot, paints boxes and then labels over it, encodes it again.
//! Pure pixels in, pixels out; runs off the async threads.

mod canvas;
mod codec;
mod colour;
mod label;

use proto::{ImageFormat, page::Rect};

use crate::page::elements::MarkedElement;
use canvas::{Area, Canvas};
use colour::Colour;

pub(crate) struct Drawn {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

const OUTLINE: i64 = 2;
const FILL_OPACITY: u8 = 28;
/// Closer to the top edge than this a label goes below its box instead.
const TOP_MARGIN: f64 = 20.0;

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
    for mark in marks {
        paint_label(&mut canvas, mark);
    }
    let bytes = codec::encode(&canvas, format)?;
    Ok(Drawn { width: canvas.width(), height: canvas.height(), bytes })
}

fn area(rect: &Rect) -> Area {
    Area {
        left: rect.left.round() as i64,
        top: rect.top.round() as i64,
        right: rect.right.round() as i64,
        bottom: rect.bottom.round() as i64,
    }
}

fn paint_box(canvas: &mut Canvas, mark: &MarkedElement) {
    let colour = Colour::of_mark(mark.shown);
    let area = area(&mark.rect);
    canvas.blend(area, colour, FILL_OPACITY);
    canvas.outline(area, colour, OUTLINE);
}

fn paint_label(canvas: &mut Canvas, mark: &MarkedElement) {
    let colour = Colour::of_mark(mark.shown);
    let text = mark.shown.to_string();
    let size = label::size(&text);
    let place = label_place(&mark.rect, size, (canvas.width(), canvas.height()));
    canvas.blend(place, colour, 255);
    label::write(canvas, &text, place, colour.readable_text());
}

/// At the top-right corner above the box, or below the bottom-right one when there is no room above; always
/// wholly inside the picture.
fn label_place(rect: &Rect, (width, height): (i64, i64), picture: (u32, u32)) -> Area {
    let right = (rect.right.round() as i64).clamp(width.min(i64::from(picture.0)), i64::from(picture.0));
    let top =
        if rect.top < TOP_MARGIN { rect.bottom.round() as i64 } else { rect.top.round() as i64 - height };
    let top = top.clamp(0, (i64::from(picture.1) - height).max(0));
    Area { left: right - width, top, right, bottom: top + height }
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
        assert_eq!(canvas.pixel(50, 40), colour);
        assert_eq!(canvas.pixel(109, 69), colour);
        assert_ne!(canvas.pixel(80, 55), white, "translucent fill");
        assert_ne!(canvas.pixel(80, 55), colour, "translucent fill");
        assert_eq!(canvas.pixel(40, 55), white);
        assert_eq!(canvas.pixel(109, 36), colour, "the tag stands above the top-right corner");
        assert_eq!(canvas.pixel(60, 36), white);
    }

    #[test]
    fn a_label_near_the_top_goes_below_and_stays_in_the_picture() {
        let picture = (200, 100);
        let place = label_place(&Rect::new(10.0, 5.0, 50.0, 20.0), (20, 16), picture);
        assert_eq!((place.top, place.right), (25, 60));
        let place = label_place(&Rect::new(150.0, 2.0, 100.0, 97.0), (20, 16), picture);
        assert_eq!((place.bottom, place.right), (100, 200));
        let place = label_place(&Rect::new(-90.0, 40.0, 95.0, 20.0), (20, 16), picture);
        assert_eq!(place.left, 0);
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
