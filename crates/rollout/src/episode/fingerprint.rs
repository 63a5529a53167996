//! A fingerprint of a screenshot: compares screenshots by their pixels and recognises blank ones without keeping them. The same
//! encoder writes equal pixels as equal bytes, in PNG and in JPEG.

use std::{fmt, io};

use proto::ImageFormat;
use xxhash_rust::xxh3::Xxh3Default;

use super::white_jpeg;

/// A hash of a screenshot, and whether it is blank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    digest: u128,
    blank: bool,
}

impl Fingerprint {
    pub fn of(image: &[u8]) -> Self {
        let mut hasher = Xxh3Default::new();
        match pixel_chunks(image) {
            Some(chunks) => chunks.for_each(|chunk| hasher.update(chunk)),
            None => hasher.update(image),
        }
        Self { digest: hasher.digest128(), blank: is_blank(image) }
    }

    pub const fn is_blank(self) -> bool {
        self.blank
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.digest)
    }
}

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Returns the chunks of a PNG that determine its pixels. Comparing them is as good as decoding and much cheaper.
fn pixel_chunks(image: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut rest = image.strip_prefix(PNG_SIGNATURE)?;
    let chunks = std::iter::from_fn(move || {
        loop {
            let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
            let chunk = rest.get(4..8usize.checked_add(length)?)?;
            rest = rest.get(length + 12..).unwrap_or_default();
            // An upper-case first letter marks a critical chunk; others, such as time stamps, do not affect pixels.
            if chunk.first().is_some_and(u8::is_ascii_uppercase) {
                return Some(chunk);
            }
        }
    });
    Some(chunks)
}

/// Returns whether all pixels are white. Only a small PNG can be blank, so large ones are not decoded.
fn is_blank(image: &[u8]) -> bool {
    const MAX_BLANK_BYTES: usize = 64 << 10;
    if ImageFormat::of(image) == Some(ImageFormat::Jpeg) {
        return white_jpeg::is_white(image);
    }
    if image.len() > MAX_BLANK_BYTES {
        return false;
    }
    let mut decoder = png::Decoder::new(io::Cursor::new(image));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let Ok(mut reader) = decoder.read_info() else { return false };
    let mut rows = 0;
    loop {
        match reader.next_row() {
            Ok(Some(row)) if row.data().iter().all(|value| *value == 255) => rows += 1,
            Ok(None) => return rows > 0,
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(pixels: &[u8], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, pixels.len() as u32 / 3 / width);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        bytes
    }

    #[test]
    fn only_an_all_white_image_is_blank() {
        let mut pixels = vec![255; 64 * 64 * 3];
        assert!(is_blank(&png(&pixels, 64)));
        pixels[5000] = 254;
        assert!(!is_blank(&png(&pixels, 64)));
        assert!(!is_blank(b"not an image"));
    }

    fn jpeg(pixels: &[u8], width: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let height = (pixels.len() / 3 / usize::from(width)) as u16;
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, 80);
        encoder.encode(pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
        bytes
    }

    #[test]
    fn only_an_all_white_jpeg_is_blank() {
        // The sides are not multiples of a block, so that the last blocks are filled up.
        let (width, height) = (100, 60);
        let mut pixels = vec![255; width * height * 3];
        let white = jpeg(&pixels, width as u16);
        assert!(is_blank(&white));
        assert!(is_blank(include_bytes!("../../tests/data/white_chromium.jpg")), "as Chromium writes it");
        for pixel in [0, 50, 3000, width * height - 1] {
            pixels[pixel * 3..pixel * 3 + 3].fill(200);
            assert!(!is_blank(&jpeg(&pixels, width as u16)), "pixel {pixel}");
            pixels[pixel * 3..pixel * 3 + 3].fill(255);
        }
        for colour in [[0, 0, 0], [253, 253, 253], [255, 255, 200], [200, 255, 255]] {
            assert!(!is_blank(&jpeg(&colour.repeat(width * height), width as u16)), "{colour:?}");
        }
        for length in 0..white.len() - 3 {
            assert!(!is_blank(&white[..length]), "cut off after {length} bytes");
        }
    }

    #[test]
    fn time_stamp_does_not_change_fingerprint() {
        let plain = png(&[7; 48], 4);
        let mut stamped = plain[..33].to_vec();
        stamped.extend(b"\x00\x00\x00\x07tIME\x07\xea\x0b\x0f\x0a\x00\x00\x00\x00\x00\x00");
        stamped.extend(&plain[33..]);
        assert_eq!(Fingerprint::of(&plain), Fingerprint::of(&stamped));
        assert_ne!(Fingerprint::of(&plain), Fingerprint::of(&png(&[8; 48], 4)));
        assert_ne!(Fingerprint::of(b"x"), Fingerprint::of(b"y"));
    }
}
