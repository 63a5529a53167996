//! The simulated page of a lease, and its screenshots.

use std::hash::{DefaultHasher, Hash, Hasher};

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

/// Generates screenshots: equal pages give equal images.
pub(super) struct Screenshots {
    white: Bytes,
    large: Vec<Bytes>,
}

impl Screenshots {
    pub(super) fn new(real_size: bool) -> Self {
        let large = if real_size {
            (0..VARIANTS).map(|seed| png(1280, 768, 20_000, seed)).collect()
        } else {
            Vec::new()
        };
        let white = if real_size { blank(1280, 768) } else { blank(8, 8) };
        Self { white, large }
    }

    /// Returns the screenshot of a page. A page that was never opened is white, as in a browser.
    pub(super) fn take(&self, page: &Page, white: bool) -> Bytes {
        if white || page.url() == "about:blank" {
            self.white.clone()
        } else if self.large.is_empty() {
            png(8, 8, 64, page.fingerprint())
        } else {
            self.large[(page.fingerprint() % VARIANTS) as usize].clone()
        }
    }
}

fn blank(width: u32, height: u32) -> Bytes {
    encode(width, height, &vec![255; (width * height * 3) as usize])
}

/// Encodes a grey image with this many noisy pixels, which determine the size because they do not compress.
fn png(width: u32, height: u32, noisy: usize, seed: u64) -> Bytes {
    let mut pixels = vec![200; (width * height * 3) as usize];
    let mut random = seed | 1;
    for pixel in pixels.iter_mut().take(noisy * 3) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *pixel = (random >> 33) as u8;
    }
    encode(width, height, &pixels)
}

fn encode(width: u32, height: u32, pixels: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes.into()
}
