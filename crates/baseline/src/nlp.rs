//! Text processing that makes a task and a page comparable: tokens, stems, stop words, synonyms and similarity.
//! Has general knowledge of English, and none of any website.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

/// A word or number in a text, and the characters between it and the previous token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) gap: &'a str,
    /// Byte offset of the end in the text.
    pub(crate) end: usize,
}

impl Token<'_> {
    pub(crate) fn lower(&self) -> String {
        self.text.to_lowercase()
    }

    pub(crate) fn is_capitalised(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether a sentence ends before this token.
    pub(crate) fn begins_sentence(&self) -> bool {
        self.gap.contains(['.', '?', '!', ':', '\n'])
    }
}

/// Splits a text into words and numbers. A point or comma inside a number belongs to it.
pub(crate) fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut last_end = 0;
    let mut start = None;
    let mut previous = ' ';
    let mut characters = text.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        let next = characters.peek().map_or(' ', |(_, next)| *next);
        let in_number = matches!(character, '.' | ',')
            && previous.is_ascii_digit()
            && next.is_ascii_digit()
            && start.is_some();
        if character.is_alphanumeric() || in_number {
            start.get_or_insert(index);
        } else if let Some(from) = start.take() {
            found.push(Token { text: &text[from..index], gap: &text[last_end..from], end: index });
            last_end = index;
        }
        previous = character;
    }
    if let Some(from) = start {
        found.push(Token { text: &text[from..], gap: &text[last_end..from], end: text.len() });
    }
    found.retain(|token| !(token.text == "s" && token.gap.ends_with(['\'', '’'])));
    found
}

const STOP_WORD_LIST: &str = "a an the of in on at to for from by with without and or but as is are was were be been being do does \
    did has have had can could will would shall should may might must this that these those it its they them their \
    there here then than so such which what who whom whose when where why how i you your we our me my he she his her \
    into onto over under out up down off not no any some each every all both one ones only just also too very more most \
    less least s t please find tell give gives given show shows shown see look looking get which whose if between among \
    per about after before during until while same other another first next last";

static STOP_WORDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| STOP_WORD_LIST.split_whitespace().collect());

pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(word)
}

/// Returns the word in lower case without the endings of plurals and common verb forms.
pub(crate) fn stem(word: &str) -> String {
    let mut stem = word.to_lowercase();
    if stem.chars().any(|character| character.is_ascii_digit()) || !stem.is_ascii() {
        return stem;
    }
    let ends = |stem: &str, endings: &[&str]| endings.iter().any(|ending| stem.ends_with(ending));
    let cut = |stem: &mut String, count: usize| stem.truncate(stem.len() - count);
    if stem.len() > 4 && stem.ends_with("ies") {
        cut(&mut stem, 3);
        stem.push('y');
    } else if stem.len() > 4 && ends(&stem, &["sses", "shes", "ches", "xes", "zes"]) {
        cut(&mut stem, 2);
    } else if stem.len() > 3 && stem.ends_with('s') && !ends(&stem, &["ss", "us", "is"]) {
        cut(&mut stem, 1);
    }
    let verb_ending = if stem.len() > 5 && stem.ends_with("ing") {
        3
    } else if stem.len() > 4 && stem.ends_with("ed") {
        2
    } else {
        0
    };
    cut(&mut stem, verb_ending);
    let bytes = stem.as_bytes();
    let doubled = matches!(bytes, [.., a, b] if a == b && !matches!(a, b'l' | b's' | b'e' | b'o'));
    let has_silent_e = stem.len() > 4 && stem.ends_with('e');
    if verb_ending > 0 && doubled || has_silent_e {
        cut(&mut stem, 1);
    }
    stem
}

/// Words that ask for the same property; each line is a group.
const SYNONYMS: &str = "price cost costs expensive cheap cheapest cheaper dear dearest priciest
    length long longest longer shortest
    height high highest tall tallest elevation altitude lowest
    width wide widest
    depth deep shallow
    weight heavy heaviest weigh weighs lightest
    speed fast fastest quick
    area size
    capacity holds
    amount quantity
    population inhabitant inhabitants resident residents populous
    rating rated stars star score
    posted newest recent recently latest published
    salary paid pay pays wage earn
    founded founding foundation established
    starts start begin begins beginning opening opens
    ends end closes closing deadline due
    departure departs leaves
    arrival arrives
    duration lasts last takes runtime
    born birth birthplace birthday
    died death dead
    married spouse wife husband
    inventor invented invention inventing
    author wrote written writer
    director directed
    designer designed
    builder built
    owner owned owns
    teacher taught teach
    company employer organisation organization firm
    brand maker manufacturer makes
    address located location lies
    phone telephone
    source rise rises rising
    mouth flows flow";

static SYNONYM_GROUPS: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    let lines = SYNONYMS.lines().enumerate();
    lines.flat_map(|(group, line)| line.split_whitespace().map(move |word| (stem(word), group))).collect()
});

/// Returns the synonym group of a stem.
pub(crate) fn synonym_group(stem: &str) -> Option<usize> {
    SYNONYM_GROUPS.get(stem).copied()
}

/// Whether two stems match: they are equal, synonyms, or one is a prefix of the other.
pub(crate) fn stems_match(first: &str, second: &str) -> bool {
    let (short, long) = if first.len() <= second.len() { (first, second) } else { (second, first) };
    first == second
        || synonym_group(first).is_some_and(|group| synonym_group(second) == Some(group))
        || (short.len() >= 5 && long.len() - short.len() <= 3 && long.starts_with(short))
}

/// Returns the stems of all words that are not stop words.
pub(crate) fn content_stems(text: &str) -> Vec<String> {
    tokenize(text)
        .iter()
        .map(Token::lower)
        .filter(|word| !is_stop_word(word))
        .map(|word| stem(&word))
        .collect()
}

/// Returns the stems of all words.
pub(crate) fn stems(text: &str) -> Vec<String> {
    tokenize(text).iter().map(|token| stem(token.text)).collect()
}

/// Returns the share of `wanted` that is in `text`, from 0 to 1.
pub(crate) fn coverage(wanted: &[String], text: &[String]) -> f64 {
    if wanted.is_empty() {
        return 0.0;
    }
    let found = wanted.iter().filter(|word| text.contains(word)).count();
    found as f64 / wanted.len() as f64
}

/// Returns the number of shared words divided by the number of distinct words.
pub(crate) fn jaccard_similarity(first: &[String], second: &[String]) -> f64 {
    let shared = first.iter().filter(|word| second.contains(word)).count();
    let union = first.len() + second.len() - shared.min(second.len());
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_single_tokens() {
        let found: Vec<_> =
            tokenize("It's $1,234.50, or 4.5 (full-time).").iter().map(|token| token.text).collect();
        assert_eq!(found, ["It", "1,234.50", "or", "4.5", "full", "time"]);
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (first, second) in [
            ("prices", "price"),
            ("cities", "city"),
            ("boxes", "box"),
            ("founded", "found"),
            ("planning", "plan"),
        ] {
            assert_eq!(stem(first), stem(second), "{first} {second}");
        }
        assert_eq!((stem("glass"), stem("2025"), stem("är")), ("glass".into(), "2025".into(), "är".into()));
    }

    #[test]
    fn questions_match_labels() {
        for (asked, label) in [("cost", "price"), ("inhabitants", "Population"), ("invented", "Inventor")] {
            assert!(stems_match(&stem(asked), &stem(label)), "{asked} {label}");
        }
        assert!(!stems_match(&stem("city"), &stem("price")) && !stems_match("car", "cart"));
    }

    #[test]
    fn coverage_is_the_share_of_wanted_words() {
        let (wanted, text) = (content_stems("Velvet desk lamp"), content_stems("A desk and a velvet lamp"));
        assert!((coverage(&wanted, &text) - 1.0).abs() < 1e-9);
        assert!(coverage(&wanted, &content_stems("desk")) < 0.5);
        assert!(jaccard_similarity(&content_stems("red chair"), &content_stems("red chair")) > 0.99);
    }
}
