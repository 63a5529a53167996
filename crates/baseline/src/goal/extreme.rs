//! Superlatives: by what, in which direction, which in order, how many of them.

use crate::{
    values,
    words::{Token, is_stop, stem, tokens},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extreme {
    /// Stems the task itself puts behind the superlative.
    pub(crate) said: Vec<String>,
    /// Stems the superlative stands for.
    pub(crate) meant: Vec<String>,
    pub(crate) largest: bool,
    /// 1 is the very first.
    pub(crate) rank: usize,
    /// How many of them are meant.
    pub(crate) count: usize,
}

/// Superlative, what it is about, and whether the most of it is meant.
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

/// What follows `most` or `least` when it is not simply a noun.
const ADJECTIVES: &[(&str, &str)] = &[
    ("expensive", "price"),
    ("recent", "posted date"),
    ("recently", "posted date"),
    ("popular", "reviews"),
    ("costly", "price"),
];

/// Bases of superlatives that mean little of something.
const SMALL: [&str; 14] = [
    "shallow", "short", "low", "small", "light", "young", "slow", "narrow", "weak", "poor", "cold", "near",
    "early", "thin",
];
/// Words that merely end like one.
const NONE: [&str; 12] = [
    "interest", "request", "forest", "harvest", "contest", "honest", "suggest", "protest", "invest",
    "conquest", "modest", "digest",
];

/// What a superlative is about, and whether the most of it is meant; any word in `-est` is one, unless it is known not to be.
fn known(word: &str) -> Option<(Vec<String>, bool)> {
    if let Some((_, meant, largest)) = SUPERLATIVES.iter().find(|(name, _, _)| *name == word) {
        return Some((meant.split_whitespace().map(stem).collect(), *largest));
    }
    let base = word.strip_suffix("est").filter(|base| base.len() >= 3 && !NONE.contains(&word))?;
    let base = base.strip_suffix('i').map_or_else(|| base.to_owned(), |base| format!("{base}y"));
    let single = match base.as_bytes() {
        [.., one, other] if one == other && !matches!(one, b'l' | b's') => base[..base.len() - 1].to_owned(),
        _ => base,
    };
    let small = SMALL.contains(&single.as_str());
    Some((vec![stem(&single)], !small))
}

pub(crate) fn is_superlative(word: &str) -> bool {
    known(word).is_some() || ["most", "least"].contains(&word)
}

pub(super) fn read(text: &str) -> Vec<Extreme> {
    let all = tokens(text);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    (0..lower.len()).filter_map(|at| extreme_at(&all, &lower, at)).collect()
}

fn extreme_at(all: &[Token<'_>], lower: &[String], at: usize) -> Option<Extreme> {
    let (meant, largest, from) = match (lower[at].as_str(), known(&lower[at])) {
        (_, Some((meant, largest))) => (meant, largest, at + 1),
        (word @ ("most" | "least"), None) => {
            let next = lower.get(at + 1)?;
            let adjective = ADJECTIVES.iter().find(|(name, _)| name == next);
            // `at least 5`, `most of them`.
            let bound = is_stop(next) || at > 0 && lower[at - 1] == "at" || values::number(next).is_some();
            if adjective.is_none() && bound {
                return None;
            }
            let meant = adjective.map_or("", |(_, meant)| *meant).split_whitespace().map(stem).collect();
            (meant, word == "most", at + 1 + usize::from(adjective.is_some()))
        }
        _ => return None,
    };
    let before = at.checked_sub(1).and_then(|place| lower.get(place)).map_or("", String::as_str);
    let rank = values::ordinal(before).unwrap_or(1).max(1);
    let count =
        values::counting(before).filter(|count| before != "a" && (2..100).contains(count)).unwrap_or(1);
    let said = (from..lower.len())
        .take(3)
        .take_while(|place| !is_stop(&lower[*place]) && !all[*place].gap.contains(['.', ',', '?']))
        .map(|place| stem(&lower[place]))
        .collect();
    Some(Extreme { said, meant, largest, rank, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superlatives_are_read_with_rank_and_number() {
        for (text, meant, largest, rank, count) in [
            ("the cheapest chair", "price", false, 1, 1),
            ("the third longest river", "length", true, 3, 1),
            ("the three largest cities", "population", true, 1, 3),
            ("the most expensive one", "price", true, 1, 1),
            ("the deepest lake", "deep", true, 1, 1),
            ("the shallowest lake", "shallow", false, 1, 1),
            ("the busiest port", "busy", true, 1, 1),
            ("posted most recently", "posted", true, 1, 1),
        ] {
            let found = read(text);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].meant.contains(&stem(meant)), "{found:?}");
            assert_eq!((found[0].largest, found[0].rank, found[0].count), (largest, rank, count), "{text}");
        }
        assert_eq!(read("the fewest inhabitants")[0].said, [stem("inhabitants")]);
        assert_eq!(read("the highest top salary")[0].said, [stem("top"), stem("salary")]);
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        assert!(read("at least 5 of most of the houses of interest in the forest, at least").is_empty());
    }
}
