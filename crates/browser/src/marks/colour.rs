//! The colours of the marks: clearly different for successive numbers, and always the same for the same number.

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// In degrees. Successive multiples are far apart on the colour wheel.
const GOLDEN_ANGLE: f64 = 137.507_764;

impl Colour {
    pub(crate) fn of_mark(number: usize) -> Self {
        let hue = (number as f64 * GOLDEN_ANGLE) % 360.0;
        // Two values of lightness, so that similar hues of different rounds differ.
        let lightness = if number.is_multiple_of(2) { 0.38 } else { 0.48 };
        Self::from_hsl(hue, 0.82, lightness)
    }

    fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> Self {
        let amplitude = saturation * lightness.min(1.0 - lightness);
        let channel = |shift: f64| {
            let k = (shift + hue / 30.0) % 12.0;
            let value = lightness - amplitude * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        };
        Self(channel(0.0), channel(8.0), channel(4.0))
    }

    /// Returns black or white, whichever is readable on this colour.
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
    fn successive_colours_differ_and_text_is_readable() {
        let contrast = |a: f64, b: f64| (a.max(b) + 0.05) / (a.min(b) + 0.05);
        for number in 1..2000 {
            let (colour, next) = (Colour::of_mark(number), Colour::of_mark(number + 1));
            let distance = [(colour.0, next.0), (colour.1, next.1), (colour.2, next.2)]
                .iter()
                .map(|(a, b)| i32::from(*a).abs_diff(i32::from(*b)))
                .sum::<u32>();
            assert!(distance > 100, "{number}: {colour:?} {next:?}");
            assert_eq!(colour, Colour::of_mark(number));
            let text = colour.readable_text().luminance();
            assert!(contrast(colour.luminance(), text) > 2.4, "{number}: {colour:?}");
        }
    }

    /// The viewer detects marks on a screenshot by these colours (crates/web/ui/src/viewer/trajectory/markBox.ts).
    #[test]
    fn colours_match_those_of_the_viewer() {
        let colours = [1, 2, 14].map(Colour::of_mark);
        assert_eq!(colours, [Colour(22, 223, 81), Colour(110, 17, 176), Colour(17, 176, 31)]);
    }
}
