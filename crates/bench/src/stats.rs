//! Medians, percentiles and spread.

/// The value below which this share of the sample lies; 0 for an empty one.
pub(crate) fn percentile(sample: &[f64], share: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1).min(last)).copied().unwrap_or(0.0)
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

/// From the least to the most.
pub(crate) fn spread(sample: &[f64]) -> (f64, f64) {
    let least = sample.iter().copied().fold(f64::INFINITY, f64::min);
    let most = sample.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians_are_values_of_the_sample() {
        let sample: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&sample, 0.5), 50.0);
        assert_eq!(percentile(&sample, 0.99), 99.0);
        assert_eq!(percentile(&sample, 1.0), 100.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }
}
