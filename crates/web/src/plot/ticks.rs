//! Where an axis has its marks: round numbers, few enough to be read.

/// A scale from values to a length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) step: f64,
}

impl Scale {
    /// From 0 to a round number at or above `highest`, in about `marks` steps of 1, 2 or 5 times a power of ten.
    pub(super) fn from_zero(highest: f64, marks: u32) -> Self {
        let highest = if highest.is_finite() && highest > 0.0 { highest.min(1e100) } else { 1.0 };
        let step = round_step(highest / f64::from(marks.max(1)));
        Self { low: 0.0, high: (highest / step - 1e-9).ceil() * step, step }
    }

    /// Whole numbers from `first` to `last`.
    pub(super) fn whole(first: u64, last: u64, marks: u32) -> Self {
        let (low, high) = (first as f64, last as f64);
        if first == last {
            return Self { low: low - 0.5, high: low + 0.5, step: 1.0 };
        }
        let step = round_step((high - low) / f64::from(marks.max(1))).max(1.0);
        Self { low, high, step }
    }

    pub(super) fn marks(&self) -> Vec<f64> {
        let first = (self.low / self.step - 1e-9).ceil();
        let last = (self.high / self.step + 1e-9).floor();
        let count = (last - first).clamp(0.0, 1000.0) as u32;
        (0..=count).map(|number| (first + f64::from(number)) * self.step).collect()
    }

    /// 0 at the low end, 1 at the high end.
    pub(super) fn part(&self, value: f64) -> f64 {
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
    fn marks_are_round_and_cover_the_values() {
        let table: [(f64, &[f64]); 5] = [
            (1.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (0.93, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (17.3, &[0.0, 5.0, 10.0, 15.0, 20.0]),
            (456.0, &[0.0, 100.0, 200.0, 300.0, 400.0, 500.0]),
            (0.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ];
        for (highest, wanted) in table {
            let marks = Scale::from_zero(highest, 5).marks();
            let close = marks.iter().zip(wanted).all(|(mark, wanted)| (mark - wanted).abs() < 1e-9);
            assert!(close && marks.len() == wanted.len(), "{highest}: {marks:?}");
        }
        for odd in [f64::NAN, f64::INFINITY, -3.0, 1e-300, 1e300] {
            assert!(Scale::from_zero(odd, 5).marks().len() <= 12, "{odd}");
        }
    }

    #[test]
    fn iterations_are_whole_numbers() {
        assert_eq!(Scale::whole(0, 4, 6).marks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::whole(0, 100, 6).marks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::whole(7, 7, 6).marks(), [7.0]);
        assert!((Scale::whole(7, 7, 6).part(7.0) - 0.5).abs() < 1e-9);
    }
}
