//! An RGB image in memory and the drawing operations on it. All drawing is clipped to the image.

use super::colour::Colour;

/// A rectangle of pixels. Half-open: `right` and `bottom` are the first pixels outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) left: i64,
    pub(crate) top: i64,
    pub(crate) right: i64,
    pub(crate) bottom: i64,
}

impl Area {
    /// Returns the area with a margin around it.
    pub(crate) fn grown(self, margin: i64) -> Self {
        Self {
            left: self.left.saturating_sub(margin),
            top: self.top.saturating_sub(margin),
            right: self.right.saturating_add(margin),
            bottom: self.bottom.saturating_add(margin),
        }
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }

    /// The number of pixels; 0 if the edges are reversed.
    pub(crate) fn size(self) -> i64 {
        let width = self.right.saturating_sub(self.left).max(0);
        width.saturating_mul(self.bottom.saturating_sub(self.top).max(0))
    }

    /// The number of pixels that both areas contain.
    pub(crate) fn overlap(self, other: Self) -> i64 {
        let common = Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        common.size()
    }
}

/// An RGB image, three bytes per pixel.
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Returns `None` if the number of bytes does not fit the size.
    pub(crate) fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        (pixels.len() == width as usize * height as usize * 3).then_some(Self { width, height, pixels })
    }

    #[cfg(test)]
    pub(crate) fn filled(width: u32, height: u32, colour: Colour) -> Self {
        let pixels = [colour.0, colour.1, colour.2].repeat(width as usize * height as usize);
        Self { width, height, pixels }
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn height(&self) -> u32 {
        self.height
    }

    pub(crate) fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    #[cfg(test)]
    pub(crate) fn pixel(&self, x: u32, y: u32) -> Colour {
        let index = (y as usize * self.width as usize + x as usize) * 3;
        Colour(self.pixels[index], self.pixels[index + 1], self.pixels[index + 2])
    }

    /// Clips an area to the image: left, top, right, bottom.
    fn clip(&self, area: Area) -> (usize, usize, usize, usize) {
        let (width, height) = (i64::from(self.width), i64::from(self.height));
        let x = |value: i64| value.clamp(0, width) as usize;
        let y = |value: i64| value.clamp(0, height) as usize;
        (x(area.left), y(area.top), x(area.right), y(area.bottom))
    }

    /// Fills the area with a colour of the given opacity, from 0 to 255.
    pub(crate) fn blend(&mut self, area: Area, colour: Colour, opacity: u8) {
        let (left, top, right, bottom) = self.clip(area);
        if left >= right {
            return;
        }
        for y in top..bottom {
            let row = y * self.width as usize;
            for pixel in self.pixels[(row + left) * 3..(row + right) * 3].chunks_exact_mut(3) {
                mix(pixel, colour, opacity);
            }
        }
    }

    pub(crate) fn blend_pixel(&mut self, x: i64, y: i64, colour: Colour, opacity: u8) {
        self.blend(Area { left: x, top: y, right: x + 1, bottom: y + 1 }, colour, opacity);
    }

    /// Draws a border of the given thickness just inside the area.
    pub(crate) fn outline(&mut self, area: Area, colour: Colour, thickness: i64) {
        let Area { left, top, right, bottom } = area;
        let inner_top = top.saturating_add(thickness).min(bottom);
        let inner_bottom = bottom.saturating_sub(thickness).max(inner_top);
        self.blend(Area { bottom: inner_top, ..area }, colour, 255);
        self.blend(Area { top: inner_bottom, ..area }, colour, 255);
        let sides = Area { left, top: inner_top, right, bottom: inner_bottom };
        self.blend(Area { right: left.saturating_add(thickness).min(right), ..sides }, colour, 255);
        self.blend(Area { left: right.saturating_sub(thickness).max(left), ..sides }, colour, 255);
    }
}

fn mix(pixel: &mut [u8], colour: Colour, opacity: u8) {
    let alpha = u32::from(opacity);
    for (value, target) in pixel.iter_mut().zip([colour.0, colour.1, colour.2]) {
        *value = ((u32::from(*value) * (255 - alpha) + u32::from(target) * alpha + 127) / 255) as u8;
    }
}
