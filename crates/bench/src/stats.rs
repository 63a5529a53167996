//! Medians, percentiles and ranges of samples.

/// The percentile given as a fraction (0.99 is the 99th); 0 for an empty sample.
pub(crate) fn percentile(sample: &[f64], fraction: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let rank = (sorted.len() as f64 * fraction).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied().unwrap_or(0.0)
}

pub(crate) fn median(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The smallest and the largest value.
pub(crate) fn range(sample: &[f64]) -> (f64, f64) {
    let min = sample.iter().copied().fold(f64::INFINITY, f64::min);
    let max = sample.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (min, max)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the results are exact")]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians_match_known_values() {
        let sample: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&sample, 0.5), 50.0);
        assert_eq!(percentile(&sample, 0.99), 99.0);
        assert_eq!(percentile(&sample, 1.0), 100.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(range(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }
}
