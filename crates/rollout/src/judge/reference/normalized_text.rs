//! Normalizes text for comparison: words in lower case, without punctuation, markup and typographic variants.

/// The normalized words of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NormalizedText(Vec<String>);

const CONJUNCTIONS: [&str; 2] = [" and ", " & "];

impl NormalizedText {
    pub(super) fn of(text: &str) -> Self {
        let text: String = text.chars().map(normalize_typography).collect();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || is_symbol(c)));
        let words = words.map(|word| word.trim_matches('\'').to_lowercase());
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the other's words occur here, adjacent and in order.
    pub(super) fn contains(&self, other: &Self) -> bool {
        !other.0.is_empty() && self.0.windows(other.0.len()).any(|window| window == other.0)
    }

    /// Returns the meaning of a text that is only yes or no.
    pub(super) fn as_yes_no(&self) -> Option<bool> {
        match self.0.as_slice() {
            [word] => parse_yes_no(word),
            _ => None,
        }
    }

    pub(super) fn first_yes_no(&self) -> Option<bool> {
        self.0.iter().find_map(|word| parse_yes_no(word))
    }
}

fn parse_yes_no(word: &str) -> Option<bool> {
    match word {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// Replaces typographic variants of quotes, dashes and spaces.
fn normalize_typography(character: char) -> char {
    match character {
        '’' | '‘' | 'ʼ' | '`' => '\'',
        '–' | '—' | '−' => '-',
        '\u{a0}' | '\u{202f}' => ' ',
        other => other,
    }
}

/// Returns whether a sign has a meaning of its own, such as a currency, degrees or percent.
fn is_symbol(character: char) -> bool {
    matches!(character, '$' | '€' | '£' | '¥' | '°' | '%' | '+' | '#' | '&')
}

/// Splits a list into its items, at line breaks, semicolons, commas or "and". Text that is not a list gives one item.
pub(super) fn list_items(text: &str) -> Vec<String> {
    let mut text = text.to_owned();
    for conjunction in CONJUNCTIONS {
        if text.contains(',') || text.contains(';') {
            text = text.replace(&format!(",{conjunction}"), ",").replace(conjunction, ",");
        }
    }
    let by_line: Vec<&str> = text.split(['\n', ';']).collect();
    let items = if by_line.len() > 1 { by_line } else { split_at_commas(&text) };
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Splits at commas, but not inside numbers or dates: `1,299` and `November 15, 2026` are one item each.
fn split_at_commas(text: &str) -> Vec<&str> {
    if !super::dates::find(text).is_empty() {
        return vec![text];
    }
    let mut items = Vec::new();
    let mut start = 0;
    for (comma, _) in text.match_indices(',') {
        let digit_before = text[..comma].chars().next_back().is_some_and(|c| c.is_ascii_digit());
        let digit_after = text[comma + 1..].chars().next().is_some_and(|c| c.is_ascii_digit());
        if !(digit_before && digit_after) {
            items.push(&text[start..comma]);
            start = comma + 1;
        }
    }
    items.push(&text[start..]);
    items
}
