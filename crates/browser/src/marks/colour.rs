//! The colours of the marks: far apart for neighbouring numbers, the same for a number every time.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Successive multiples of it never come close to each other on the colour wheel.
const GOLDEN_ANGLE: f64 = 137.507_764;

impl Colour {
    pub(crate) fn of_mark(shown: usize) -> Self {
        let hue = (shown as f64 * GOLDEN_ANGLE) % 360.0;
        // Two depths, so that the wheel's second round differs from its first.
        let lightness = if shown.is_multiple_of(2) { 0.38 } else { 0.48 };
        Self::from_hsl(hue, 0.82, lightness)
    }

    fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> Self {
        let reach = saturation * lightness.min(1.0 - lightness);
        let channel = |shift: f64| {
            let k = (shift + hue / 30.0) % 12.0;
            let value = lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        };
        Self(channel(0.0), channel(8.0), channel(4.0))
    }

    /// Black or white, whichever can be read on this colour.
    pub(crate) fn readable_text(self) -> Self {
        if self.luminance() > 0.36 { Self(0, 0, 0) } else { Self(255, 255, 255) }
    }

    fn luminance(self) -> f64 {
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_clearly_and_text_can_be_read() {
        let contrast = |a: f64, b: f64| (a.max(b) + 0.05) / (a.min(b) + 0.05);
        for shown in 1..2000 {
            let (one, next) = (Colour::of_mark(shown), Colour::of_mark(shown + 1));
            let apart = [(one.0, next.0), (one.1, next.1), (one.2, next.2)]
                .iter()
                .map(|(a, b)| i32::from(*a).abs_diff(i32::from(*b)))
                .sum::<u32>();
            assert!(apart > 100, "{shown}: {one:?} {next:?}");
            assert_eq!(one, Colour::of_mark(shown));
            let text = one.readable_text().luminance();
            assert!(contrast(one.luminance(), text) > 2.4, "{shown}: {one:?}");
        }
    }

    /// The viewer finds a mark on a picture by these (crates/web/ui/src/viewer/trajectory/markBox.ts).
    #[test]
    fn the_colours_are_those_that_the_viewer_looks_for() {
        let colours = [1, 2, 14].map(Colour::of_mark);
        assert_eq!(colours, [Colour(22, 223, 81), Colour(110, 17, 176), Colour(17, 176, 31)]);
    }
}
