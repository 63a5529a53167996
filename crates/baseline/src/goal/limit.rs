//! Limits a task sets: at most, at least, before, since.

use crate::{
    values::{self, Date},
    words::{Token, content, tokens},
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Number { value: f64, money: bool },
    Day(Date),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) bound: Bound,
    /// At most, rather than at least.
    pub(crate) upper: bool,
    /// Stems that stand near it.
    pub(crate) near: Vec<String>,
}

const UPPER_AFTER: [&str; 6] = ["less", "below", "under", "cheaper", "fewer", "lower"];
const LOWER_AFTER: [&str; 6] = ["more", "better", "above", "over", "higher", "up"];
const UPPER_BEFORE: [&str; 8] = ["under", "below", "most", "to", "maximum", "than", "before", "until"];
const LOWER_BEFORE: [&str; 7] = ["over", "above", "least", "minimum", "from", "since", "after"];

pub(super) fn read(text: &str) -> Vec<Limit> {
    let all = tokens(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let dates = values::dates(text);
    let mut found = Vec::new();
    for (date, written) in &dates {
        let Some(start) = text.find(written.as_str()) else { continue };
        let first = all.iter().position(|token| token.end > start).unwrap_or(0);
        if let Some(upper) = direction(&lower, first, first + 2) {
            found.push(Limit { bound: Bound::Day(date.clone()), upper, near: near(text, start) });
        }
    }
    for amount in values::amounts(text) {
        let in_date = dates.iter().any(|(_, written)| {
            text.find(written.as_str()).is_some_and(|at| (at..at + written.len()).contains(&amount.at))
        });
        let place = all.iter().position(|token| token.end > amount.at).unwrap_or(0);
        if !in_date && let Some(upper) = direction(&lower, place, place) {
            let bound = Bound::Number { value: amount.value, money: amount.money };
            found.push(Limit { bound, upper, near: near(text, amount.at) });
        }
    }
    found
}

/// What stands behind counts more than what stands before: `up to $5 or more` is a lower limit.
fn direction(lower: &[String], first: usize, last: usize) -> Option<bool> {
    let word = |place: usize| lower.get(place).map_or("", String::as_str);
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

fn near(text: &str, at: usize) -> Vec<String> {
    let from = text[..at].char_indices().rev().nth(40).map_or(0, |(place, _)| place);
    let to = text[at..].char_indices().nth(30).map_or(text.len(), |(place, _)| at + place);
    content(text.get(from..to).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_direction() {
        for (text, upper) in [
            ("cost $80 or less", true),
            ("under $80", true),
            ("rated 4.5 or better", false),
            ("at least 3 stars", false),
            ("pay up to $75,000 or more", false),
            ("with fewer than 100 employees", true),
            ("older than 75 years", false),
            ("posted on or after 1 May 2025", false),
        ] {
            let found = read(text);
            assert_eq!(found.len(), 1, "{text} {found:?}");
            assert_eq!(found[0].upper, upper, "{text}");
        }
    }

    #[test]
    fn mere_numbers_limit_nothing() {
        assert!(read("Press it 3 times on page 12, then go to 5").is_empty());
        assert!(matches!(read("since 1 May 2025")[0].bound, Bound::Day(_)));
    }
}
