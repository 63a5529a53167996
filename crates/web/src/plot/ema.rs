//! Exponential moving average: each smoothed value is `alpha` × the new value + (1 − `alpha`) × the previous one.

/// The weight of the new value: 1 leaves the curve unchanged, values near 0 smooth it strongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema(f64);

impl Ema {
    pub fn new(alpha: f64) -> Result<Self, String> {
        if alpha > 0.0 && alpha <= 1.0 {
            Ok(Self(alpha))
        } else {
            Err(format!("ema is {alpha}; it must be above 0 and at most 1"))
        }
    }

    pub const fn alpha(self) -> f64 {
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
                    previous.map_or(value, |previous| self.0.mul_add(value, (1.0 - self.0) * previous));
                previous = Some(smoothed);
                previous
            })
            .collect()
    }
}

impl std::str::FromStr for Ema {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let alpha = text.parse().map_err(|_| format!("ema is {text:?}; it must be a number such as 0.4"))?;
        Self::new(alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_smoothed_and_gaps_stay() {
        let ema = Ema::new(0.25).unwrap();
        let values = [Some(1.0), Some(0.0), None, Some(0.0)];
        assert_eq!(ema.smooth(&values), [Some(1.0), Some(0.75), None, Some(0.5625)]);
        assert_eq!(Ema::new(1.0).unwrap().smooth(&values), values);
    }

    #[test]
    fn alpha_out_of_range_is_refused() {
        for text in ["0", "1.1", "-0.1", "NaN", "x", "inf"] {
            assert!(text.parse::<Ema>().is_err(), "{text}");
        }
        assert_eq!("0.6".parse::<Ema>().map(Ema::alpha), Ok(0.6));
    }
}
