//! Parses limits such as "at most", "at least", "before" and "since".

use crate::{
    nlp::{Token, content_stems, tokenize},
    values::{self, Date},
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Number { value: f64, is_money: bool },
    Day(Date),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) bound: Bound,
    /// Whether it is an upper limit.
    pub(crate) is_upper: bool,
    /// Stems of the words around the limit.
    pub(crate) nearby_stems: Vec<String>,
}

const UPPER_AFTER: [&str; 6] = ["less", "below", "under", "cheaper", "fewer", "lower"];
const LOWER_AFTER: [&str; 6] = ["more", "better", "above", "over", "higher", "up"];
const UPPER_BEFORE: [&str; 8] = ["under", "below", "most", "to", "maximum", "than", "before", "until"];
const LOWER_BEFORE: [&str; 7] = ["over", "above", "least", "minimum", "from", "since", "after"];

pub(super) fn parse(text: &str) -> Vec<Limit> {
    let all = tokenize(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let dates = values::dates(text);
    let mut found = Vec::new();
    for (date, written) in &dates {
        let Some(start) = text.find(written.as_str()) else { continue };
        let first = all.iter().position(|token| token.end > start).unwrap_or(0);
        if let Some(is_upper) = is_upper_limit(&lower, first, first + 2) {
            found.push(Limit {
                bound: Bound::Day(date.clone()),
                is_upper,
                nearby_stems: nearby_stems(text, start),
            });
        }
    }
    for amount in values::amounts(text) {
        let is_in_date = dates.iter().any(|(_, written)| {
            text.find(written.as_str())
                .is_some_and(|start| (start..start + written.len()).contains(&amount.start))
        });
        let index = all.iter().position(|token| token.end > amount.start).unwrap_or(0);
        if !is_in_date && let Some(is_upper) = is_upper_limit(&lower, index, index) {
            let bound = Bound::Number { value: amount.value, is_money: amount.is_money };
            found.push(Limit { bound, is_upper, nearby_stems: nearby_stems(text, amount.start) });
        }
    }
    found
}

/// Whether the words around the tokens `first..=last` set an upper or a lower limit. Words after them take precedence:
/// `up to $5 or more` is a lower limit.
fn is_upper_limit(lower: &[String], first: usize, last: usize) -> Option<bool> {
    let word = |index: usize| lower.get(index).map_or("", String::as_str);
    if ["or", "and"].contains(&word(last + 1)) {
        if UPPER_AFTER.contains(&word(last + 2)) {
            return Some(true);
        }
        if LOWER_AFTER.contains(&word(last + 2)) {
            return Some(false);
        }
    }
    let before = first.checked_sub(1).map_or("", &word);
    let earlier = first.checked_sub(2).map_or("", &word);
    match (earlier, before) {
        ("more" | "greater" | "higher" | "better" | "longer" | "older", "than") => Some(false),
        ("up", "to") | ("at", "most") => Some(true),
        (_, "to" | "most") => None,
        _ if UPPER_BEFORE.contains(&before) => Some(true),
        _ if LOWER_BEFORE.contains(&before) => Some(false),
        _ => None,
    }
}

fn nearby_stems(text: &str, position: usize) -> Vec<String> {
    let from = text[..position].char_indices().rev().nth(40).map_or(0, |(index, _)| index);
    let to = text[position..].char_indices().nth(30).map_or(text.len(), |(index, _)| position + index);
    content_stems(text.get(from..to).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_direction() {
        for (text, is_upper) in [
            ("cost $80 or less", true),
            ("under $80", true),
            ("rated 4.5 or better", false),
            ("at least 3 stars", false),
            ("pay up to $75,000 or more", false),
            ("with fewer than 100 employees", true),
            ("older than 75 years", false),
            ("posted on or after 1 May 2025", false),
        ] {
            let found = parse(text);
            assert_eq!(found.len(), 1, "{text} {found:?}");
            assert_eq!(found[0].is_upper, is_upper, "{text}");
        }
    }

    #[test]
    fn plain_numbers_are_not_limits() {
        assert!(parse("Press it 3 times on page 12, then go to 5").is_empty());
        assert!(matches!(parse("since 1 May 2025")[0].bound, Bound::Day(_)));
    }
}
