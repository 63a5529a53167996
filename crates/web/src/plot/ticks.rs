//! Axis scales with tick marks at round numbers.

/// A linear scale with evenly spaced ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) step: f64,
}

impl Scale {
    /// Creates a scale from 0 to a round number at or above `highest`, with about `ticks` steps of 1, 2 or 5 times a power of
    /// ten.
    pub(super) fn from_zero(highest: f64, ticks: u32) -> Self {
        let highest = if highest.is_finite() && highest > 0.0 { highest.min(1e100) } else { 1.0 };
        let step = round_step(highest / f64::from(ticks.max(1)));
        Self { low: 0.0, high: (highest / step - 1e-9).ceil() * step, step }
    }

    /// Creates a scale of whole numbers from `first` to `last`.
    pub(super) fn whole(first: u64, last: u64, ticks: u32) -> Self {
        let (low, high) = (first as f64, last as f64);
        if first == last {
            return Self { low: low - 0.5, high: low + 0.5, step: 1.0 };
        }
        let step = round_step((high - low) / f64::from(ticks.max(1))).max(1.0);
        Self { low, high, step }
    }

    /// Returns the values at which ticks are drawn.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let first = (self.low / self.step - 1e-9).ceil();
        let last = (self.high / self.step + 1e-9).floor();
        let count = (last - first).clamp(0.0, 1000.0) as u32;
        (0..=count).map(|number| (first + f64::from(number)) * self.step).collect()
    }

    /// Maps a value to its position on the scale: 0 at the low end, 1 at the high end.
    pub(super) fn position(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough - 1e-12);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_values() {
        let table: [(f64, &[f64]); 5] = [
            (1.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (0.93, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (17.3, &[0.0, 5.0, 10.0, 15.0, 20.0]),
            (456.0, &[0.0, 100.0, 200.0, 300.0, 400.0, 500.0]),
            (0.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ];
        for (highest, wanted) in table {
            let ticks = Scale::from_zero(highest, 5).ticks();
            let close = ticks.iter().zip(wanted).all(|(tick, wanted)| (tick - wanted).abs() < 1e-9);
            assert!(close && ticks.len() == wanted.len(), "{highest}: {ticks:?}");
        }
        for extreme in [f64::NAN, f64::INFINITY, -3.0, 1e-300, 1e300] {
            assert!(Scale::from_zero(extreme, 5).ticks().len() <= 12, "{extreme}");
        }
    }

    #[test]
    fn iteration_ticks_are_whole_numbers() {
        assert_eq!(Scale::whole(0, 4, 6).ticks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::whole(0, 100, 6).ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::whole(7, 7, 6).ticks(), [7.0]);
        assert!((Scale::whole(7, 7, 6).position(7.0) - 0.5).abs() < 1e-9);
    }
}
