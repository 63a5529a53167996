//! Text as words: lower case, without punctuation, markup and articles of typography.

use std::sync::LazyLock;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

static JOINERS: LazyLock<[&str; 2]> = LazyLock::new(|| [" and ", " & "]);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let text: String = text.chars().map(plain).collect();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || is_symbol(c)));
        let words = words.map(|word| word.trim_matches('\'').to_lowercase());
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The other's words stand in these, together and in order.
    pub(super) fn contain(&self, other: &Self) -> bool {
        !other.0.is_empty() && self.0.windows(other.0.len()).any(|window| window == other.0)
    }

    /// The text is nothing but yes or no.
    pub(super) fn yes_or_no_alone(&self) -> Option<bool> {
        match self.0.as_slice() {
            [one] => yes_or_no(one),
            _ => None,
        }
    }

    pub(super) fn first_yes_or_no(&self) -> Option<bool> {
        self.0.iter().find_map(|word| yes_or_no(word))
    }
}

fn yes_or_no(word: &str) -> Option<bool> {
    match word {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// Typographic forms of the same sign.
fn plain(character: char) -> char {
    match character {
        '’' | '‘' | 'ʼ' | '`' => '\'',
        '–' | '—' | '−' => '-',
        '\u{a0}' | '\u{202f}' => ' ',
        other => other,
    }
}

/// Signs that carry meaning of their own: money, degrees, per cent.
fn is_symbol(character: char) -> bool {
    matches!(character, '$' | '€' | '£' | '¥' | '°' | '%' | '+' | '#' | '&')
}

/// The items of a list, when the text is one: by line, semicolon, comma or "and".
pub(super) fn items(text: &str) -> Vec<String> {
    let mut text = text.to_owned();
    for joiner in JOINERS.iter() {
        if text.contains(',') || text.contains(';') {
            text = text.replace(&format!(",{joiner}"), ",").replace(joiner, ",");
        }
    }
    let separator = |c: char| c == '\n' || c == ';';
    let coarse: Vec<&str> = text.split(separator).collect();
    let pieces: Vec<&str> = if coarse.len() > 1 { coarse } else { commas(&text) };
    let items: Vec<String> =
        pieces.iter().map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect();
    items
}

/// Splits at commas, but not inside numbers or dates: `1,299` and `November 15, 2026` are each one thing.
fn commas(text: &str) -> Vec<&str> {
    if !super::dates::find(text).is_empty() {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(',') {
        let before = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_digit());
        let after = text[at + 1..].chars().next().is_some_and(|c| c.is_ascii_digit());
        if !(before && after) {
            pieces.push(&text[from..at]);
            from = at + 1;
        }
    }
    pieces.push(&text[from..]);
    pieces
}
