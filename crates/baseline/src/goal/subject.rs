//! Finds the subjects of a task: quoted phrases and capitalised names, or, if there are none, runs of ordinary words.

use crate::{
    nlp::{Token, is_stop_word, stem, synonym_group, tokenize},
    values,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) text: String,
    pub(crate) stems: Vec<String>,
    /// Stems that a match must contain: those of capitalised words, or all if there are none.
    pub(crate) required: Vec<String>,
}

/// Lower-case words that end a name.
const NAME_ENDS: &str = "ask asks start starts cost costs make makes give gives hold holds say says appear appears differ \
    rise rises flow flows open opens offer offers use uses come comes lie lies weigh weighs born died founded have has \
    work works need needs contain contains called named located sell sells written made built include including appear";
/// Words too general to be a subject.
const GENERIC_WORDS: &str = "page website site list listed shop store category section field box button line text word answer number \
    name date year time job product item article result total price way thing kind type many much";

/// Longer names are cut.
const MAX_NAME_WORDS: usize = 6;

impl Subject {
    pub(crate) fn new(text: &str) -> Self {
        let all = tokenize(text);
        let is_content = |token: &&Token<'_>| !is_stop_word(&token.lower());
        let stems: Vec<String> = all.iter().filter(is_content).map(|token| stem(token.text)).collect();
        let is_name_part = |token: &&Token<'_>| {
            is_content(token)
                && (token.is_capitalised() || token.text.starts_with(|c: char| c.is_ascii_digit()))
        };
        let mut required: Vec<String> =
            all.iter().filter(is_name_part).map(|token| stem(token.text)).collect();
        if required.is_empty() {
            required.clone_from(&stems);
        }
        Self { text: text.trim().to_owned(), stems, required }
    }
}

pub(super) fn parse(text: &str) -> Vec<Subject> {
    let quotes = quoted(text);
    let is_quoted = |position: usize| {
        quotes.iter().any(|(start, quote)| (*start..start + quote.len()).contains(&position))
    };
    let names = names(text).into_iter().filter(|(position, _)| !is_quoted(*position));
    let mut phrases: Vec<&str> = quotes.iter().copied().chain(names).map(|(_, phrase)| phrase).collect();
    if phrases.is_empty() {
        phrases = ordinary_phrases(text);
    }
    let mut found: Vec<Subject> = Vec::new();
    for subject in phrases.into_iter().map(Subject::new) {
        if !subject.stems.is_empty() && !found.iter().any(|other| other.stems == subject.stems) {
            found.push(subject);
        }
    }
    found
}

/// Returns the phrases in quotation marks with their byte offsets.
pub(super) fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (open, close) in [('“', '”'), ('"', '"'), ('«', '»'), ('„', '“')] {
        let mut from = 0;
        while let Some(start) = text[from..].find(open).map(|index| from + index + open.len_utf8()) {
            let Some(length) = text[start..].find(close) else { break };
            let phrase = &text[start..start + length];
            if !phrase.trim().is_empty() && phrase.len() <= 120 {
                found.push((start, phrase));
            }
            from = start + length + close.len_utf8();
        }
    }
    found.sort_unstable_by_key(|(start, _)| *start);
    found
}

/// Returns names: runs of words that begin with a capitalised word inside a sentence, such as `Velvet desk lamp`.
fn names(text: &str) -> Vec<(usize, &str)> {
    let all = tokenize(text);
    let mut found = Vec::new();
    let mut index = 0;
    while index < all.len() {
        let begins_sentence = index == 0 || all[index].begins_sentence();
        let is_followed_by_name =
            all.get(index + 1).is_some_and(|next| next.is_capitalised() && is_joined(next));
        if !all[index].is_capitalised() || !is_name(&all[index]) || (begins_sentence && !is_followed_by_name)
        {
            index += 1;
            continue;
        }
        let more = all[index + 1..]
            .iter()
            .take(MAX_NAME_WORDS - 1)
            .take_while(|token| continues_name(token))
            .count();
        let start = all[index].end - all[index].text.len();
        found.extend(text.get(start..all[index + more].end).map(|name| (start, name)));
        index += more + 1;
    }
    found
}

fn is_name(token: &Token<'_>) -> bool {
    let lower = token.lower();
    !is_stop_word(&lower) && values::parse_month(&lower).is_none()
}

fn is_joined(token: &Token<'_>) -> bool {
    matches!(token.gap, " " | "-" | "’" | "'" | ". ") && !token.gap.contains('\n')
}

fn continues_name(token: &Token<'_>) -> bool {
    let lower = token.lower();
    let listed = |list: &str| list.split_whitespace().any(|word| word == lower);
    let is_verb = lower.ends_with("ed") && !token.is_capitalised();
    is_joined(token) && !is_stop_word(&lower) && !is_verb && !listed(NAME_ENDS)
}

/// Returns runs of ordinary words that are neither generic nor synonyms of a property, longest first.
fn ordinary_phrases(text: &str) -> Vec<&str> {
    let all = tokenize(text);
    let is_usable = |token: &Token<'_>| {
        let lower = token.lower();
        let stemmed = stem(&lower);
        !is_stop_word(&lower)
            && synonym_group(&stemmed).is_none()
            && !GENERIC_WORDS
                .split_whitespace()
                .chain(NAME_ENDS.split_whitespace())
                .any(|word| stem(word) == stemmed)
            && !super::superlative::is_superlative(&lower)
    };
    let mut runs: Vec<&str> = Vec::new();
    let mut index = 0;
    while index < all.len() {
        let length = all[index..].iter().take(MAX_NAME_WORDS).take_while(|token| is_usable(token)).count();
        if length > 0 {
            let start = all[index].end - all[index].text.len();
            runs.extend(text.get(start..all[index + length - 1].end));
        }
        index += length.max(1);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.split_whitespace().count()));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(task: &str) -> Vec<String> {
        parse(task).into_iter().map(|subject| subject.text).collect()
    }

    #[test]
    fn names_are_found_with_all_their_words() {
        for (task, expected) in [
            ("What is the price of the Velvet desk lamp?", "Velvet desk lamp"),
            ("How long is the river Amazon?", "Amazon"),
            ("Which years of work does the job of Roof tiler ask for?", "Roof tiler"),
            ("Press “Ring bell” twice.", "Ring bell"),
            ("Who invented the steam engine?", "steam engine"),
            ("Where was Marie Curie born?", "Marie Curie"),
            ("Posted on or after 1 May 2025 in Lyon", "Lyon"),
        ] {
            assert_eq!(texts(task).first().map(String::as_str), Some(expected), "{task}");
        }
    }

    #[test]
    fn capitalised_words_are_required() {
        let subject = Subject::new("Velvet desk lamp");
        assert_eq!((subject.stems.len(), subject.required.len()), (3, 1));
        assert_eq!(Subject::new("steam engine").required.len(), 2);
    }

    #[test]
    fn unclosed_quotes_are_ignored() {
        assert!(quoted("say “hello").is_empty());
        assert_eq!(quoted("\"a\" and \"b\"").len(), 2);
    }
}
