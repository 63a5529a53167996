//! Compares and hashes screenshots, and marks the key steps of a trajectory. Reading and decoding images is slow:
//! keep it off the hot path.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use proto::trajectory::Trajectory;
use sha2::{Digest, Sha256};

use crate::layout::SavePath;

/// Sets `keypoint_step_ids`, and `same_as_next_screenshot` of every step but the last where it is not set yet. It
/// stays unset where a screenshot cannot be read; returns the number of those steps.
pub fn fill(trajectory: &mut Trajectory, save_path: &SavePath) -> usize {
    let paths: Vec<_> =
        trajectory.steps.iter().map(|step| save_path.resolve_image(&step.observation.image_path)).collect();
    let mut unknown = 0;
    for (step, pair) in trajectory.steps.iter_mut().zip(paths.windows(2)) {
        if step.same_as_next_screenshot.is_none() {
            step.same_as_next_screenshot = is_same_image(&pair[0], &pair[1]).ok();
            unknown += usize::from(step.same_as_next_screenshot.is_none());
        }
    }
    if let Some(last) = trajectory.steps.last_mut() {
        last.same_as_next_screenshot = None;
    }
    fill_keypoints(trajectory);
    unknown
}

/// Sets `keypoint_step_ids` to the steps that the judge used as evidence.
pub fn fill_keypoints(trajectory: &mut Trajectory) {
    trajectory.metadata.keypoint_step_ids =
        (0..).zip(&trajectory.steps).filter(|(_, step)| step.reward.submit).map(|(id, _)| id).collect();
}

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot read the image: {0}")]
    Io(#[from] std::io::Error),
    #[error("cannot decode the image: {0}")]
    Decode(#[from] png::DecodingError),
    #[error("the image has more pixels than any screen")]
    TooLarge,
}

/// Whether two images have the same pixels. Only PNG files with different bytes are decoded; other formats are
/// compared byte by byte.
pub fn is_same_image(first: &Path, second: &Path) -> Result<bool, ImageError> {
    if first == second {
        return Ok(File::open(first).map(|_| true)?);
    }
    let (first, second) = (std::fs::read(first)?, std::fs::read(second)?);
    if first == second {
        return Ok(true);
    }
    if !(is_png(&first) && is_png(&second)) {
        return Ok(false);
    }
    let (first, second) = (reader(&first)?, reader(&second)?);
    if dimensions(&first) != dimensions(&second) {
        return Ok(false);
    }
    Ok(pixels(first)? == pixels(second)?)
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

type PngReader<'a> = png::Reader<std::io::Cursor<&'a [u8]>>;

fn reader(bytes: &[u8]) -> Result<PngReader<'_>, ImageError> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    // The same pixels can be stored as palette, grey or colour, with or without transparency.
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    Ok(decoder.read_info()?)
}

fn dimensions(reader: &PngReader<'_>) -> (u32, u32) {
    (reader.info().width, reader.info().height)
}

/// Limit for decoded images: a small file can declare dimensions that exceed the memory. No screen has this many
/// pixels.
const MAX_IMAGE_BYTES: usize = 128 << 20;

/// Decodes an image to RGBA with eight bits per channel.
fn pixels(mut reader: PngReader<'_>) -> Result<Vec<u8>, ImageError> {
    let size = reader.output_buffer_size().filter(|size| *size <= MAX_IMAGE_BYTES);
    let mut buffer = vec![0; size.ok_or(ImageError::TooLarge)?];
    let frame = reader.next_frame(&mut buffer)?;
    buffer.truncate(frame.buffer_size());
    Ok(match frame.color_type {
        png::ColorType::GrayscaleAlpha => {
            buffer.chunks_exact(2).flat_map(|pixel| [pixel[0], pixel[0], pixel[0], pixel[1]]).collect()
        }
        _ => buffer,
    })
}

/// The SHA-256 hash of a file in hexadecimal.
pub fn sha256(path: &Path) -> std::io::Result<String> {
    use std::fmt::Write;
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
    }
    Ok(hasher.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn png(color: png::ColorType, compression: png::Compression, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 2, 2);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(compression);
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        bytes
    }

    fn same(first: &[u8], second: &[u8]) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let paths = [directory.path().join("a"), directory.path().join("b")];
        std::fs::write(&paths[0], first).unwrap();
        std::fs::write(&paths[1], second).unwrap();
        is_same_image(&paths[0], &paths[1]).unwrap()
    }

    #[test]
    fn images_with_equal_pixels_are_the_same() {
        use png::{ColorType, Compression};
        let rgb = png(ColorType::Rgb, Compression::High, &[7; 12]);
        let stored = png(ColorType::Rgb, Compression::NoCompression, &[7; 12]);
        let rgba = png(ColorType::Rgba, Compression::Fast, &[7, 7, 7, 255].repeat(4));
        let grey = png(ColorType::Grayscale, Compression::Fast, &[7; 4]);
        assert_ne!(rgb, stored);
        for other in [&rgb, &stored, &rgba, &grey] {
            assert!(same(&rgb, other));
        }
        let changed = png(ColorType::Rgb, Compression::High, &[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8]);
        assert!(!same(&rgb, &changed));
        assert!(!same(&rgba, &png(ColorType::Rgba, Compression::Fast, &[7, 7, 7, 254].repeat(4))));
        assert!(same(b"jpeg", b"jpeg") && !same(b"jpeg", b"other"));
        assert!(!same(&rgb, b"jpeg"));
    }

    #[test]
    fn image_with_huge_dimensions_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (name, data) in [("a", [1; 9]), ("b", [2; 9])] {
            let mut bytes = Vec::new();
            let mut writer = png::Encoder::new(&mut bytes, 30_000, 30_000).write_header().unwrap();
            writer.write_chunk(png::chunk::IDAT, &data).unwrap();
            drop(writer);
            std::fs::write(path(name), bytes).unwrap();
        }
        assert!(matches!(is_same_image(&path("a"), &path("b")), Err(ImageError::TooLarge)));
    }

    #[test]
    fn unchanged_flags_are_set_where_images_exist() {
        let directory = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(directory.path());
        let mut trajectory = sample::trajectory(0, 4);
        for (number, step) in trajectory.steps.iter_mut().enumerate() {
            step.same_as_next_screenshot = None;
            step.reward.submit = number == 2;
            if number == 3 {
                continue;
            }
            let path = save_path.resolve_image(&step.observation.image_path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let shade = u8::from(number == 2);
            std::fs::write(path, png(png::ColorType::Grayscale, png::Compression::Fast, &[shade; 4]))
                .unwrap();
        }
        assert_eq!(fill(&mut trajectory, &save_path), 1);
        let flags: Vec<_> = trajectory.steps.iter().map(|step| step.same_as_next_screenshot).collect();
        assert_eq!(flags, [Some(true), Some(false), None, None]);
        assert_eq!(trajectory.metadata.keypoint_step_ids, [2]);
    }

    #[test]
    fn hash_is_sha256() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, b"abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).unwrap(), known);
    }
}
