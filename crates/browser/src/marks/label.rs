//! Draws the numbers of the marks and the text of drop-down rows, in an embedded font.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use super::{
    canvas::{Area, Canvas},
    colour::Colour,
};

/// The size of the em square, as in CSS `font-size`; the height from ascent to descent is larger.
const FONT_SIZE: f32 = 14.0;
const PADDING: i64 = 3;

static FONT: LazyLock<Option<FontRef<'static>>> =
    LazyLock::new(|| FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR).ok());

fn scale(font: &FontRef<'_>) -> PxScale {
    let em = font.units_per_em().unwrap_or(1000.0);
    PxScale::from(FONT_SIZE * font.height_unscaled() / em)
}

/// Returns the width and height of a label with this text.
pub(crate) fn size(text: &str) -> (i64, i64) {
    let Some(font) = FONT.as_ref() else { return (0, 0) };
    let scaled = font.as_scaled(scale(font));
    let width: f32 = text.chars().map(|c| scaled.h_advance(font.glyph_id(c))).sum();
    (width.ceil() as i64 + 2 * PADDING, scaled.height().ceil() as i64)
}

/// Draws `text` in the centre of `area`.
pub(crate) fn draw_centred(canvas: &mut Canvas, text: &str, area: Area, colour: Colour) {
    let left = area.left + (area.right - area.left - size(text).0) / 2 + PADDING;
    draw_text(canvas, text, left, area, colour);
}

/// Draws `text` at the left of `area`.
pub(crate) fn draw_left(canvas: &mut Canvas, text: &str, area: Area, colour: Colour) {
    draw_text(canvas, text, area.left + 2 * PADDING, area, colour);
}

fn draw_text(canvas: &mut Canvas, text: &str, left: i64, area: Area, colour: Colour) {
    let Some(font) = FONT.as_ref() else { return };
    let scaled = font.as_scaled(scale(font));
    let baseline =
        area.top as f32 + ((area.bottom - area.top) as f32 - scaled.height()) / 2.0 + scaled.ascent();
    let mut x = left as f32;
    for character in text.chars().filter(|c| !c.is_control()) {
        let id = font.glyph_id(character);
        let advance = scaled.h_advance(id);
        if x + advance > area.right as f32 {
            break;
        }
        if let Some(outline) =
            font.outline_glyph(id.with_scale_and_position(scaled.scale(), point(x, baseline)))
        {
            let bounds = outline.px_bounds();
            outline.draw(|dx, dy, coverage| {
                let (px, py) = (bounds.min.x as i64 + i64::from(dx), bounds.min.y as i64 + i64::from(dy));
                canvas.blend_pixel(px, py, colour, (coverage.clamp(0.0, 1.0) * 255.0) as u8);
            });
        }
        x += advance;
    }
}
