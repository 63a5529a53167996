//! Decodes and encodes images with fast settings. Those of PNG depend on what the image shows.

use std::io::Cursor;

use proto::ImageFormat;

use super::canvas::Canvas;

const JPEG_QUALITY: u8 = 80;

pub(crate) fn decode(bytes: &[u8]) -> Result<Canvas, String> {
    let invalid = |error: png::DecodingError| format!("the screenshot cannot be decoded: {error}");
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.ignore_checksums(true);
    let mut reader = decoder.read_info().map_err(invalid)?;
    let size = reader.output_buffer_size().ok_or("the screenshot is too large")?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(invalid)?;
    pixels.truncate(frame.buffer_size());
    let rgb = match frame.color_type {
        png::ColorType::Rgb => pixels,
        png::ColorType::Rgba => drop_alpha(&pixels),
        other => return Err(format!("the screenshot has an unsupported colour type ({other:?})")),
    };
    Canvas::new(frame.width, frame.height, rgb).ok_or_else(|| "the screenshot is truncated".to_owned())
}

fn drop_alpha(rgba: &[u8]) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(rgba.len() / 4 * 3);
    for pixel in rgba.chunks_exact(4) {
        rgb.extend_from_slice(&pixel[..3]);
    }
    rgb
}

pub(crate) fn encode(canvas: &Canvas, format: ImageFormat) -> Result<Vec<u8>, String> {
    match format {
        ImageFormat::Png => encode_png(canvas).map_err(|error| error.to_string()),
        ImageFormat::Jpeg => encode_jpeg(canvas),
        ImageFormat::Webp => {
            let mut bytes = Vec::new();
            image_webp::WebPEncoder::new(&mut bytes)
                .encode(canvas.pixels(), canvas.width(), canvas.height(), image_webp::ColorType::Rgb8)
                .map_err(|error| error.to_string())?;
            Ok(bytes)
        }
    }
}

fn encode_png(canvas: &Canvas) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::with_capacity(canvas.pixels().len() / 16);
    let mut encoder = png::Encoder::new(&mut bytes, canvas.width(), canvas.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if is_flat(canvas) {
        // Letters, boxes and rows repeat themselves: finding them takes 0.8 ms longer than filtering and saves a quarter of
        // the bytes (docs/benchmarks.md).
        encoder.set_deflate_compression(png::DeflateCompression::Level(2));
        encoder.set_filter(png::Filter::NoFilter);
    } else {
        encoder.set_compression(png::Compression::Fast);
    }
    encoder.write_header()?.write_image_data(canvas.pixels())?;
    Ok(bytes)
}

/// How many of 100 pixels of a flat image equal their left neighbour. Most pages of text have 88 to 99, pages with large
/// photographs 72 to 81.
const FLAT_PERCENT: usize = 85;
/// One of this many rows is looked at. Not a divisor of usual line heights, so that all parts of a line are seen.
const SAMPLED_ROWS: usize = 7;

/// Whether the image consists mostly of areas of one colour, as text and forms do and photographs do not.
fn is_flat(canvas: &Canvas) -> bool {
    let (mut equal, mut pixels) = (0, 0);
    for row in canvas.pixels().chunks_exact(canvas.width() as usize * 3).step_by(SAMPLED_ROWS) {
        let neighbours = row.chunks_exact(3).zip(row.chunks_exact(3).skip(1));
        equal += neighbours.filter(|(left, right)| left == right).count();
        pixels += row.len() / 3;
    }
    equal * 100 >= pixels * FLAT_PERCENT
}

fn encode_jpeg(canvas: &Canvas) -> Result<Vec<u8>, String> {
    let side =
        |value: u32| u16::try_from(value).map_err(|_| "the screenshot is too large for JPEG".to_owned());
    let mut bytes = Vec::new();
    jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY)
        .encode(canvas.pixels(), side(canvas.width())?, side(canvas.height())?, jpeg_encoder::ColorType::Rgb)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::{canvas::Area, colour::Colour};

    const WIDTH: u32 = 320;
    const HEIGHT: u32 = 240;

    /// Words of small bars, the same few again and again.
    fn page_of_text() -> Canvas {
        let mut canvas = Canvas::filled(WIDTH, HEIGHT, Colour(255, 255, 255));
        for line in 0..HEIGHT as i64 / 12 {
            for letter in (0..WIDTH as i64 / 10).filter(|letter| (letter + line) % 5 != 0) {
                let (left, top) = (letter * 10, line * 12);
                let height = 3 + (letter * line) % 7;
                let area = Area { left, top, right: left + 1, bottom: top + height };
                canvas.blend(area, Colour(20, 20, 20), u8::MAX);
            }
        }
        canvas
    }

    /// Smooth shades with noise in the last bits, as a camera makes them.
    fn photograph() -> Canvas {
        let mut noise = 1_u32;
        let mut pixels = Vec::new();
        for row in 0..HEIGHT {
            for column in 0..WIDTH {
                for shade in [row / 2 + column / 4, row / 4 + 20, 200 - column / 3] {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    pixels.push((shade + (noise >> 29)) as u8);
                }
            }
        }
        Canvas::new(WIDTH, HEIGHT, pixels).unwrap()
    }

    fn encode_with(canvas: &Canvas, compression: png::Compression) -> usize {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, canvas.width(), canvas.height());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(compression);
        encoder.write_header().unwrap().write_image_data(canvas.pixels()).unwrap();
        bytes.len()
    }

    /// White, with noise in one column of `distance`.
    fn noise_in_columns(width: u32, distance: u32) -> Canvas {
        let shades = (0..width * HEIGHT)
            .map(|index| if (index % width).is_multiple_of(distance) { index } else { 255 });
        Canvas::new(width, HEIGHT, shades.flat_map(|shade| [shade as u8; 3]).collect()).unwrap()
    }

    #[test]
    fn flat_images_are_those_with_85_percent_of_equal_neighbours() {
        // A column of noise costs two pairs of equal neighbours.
        for (width, distance, expected) in [(280, 14, true), (280, 12, false), (1, 2, false)] {
            assert_eq!(is_flat(&noise_in_columns(width, distance)), expected, "{width} {distance}");
        }
    }

    #[test]
    fn png_keeps_every_pixel() {
        for canvas in [page_of_text(), photograph()] {
            let bytes = encode(&canvas, ImageFormat::Png).unwrap();
            assert_eq!(decode(&bytes).unwrap().pixels(), canvas.pixels());
        }
    }

    #[test]
    fn png_of_text_takes_two_thirds_of_the_fastest_encoding_at_most() {
        let canvas = page_of_text();
        let fastest = encode_with(&canvas, png::Compression::Fastest);
        let ours = encode(&canvas, ImageFormat::Png).unwrap().len();
        assert!(ours * 3 <= fastest * 2, "{ours} bytes, the fastest encoding {fastest}");
    }

    #[test]
    fn png_of_a_photograph_is_filtered() {
        let canvas = photograph();
        let filtered = encode_with(&canvas, png::Compression::Fast);
        assert_eq!(encode(&canvas, ImageFormat::Png).unwrap().len(), filtered);
    }
}
