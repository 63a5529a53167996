//! Decodes and encodes images, with the fast settings of each codec.

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
    let mut bytes = Vec::with_capacity(canvas.pixels().len() / 4);
    let mut encoder = png::Encoder::new(&mut bytes, canvas.width(), canvas.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fastest);
    encoder.write_header()?.write_image_data(canvas.pixels())?;
    Ok(bytes)
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
