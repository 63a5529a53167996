//! Parses superlatives: the property, the direction, the rank and the number of things.

use crate::{
    nlp::{Token, is_stop_word, stem, tokenize},
    values,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superlative {
    /// Stems after the superlative in the task: `highest top salary`.
    pub(crate) explicit: Vec<String>,
    /// Stems that the superlative implies: `price` for `cheapest`.
    pub(crate) implied: Vec<String>,
    pub(crate) largest: bool,
    /// 1 for `longest`, 2 for `second longest`.
    pub(crate) rank: usize,
    /// 3 for `the three largest`.
    pub(crate) count: usize,
}

/// Superlative, implied properties, and whether the largest value is meant.
const SUPERLATIVES: &[(&str, &str, bool)] = &[
    ("cheapest", "price", false),
    ("cheaper", "price", false),
    ("dearest", "price", true),
    ("priciest", "price", true),
    ("newest", "posted date", true),
    ("latest", "posted date", true),
    ("oldest", "age founded date", false),
    ("longest", "length pages", true),
    ("longer", "length pages", true),
    ("shortest", "length pages", false),
    ("shorter", "length pages", false),
    ("highest", "height", true),
    ("tallest", "height", true),
    ("lowest", "height", false),
    ("largest", "population area size", true),
    ("biggest", "population area size", true),
    ("smallest", "population area size", false),
    ("heaviest", "weight", true),
    ("lightest", "weight", false),
    ("fastest", "speed", true),
    ("slowest", "speed", false),
    ("best", "rating", true),
    ("worst", "rating", false),
    ("fewest", "", false),
];

/// Adjectives after `most` or `least`, with the properties that they imply.
const ADJECTIVES: &[(&str, &str)] = &[
    ("expensive", "price"),
    ("recent", "posted date"),
    ("recently", "posted date"),
    ("popular", "reviews"),
    ("costly", "price"),
];

/// Adjectives whose superlative means the smallest value.
const SMALL_ADJECTIVES: [&str; 14] = [
    "shallow", "short", "low", "small", "light", "young", "slow", "narrow", "weak", "poor", "cold", "near",
    "early", "thin",
];
/// Words that end in `-est` but are not superlatives.
const NOT_SUPERLATIVES: [&str; 12] = [
    "interest", "request", "forest", "harvest", "contest", "honest", "suggest", "protest", "invest",
    "conquest", "modest", "digest",
];

/// Returns the properties that a superlative implies and whether the largest value is meant. Any word in `-est` counts
/// as a superlative unless it is listed as an exception.
fn lookup(word: &str) -> Option<(Vec<String>, bool)> {
    if let Some((_, implied, largest)) = SUPERLATIVES.iter().find(|(name, _, _)| *name == word) {
        return Some((implied.split_whitespace().map(stem).collect(), *largest));
    }
    let base =
        word.strip_suffix("est").filter(|base| base.len() >= 3 && !NOT_SUPERLATIVES.contains(&word))?;
    let base = base.strip_suffix('i').map_or_else(|| base.to_owned(), |base| format!("{base}y"));
    let adjective = match base.as_bytes() {
        [.., first, second] if first == second && !matches!(first, b'l' | b's') => {
            base[..base.len() - 1].to_owned()
        }
        _ => base,
    };
    let is_small = SMALL_ADJECTIVES.contains(&adjective.as_str());
    Some((vec![stem(&adjective)], !is_small))
}

pub(crate) fn is_superlative(word: &str) -> bool {
    lookup(word).is_some() || ["most", "least"].contains(&word)
}

pub(super) fn parse(text: &str) -> Vec<Superlative> {
    let all = tokenize(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    (0..lower.len()).filter_map(|index| superlative_at(&all, &lower, index)).collect()
}

fn superlative_at(all: &[Token<'_>], lower: &[String], index: usize) -> Option<Superlative> {
    let (implied, largest, from) = match (lower[index].as_str(), lookup(&lower[index])) {
        (_, Some((implied, largest))) => (implied, largest, index + 1),
        (word @ ("most" | "least"), None) => {
            let next = lower.get(index + 1)?;
            let adjective = ADJECTIVES.iter().find(|(name, _)| name == next);
            // `at least 5` and `most of them` are not superlatives.
            let is_other_use = is_stop_word(next)
                || index > 0 && lower[index - 1] == "at"
                || values::parse_number(next).is_some();
            if adjective.is_none() && is_other_use {
                return None;
            }
            let implied =
                adjective.map_or("", |(_, implied)| *implied).split_whitespace().map(stem).collect();
            (implied, word == "most", index + 1 + usize::from(adjective.is_some()))
        }
        _ => return None,
    };
    let before = index.checked_sub(1).and_then(|previous| lower.get(previous)).map_or("", String::as_str);
    let rank = values::parse_ordinal(before).unwrap_or(1).max(1);
    let count =
        values::parse_count(before).filter(|count| before != "a" && (2..100).contains(count)).unwrap_or(1);
    let explicit = (from..lower.len())
        .take(3)
        .take_while(|index| !is_stop_word(&lower[*index]) && !all[*index].gap.contains(['.', ',', '?']))
        .map(|index| stem(&lower[index]))
        .collect();
    Some(Superlative { explicit, implied, largest, rank, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superlatives_are_parsed_with_rank_and_count() {
        for (text, implied, largest, rank, count) in [
            ("the cheapest chair", "price", false, 1, 1),
            ("the third longest river", "length", true, 3, 1),
            ("the three largest cities", "population", true, 1, 3),
            ("the most expensive one", "price", true, 1, 1),
            ("the deepest lake", "deep", true, 1, 1),
            ("the shallowest lake", "shallow", false, 1, 1),
            ("the busiest port", "busy", true, 1, 1),
            ("posted most recently", "posted", true, 1, 1),
        ] {
            let found = parse(text);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].implied.contains(&stem(implied)), "{found:?}");
            assert_eq!((found[0].largest, found[0].rank, found[0].count), (largest, rank, count), "{text}");
        }
        assert_eq!(parse("the fewest inhabitants")[0].explicit, [stem("inhabitants")]);
        assert_eq!(parse("the highest top salary")[0].explicit, [stem("top"), stem("salary")]);
    }

    #[test]
    fn other_words_are_not_superlatives() {
        assert!(parse("at least 5 of most of the houses of interest in the forest, at least").is_empty());
    }
}
