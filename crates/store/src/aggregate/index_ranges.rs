//! Ranges of trajectory indices: grouping, formatting and gaps.

/// Groups sorted indices into inclusive ranges: 1, 2, 3, 7 becomes 1–3 and 7–7.
pub(super) fn ranges(indices: &[i64]) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for index in indices {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *index => *end = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    ranges
}

pub(super) fn format_ranges(ranges: &[(i64, i64)]) -> String {
    let format_range = |(start, end): &(i64, i64)| {
        if start == end { start.to_string() } else { format!("{start}-{end}") }
    };
    ranges.iter().map(format_range).collect::<Vec<_>>().join(", ")
}

/// The ranges missing from sorted `indices`, which should be 0 to `count` - 1.
pub(super) fn gaps(indices: impl Iterator<Item = i64>, count: i64) -> Vec<(i64, i64)> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for index in indices.chain([count]) {
        if index > next {
            gaps.push((next, index - 1));
        }
        next = next.max(index.saturating_add(1));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_indices_become_ranges() {
        assert_eq!(format_ranges(&ranges(&[0, 1, 2, 5, 7, 8])), "0-2, 5, 7-8");
        assert_eq!(format_ranges(&ranges(&[])), "");
    }

    #[test]
    fn gaps_include_the_end_up_to_the_count() {
        assert_eq!(gaps([0, 1, 4, 5].into_iter(), 8), [(2, 3), (6, 7)]);
        assert_eq!(gaps([0, 1].into_iter(), 0), []);
        assert_eq!(gaps([i64::MAX].into_iter(), 0), [(0, i64::MAX - 1)]);
        assert_eq!(gaps([].into_iter(), 3), [(0, 2)]);
    }
}
