//! The things a task names: quoted phrases, names with capital letters, and where there are none the longest run of
//! ordinary words.

use crate::{
    values,
    words::{Token, group, is_stop, stem, tokens},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) text: String,
    pub(crate) stems: Vec<String>,
    /// The stems one cannot do without: those with capital letters, or all when there are none.
    pub(crate) strong: Vec<String>,
}

/// Words in small letters that end a name rather than belong to it.
const AFTER_A_NAME: &str = "ask asks start starts cost costs make makes give gives hold holds say says appear appears differ \
    rise rises flow flows open opens offer offers use uses come comes lie lies weigh weighs born died founded have has \
    work works need needs contain contains called named located sell sells written made built include including appear";
/// Small words that do not make a subject of their own.
const GENERIC: &str = "page website site list listed shop store category section field box button line text word answer number \
    name date year time job product item article result total price way thing kind type many much";

/// Names longer than this are cut short.
const LONGEST: usize = 6;

impl Subject {
    pub(crate) fn new(text: &str) -> Self {
        let all = tokens(text);
        let meaning = |token: &&Token<'_>| !is_stop(&token.lower());
        let stems: Vec<String> = all.iter().filter(meaning).map(|token| stem(token.text)).collect();
        let capitals = |token: &&Token<'_>| {
            meaning(token)
                && (token.is_capitalised() || token.text.starts_with(|sign: char| sign.is_ascii_digit()))
        };
        let mut strong: Vec<String> = all.iter().filter(capitals).map(|token| stem(token.text)).collect();
        if strong.is_empty() {
            strong.clone_from(&stems);
        }
        Self { text: text.trim().to_owned(), stems, strong }
    }
}

pub(super) fn read(text: &str) -> Vec<Subject> {
    let quotes = quoted(text);
    let in_quotes = |at: usize| quotes.iter().any(|(from, quote)| (*from..from + quote.len()).contains(&at));
    let names = names(text).into_iter().filter(|(at, _)| !in_quotes(*at));
    let mut phrases: Vec<&str> = quotes.iter().copied().chain(names).map(|(_, phrase)| phrase).collect();
    if phrases.is_empty() {
        phrases = plain(text);
    }
    let mut found: Vec<Subject> = Vec::new();
    for subject in phrases.into_iter().map(Subject::new) {
        if !subject.stems.is_empty() && !found.iter().any(|known| known.stems == subject.stems) {
            found.push(subject);
        }
    }
    found
}

/// Phrases in quotation marks, and where they start.
pub(super) fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (open, close) in [('“', '”'), ('"', '"'), ('«', '»'), ('„', '“')] {
        let mut from = 0;
        while let Some(start) = text[from..].find(open).map(|at| from + at + open.len_utf8()) {
            let Some(length) = text[start..].find(close) else { break };
            let phrase = &text[start..start + length];
            if !phrase.trim().is_empty() && phrase.len() <= 120 {
                found.push((start, phrase));
            }
            from = start + length + close.len_utf8();
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    found
}

/// Runs that begin with a capital letter inside a sentence and go on in ordinary words: `Velvet desk lamp`.
fn names(text: &str) -> Vec<(usize, &str)> {
    let all = tokens(text);
    let mut found = Vec::new();
    let mut place = 0;
    while place < all.len() {
        let begins = place == 0 || all[place].begins_sentence();
        let followed = all.get(place + 1).is_some_and(|next| next.is_capitalised() && joined(next));
        if !all[place].is_capitalised() || !is_name(&all[place]) || (begins && !followed) {
            place += 1;
            continue;
        }
        let more = all[place + 1..].iter().take(LONGEST - 1).take_while(|token| goes_on(token)).count();
        let start = all[place].end - all[place].text.len();
        found.extend(text.get(start..all[place + more].end).map(|name| (start, name)));
        place += more + 1;
    }
    found
}

fn is_name(token: &Token<'_>) -> bool {
    let lower = token.lower();
    !is_stop(&lower) && values::month(&lower).is_none()
}

fn joined(token: &Token<'_>) -> bool {
    matches!(token.gap, " " | "-" | "’" | "'" | ". ") && !token.gap.contains('\n')
}

fn goes_on(token: &Token<'_>) -> bool {
    let lower = token.lower();
    let listed = |list: &str| list.split_whitespace().any(|word| word == lower);
    let verb = lower.ends_with("ed") && !token.is_capitalised();
    joined(token) && !is_stop(&lower) && !verb && !listed(AFTER_A_NAME)
}

/// Runs of ordinary words that neither ask for something known nor are too general, longest first.
fn plain(text: &str) -> Vec<&str> {
    let all = tokens(text);
    let usable = |token: &Token<'_>| {
        let lower = token.lower();
        let bare = stem(&lower);
        !is_stop(&lower)
            && group(&bare).is_none()
            && !GENERIC
                .split_whitespace()
                .chain(AFTER_A_NAME.split_whitespace())
                .any(|word| stem(word) == bare)
            && !super::extreme::is_superlative(&lower)
    };
    let mut runs: Vec<&str> = Vec::new();
    let mut place = 0;
    while place < all.len() {
        let length = all[place..].iter().take(LONGEST).take_while(|token| usable(token)).count();
        if length > 0 {
            let start = all[place].end - all[place].text.len();
            runs.extend(text.get(start..all[place + length - 1].end));
        }
        place += length.max(1);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.split_whitespace().count()));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(task: &str) -> Vec<String> {
        read(task).into_iter().map(|subject| subject.text).collect()
    }

    #[test]
    fn names_are_found_with_the_words_that_belong_to_them() {
        for (task, wanted) in [
            ("What is the price of the Velvet desk lamp?", "Velvet desk lamp"),
            ("How long is the river Amazon?", "Amazon"),
            ("Which years of work does the job of Roof tiler ask for?", "Roof tiler"),
            ("Press “Ring bell” twice.", "Ring bell"),
            ("Who invented the steam engine?", "steam engine"),
            ("Where was Marie Curie born?", "Marie Curie"),
            ("Posted on or after 1 May 2025 in Lyon", "Lyon"),
        ] {
            assert_eq!(texts(task).first().map(String::as_str), Some(wanted), "{task}");
        }
    }

    #[test]
    fn the_strong_words_are_those_with_capitals() {
        let subject = Subject::new("Velvet desk lamp");
        assert_eq!((subject.stems.len(), subject.strong.len()), (3, 1));
        assert_eq!(Subject::new("steam engine").strong.len(), 2);
    }

    #[test]
    fn unfinished_quotes_do_no_harm() {
        assert!(quoted("say “hello").is_empty());
        assert_eq!(quoted("\"a\" and \"b\"").len(), 2);
    }
}
