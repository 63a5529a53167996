//! Renders a drawing as PNG with an embedded font, so that neither a browser nor system fonts are needed.

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, Stroke, StrokeDash, Transform,
};

use super::PlotError;
use super::shapes::{Anchor, BACKGROUND, Colour, Drawing, Marker, Shape};

/// Pixels per unit of the drawing.
const SCALE: f32 = 2.0;

pub(super) fn render(drawing: &Drawing) -> Result<Vec<u8>, PlotError> {
    let size = |length: f64| (length * f64::from(SCALE)).ceil() as u32;
    let (width, height) = (size(drawing.width), size(drawing.height));
    let mut canvas = Canvas {
        pixels: Pixmap::new(width, height).ok_or(PlotError::TooLarge)?,
        font: FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).map_err(|_| PlotError::Font)?,
    };
    let Colour(red, green, blue) = BACKGROUND;
    canvas.pixels.fill(tiny_skia::Color::from_rgba8(red, green, blue, 255));
    for shape in &drawing.shapes {
        canvas.draw(shape);
    }
    encode(&canvas.pixels)
}

fn encode(pixels: &Pixmap) -> Result<Vec<u8>, PlotError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    // The background is opaque, so no pixel is translucent and alpha can be dropped.
    let colours: Vec<u8> =
        pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(bytes)
}

struct Canvas {
    pixels: Pixmap,
    font: FontRef<'static>,
}

impl Canvas {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Stroke { points, colour, width, is_dashed, opacity } => {
                let dash = is_dashed.then(|| StrokeDash::new(vec![6.0, 4.0], 0.0)).flatten();
                let stroke =
                    Stroke { width: *width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() };
                if let Some(path) = path(points, false) {
                    self.pixels.stroke_path(&path, &paint_of(*colour, *opacity), &stroke, scaling(), None);
                }
            }
            Shape::Marker { centre, marker, colour, is_hollow, opacity } => {
                let outline = match marker {
                    Marker::Circle => {
                        PathBuilder::from_circle(centre.0 as f32, centre.1 as f32, Marker::RADIUS as f32)
                    }
                    _ => path(&marker.corners(*centre), true),
                };
                let Some(outline) = outline else { return };
                let fill = paint_of(if *is_hollow { BACKGROUND } else { *colour }, *opacity);
                self.pixels.fill_path(&outline, &fill, FillRule::Winding, scaling(), None);
                let stroke = Stroke { width: 1.4, ..Stroke::default() };
                self.pixels.stroke_path(&outline, &paint_of(*colour, *opacity), &stroke, scaling(), None);
            }
            Shape::Text { position, text, size, colour, anchor, is_bold } => {
                self.write(*position, text, *size, *colour, (*anchor, *is_bold));
            }
        }
    }

    fn write(&mut self, position: (f64, f64), text: &str, size: f64, colour: Colour, style: (Anchor, bool)) {
        let (anchor, is_bold) = style;
        // PxScale is the line height, which is larger than the font size in CSS.
        let scale = PxScale::from(size as f32 * SCALE * 1.15);
        let font = self.font.clone();
        let scaled = font.as_scaled(scale);
        let length: f32 = text.chars().map(|character| scaled.h_advance(scaled.glyph_id(character))).sum();
        let mut x = (position.0 as f32).mul_add(
            SCALE,
            match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -length / 2.0,
                Anchor::End => -length,
            },
        );
        let y = position.1 as f32 * SCALE;
        for character in text.chars() {
            let id = scaled.glyph_id(character);
            // The only embedded font is light; drawing each glyph several times with a small offset makes it heavier.
            let shifts: &[f32] = if is_bold { &[0.0, 0.6, 1.2] } else { &[0.0, 0.4] };
            for shift in shifts {
                if let Some(outline) =
                    font.outline_glyph(id.with_scale_and_position(scale, point(x + shift, y)))
                {
                    let corner = outline.px_bounds().min;
                    outline.draw(|column, row, coverage| {
                        self.blend_pixel(
                            (corner.x as i64 + i64::from(column), corner.y as i64 + i64::from(row)),
                            colour,
                            coverage,
                        );
                    });
                }
            }
            x += scaled.h_advance(id);
        }
    }

    /// Blends a colour into one pixel, in proportion to the part of the pixel that is covered.
    fn blend_pixel(&mut self, (x, y): (i64, i64), Colour(red, green, blue): Colour, coverage: f32) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
        let (width, height) = (self.pixels.width(), self.pixels.height());
        if x >= width || y >= height {
            return;
        }
        let coverage = coverage.clamp(0.0, 1.0);
        let pixel = &mut self.pixels.pixels_mut()[(y * width + x) as usize];
        let blend = |under: u8, over: u8| {
            coverage.mul_add(f32::from(over) - f32::from(under), f32::from(under)).round() as u8
        };
        let (red, green, blue) =
            (blend(pixel.red(), red), blend(pixel.green(), green), blend(pixel.blue(), blue));
        if let Some(colour) = PremultipliedColorU8::from_rgba(red, green, blue, 255) {
            *pixel = colour;
        }
    }
}

fn scaling() -> Transform {
    Transform::from_scale(SCALE, SCALE)
}

fn paint_of(Colour(red, green, blue): Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    paint
}

fn path(points: &[(f64, f64)], is_closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if number == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    if is_closed {
        builder.close();
    }
    builder.finish()
}
