//! Exponential moving average: each smoothed value is `weight` × the previous one + (1 − `weight`) × the new value.

/// The weight of the previous value: 0 leaves the curve unchanged, values near 1 smooth it strongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema(f64);

impl Ema {
    pub fn new(weight: f64) -> Result<Self, String> {
        if (0.0..1.0).contains(&weight) {
            Ok(Self(weight))
        } else {
            Err(format!("ema is {weight}; it must be at least 0 and less than 1"))
        }
    }

    pub const fn weight(self) -> f64 {
        self.0
    }

    /// Smooths the values, starting from the first one. Gaps stay gaps and do not influence later values.
    pub fn smooth(self, values: &[Option<f64>]) -> Vec<Option<f64>> {
        let mut previous: Option<f64> = None;
        values
            .iter()
            .map(|value| {
                let value = (*value)?;
                let smoothed =
                    previous.map_or(value, |previous| self.0.mul_add(previous, (1.0 - self.0) * value));
                previous = Some(smoothed);
                previous
            })
            .collect()
    }
}

impl std::str::FromStr for Ema {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let weight = text.parse().map_err(|_| format!("ema is {text:?}; it must be a number such as 0.6"))?;
        Self::new(weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_smoothed_and_gaps_stay() {
        let ema = Ema::new(0.5).unwrap();
        let values = [Some(1.0), Some(0.0), None, Some(0.0)];
        assert_eq!(ema.smooth(&values), [Some(1.0), Some(0.5), None, Some(0.25)]);
        assert_eq!(Ema::new(0.0).unwrap().smooth(&values), values);
    }

    #[test]
    fn weight_out_of_range_is_refused() {
        for text in ["1", "-0.1", "NaN", "x", "inf"] {
            assert!(text.parse::<Ema>().is_err(), "{text}");
        }
        assert_eq!("0.6".parse::<Ema>().map(Ema::weight), Ok(0.6));
    }
}
