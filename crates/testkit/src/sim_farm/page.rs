//! The simulated page of a lease, and its screenshots.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::OnceLock,
};

use bytes::Bytes;

const VARIANTS: u64 = 64;

pub(super) struct Page {
    pub(super) lease: usize,
    history: Vec<String>,
    view: u64,
    /// The archive lacked a request of this page.
    pub(super) is_incomplete: bool,
}

impl Page {
    pub(super) fn new(lease: usize) -> Self {
        Self { lease, history: Vec::new(), view: 0, is_incomplete: false }
    }

    pub(super) fn url(&self) -> &str {
        self.history.last().map_or("about:blank", String::as_str)
    }

    pub(super) fn title(&self) -> String {
        format!("Page {} of {}", self.view, self.url())
    }

    pub(super) fn visit(&mut self, url: &str) {
        self.history.push(url.to_owned());
        self.view = 0;
    }

    pub(super) fn back(&mut self) {
        if self.history.len() > 1 {
            self.history.pop();
            self.view = 0;
        }
    }

    pub(super) fn change(&mut self) {
        self.view += 1;
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.url(), self.view).hash(&mut hasher);
        hasher.finish()
    }
}

/// The encoding of a screenshot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Png,
    Jpeg,
}

impl Encoding {
    /// Returns the encoding that a request asks for.
    pub(super) fn requested(format: &str) -> Self {
        if format == "jpeg" { Self::Jpeg } else { Self::Png }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
        }
    }
}

/// Generates screenshots: equal pages give equal images.
pub(super) struct Screenshots {
    real_size: bool,
    /// Large screenshots by encoding, made when they are first asked for.
    large: [OnceLock<Vec<Bytes>>; 2],
}

impl Screenshots {
    pub(super) const fn new(real_size: bool) -> Self {
        Self { real_size, large: [OnceLock::new(), OnceLock::new()] }
    }

    /// Returns the screenshot of a page. A page that was never opened is white, as in a browser.
    pub(super) fn take(&self, page: &Page, white: bool, encoding: Encoding) -> Bytes {
        if white || page.url() == "about:blank" {
            blank(if self.real_size { (1280, 768) } else { (8, 8) }, encoding)
        } else if self.real_size {
            let noisy_images =
                || (0..VARIANTS).map(|seed| noisy(1280, 768, 20_000, seed, encoding)).collect();
            let large = self.large[encoding as usize].get_or_init(noisy_images);
            large[(page.fingerprint() % VARIANTS) as usize].clone()
        } else {
            noisy(8, 8, 64, page.fingerprint(), encoding)
        }
    }
}

fn blank((width, height): (u32, u32), encoding: Encoding) -> Bytes {
    encode(width, height, &vec![255; (width * height * 3) as usize], encoding)
}

/// Encodes a grey image with this many noisy pixels, which determine the size because they do not compress.
fn noisy(width: u32, height: u32, noisy: usize, seed: u64, encoding: Encoding) -> Bytes {
    let mut pixels = vec![200; (width * height * 3) as usize];
    let mut random = seed | 1;
    for pixel in pixels.iter_mut().take(noisy * 3) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *pixel = (random >> 33) as u8;
    }
    encode(width, height, &pixels, encoding)
}

fn encode(width: u32, height: u32, pixels: &[u8], encoding: Encoding) -> Bytes {
    let mut bytes = Vec::new();
    if encoding == Encoding::Jpeg {
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, 80);
        encoder.encode(pixels, width as u16, height as u16, jpeg_encoder::ColorType::Rgb).unwrap();
        return bytes.into();
    }
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes.into()
}
