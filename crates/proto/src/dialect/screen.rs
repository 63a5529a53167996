//! The coordinate systems of the dialects, and their conversion to CSS pixels of the viewport.

use super::{Dialect, Failure, ParseOptions, Version};
use crate::command::Point;

/// A size in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

/// What the model sees and where the mouse is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    pub viewport: Size,
    /// The size of the screenshots that the model is shown.
    pub display: Size,
    /// Where the mouse is, in CSS pixels of the viewport.
    pub cursor: Point,
}

/// A part of the viewport, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// The bounds of a side of the display.
const DISPLAY_SIDE: std::ops::RangeInclusive<u32> = 64..=4096;

/// Checks that screenshots of a viewport can be scaled to a display.
pub fn check_display(display: Size, viewport: Size) -> Result<(), String> {
    if !DISPLAY_SIDE.contains(&display.width) || !DISPLAY_SIDE.contains(&display.height) {
        return Err(format!(
            "display is {} by {} pixels; each side must have {} to {}",
            display.width,
            display.height,
            DISPLAY_SIDE.start(),
            DISPLAY_SIDE.end()
        ));
    }
    let expected = f64::from(viewport.height) * f64::from(display.width) / f64::from(viewport.width);
    if (f64::from(display.height) - expected).abs() > 1.0 {
        return Err(format!(
            "display is {} by {} pixels; it must have the aspect ratio of the viewport, which is {} by {}: a display of \
             this width has a height of {expected:.0}. The session option viewport changes the viewport",
            display.width, display.height, viewport.width, viewport.height
        ));
    }
    Ok(())
}

/// Sides are multiples of this: a patch of 14 pixels, merged two by two.
const FACTOR: f64 = 28.0;
const QWEN_MIN_PIXELS: f64 = 4.0 * FACTOR * FACTOR;
const UI_TARS_MIN_PIXELS: f64 = 100.0 * FACTOR * FACTOR;
const MAX_PIXELS: f64 = 16_384.0 * FACTOR * FACTOR;

/// Returns the size to which Qwen2.5-VL, and UI-TARS 1.5 after it, resizes an image.
fn smart_resize(size: Size, min_pixels: f64) -> Size {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let nearest = |side: f64| ((side / FACTOR).round_ties_even() * FACTOR).max(FACTOR);
    let (mut new_width, mut new_height) = (nearest(width), nearest(height));
    if new_width * new_height > MAX_PIXELS {
        let shrink = (width * height / MAX_PIXELS).sqrt();
        let down = |side: f64| ((side / shrink / FACTOR).floor() * FACTOR).max(FACTOR);
        (new_width, new_height) = (down(width), down(height));
    } else if new_width * new_height < min_pixels {
        let grow = (min_pixels / (width * height)).sqrt();
        let up = |side: f64| (side * grow / FACTOR).ceil() * FACTOR;
        (new_width, new_height) = (up(width), up(height));
    }
    Size { width: new_width as u32, height: new_height as u32 }
}

/// Grids have 1000 units on each side, whatever the size of the display is.
const GRID: Size = Size { width: 1000, height: 1000 };

/// Converts the coordinates of one dialect and follows the mouse.
#[derive(Debug)]
pub(super) struct Pointer {
    screen: Screen,
    /// The size of the model's coordinate system.
    units: Size,
    /// The vendor's code truncates to whole pixels; otherwise they are rounded.
    truncates: bool,
}

/// Returns the size of the coordinate system in which a model sees a display.
pub fn coordinate_size(dialect: Dialect, version: Option<Version>, display: Size) -> Size {
    match (dialect, version) {
        (Dialect::OpenAi | Dialect::Anthropic, _) => display,
        (Dialect::Qwen, Some(Version::Qwen25)) => smart_resize(display, QWEN_MIN_PIXELS),
        (Dialect::UiTars, None | Some(Version::UiTars15)) => smart_resize(display, UI_TARS_MIN_PIXELS),
        (Dialect::Gemini | Dialect::Qwen | Dialect::UiTars, _) => GRID,
    }
}

impl Pointer {
    pub(super) fn new(options: &ParseOptions) -> Self {
        let units = coordinate_size(options.dialect, options.version, options.screen.display);
        let truncates = matches!(options.dialect, Dialect::Gemini | Dialect::UiTars);
        Self { screen: options.screen, units, truncates }
    }

    pub(super) fn cursor(&self) -> Point {
        self.screen.cursor
    }

    pub(super) fn viewport(&self) -> Size {
        self.screen.viewport
    }

    /// Converts a point and moves the mouse there.
    pub(super) fn move_to(&mut self, x: f64, y: f64) -> Result<Point, Failure> {
        self.screen.cursor = self.convert(x, y)?;
        Ok(self.screen.cursor)
    }

    fn convert(&self, x: f64, y: f64) -> Result<Point, Failure> {
        let Size { width, height } = self.units;
        let inside = |value: f64, max: u32| (0.0..=f64::from(max)).contains(&value);
        if !inside(x, width) || !inside(y, height) {
            return Err(Failure::Invalid(format!(
                "the coordinates ({x}, {y}) are out of bounds; they must be from (0, 0) to ({width}, {height})"
            )));
        }
        let viewport = self.screen.viewport;
        let scale = |value: f64, units: u32, size: u32| {
            let pixel = value * f64::from(size) / f64::from(units);
            let whole = if self.truncates { pixel.floor() } else { pixel.round() };
            whole.min(f64::from(size) - 1.0)
        };
        Ok(Point { x: scale(x, width, viewport.width), y: scale(y, height, viewport.height) })
    }

    /// Converts a distance in units of the dialect.
    pub(super) fn distance(&self, dx: f64, dy: f64) -> (f64, f64) {
        let viewport = self.screen.viewport;
        let scale = |value: f64, units: u32, size: u32| value * f64::from(size) / f64::from(units);
        (scale(dx, self.units.width, viewport.width), scale(dy, self.units.height, viewport.height))
    }

    /// Converts a rectangle, given by its top left and bottom right corners.
    pub(super) fn region(&self, [left, top, right, bottom]: [f64; 4]) -> Result<Region, Failure> {
        let Size { width, height } = self.units;
        let ordered = 0.0 <= left && left < right && 0.0 <= top && top < bottom;
        if !ordered || right > f64::from(width) || bottom > f64::from(height) {
            return Err(Failure::Invalid(format!(
                "the region [{left}, {top}, {right}, {bottom}] must be [x0, y0, x1, y1] with x0 < x1 and y0 < y1, from (0, 0) to \
                 ({width}, {height})"
            )));
        }
        let ((x, y), (width, height)) = (self.distance(left, top), self.distance(right - left, bottom - top));
        Ok(Region { x, y, width: width.max(1.0), height: height.max(1.0) })
    }

    /// Returns where the mouse is, in pixels of the display.
    pub(super) fn cursor_on_display(&self) -> (u32, u32) {
        let Screen { viewport, display, cursor } = self.screen;
        let scale = |value: f64, size: u32, display: u32| {
            (value * f64::from(display) / f64::from(size)).round().min(f64::from(display) - 1.0) as u32
        };
        (scale(cursor.x, viewport.width, display.width), scale(cursor.y, viewport.height, display.height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resized_images_have_the_sizes_of_the_reference() {
        let cases = [
            ((1024, 768), (1036, 756)),
            ((1280, 720), (1288, 728)),
            ((1280, 800), (1288, 812)),
            ((1366, 768), (1372, 756)),
            ((1440, 900), (1428, 896)),
            ((1920, 1080), (1932, 1092)),
            ((3840, 2160), (3836, 2156)),
        ];
        for ((width, height), expected) in cases {
            for min_pixels in [QWEN_MIN_PIXELS, UI_TARS_MIN_PIXELS] {
                let resized = smart_resize(Size { width, height }, min_pixels);
                assert_eq!((resized.width, resized.height), expected, "{width} by {height}");
            }
        }
        let small = smart_resize(Size { width: 140, height: 84 }, UI_TARS_MIN_PIXELS);
        assert_eq!((small.width, small.height), (364, 224));
    }

    #[test]
    fn display_must_have_the_aspect_ratio_of_the_viewport() {
        let viewport = Size { width: 1280, height: 768 };
        let check = |width, height| check_display(Size { width, height }, viewport);
        for (width, height) in [(1280, 768), (640, 384), (1024, 614), (1024, 615), (2560, 1536)] {
            assert_eq!(check(width, height), Ok(()), "{width} by {height}");
        }
        let error = check(1024, 768).unwrap_err();
        assert!(error.contains("aspect ratio") && error.contains("a height of 614"), "{error}");
        for (width, height) in [(63, 38), (5000, 3000), (0, 0)] {
            assert!(check(width, height).unwrap_err().contains("64 to 4096"), "{width} by {height}");
        }
    }
}
