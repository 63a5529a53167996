//! Finds numbers with their units in text (`$1,299.00`, `5 km`, `50 %`) and compares them across units of the same kind.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    value: f64,
    unit: Option<Unit>,
    /// The number as it was written, with a currency sign before it but without minus and without a unit after it.
    text: String,
}

/// What a unit measures, and its size in the base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    kind: &'static str,
    factor: f64,
}

/// Name, kind and factor of each known unit.
const UNITS: &[(&str, &str, f64)] = &[
    ("$", "dollar", 1.0),
    ("usd", "dollar", 1.0),
    ("dollar", "dollar", 1.0),
    ("dollars", "dollar", 1.0),
    ("cents", "dollar", 0.01),
    ("€", "euro", 1.0),
    ("eur", "euro", 1.0),
    ("euro", "euro", 1.0),
    ("euros", "euro", 1.0),
    ("£", "pound", 1.0),
    ("gbp", "pound", 1.0),
    ("¥", "yen", 1.0),
    ("%", "percent", 1.0),
    ("percent", "percent", 1.0),
    ("mm", "length", 0.001),
    ("cm", "length", 0.01),
    ("m", "length", 1.0),
    ("metre", "length", 1.0),
    ("metres", "length", 1.0),
    ("meter", "length", 1.0),
    ("meters", "length", 1.0),
    ("km", "length", 1000.0),
    ("kilometre", "length", 1000.0),
    ("kilometres", "length", 1000.0),
    ("kilometer", "length", 1000.0),
    ("kilometers", "length", 1000.0),
    ("mile", "length", 1609.344),
    ("miles", "length", 1609.344),
    ("g", "mass", 0.001),
    ("grams", "mass", 0.001),
    ("kg", "mass", 1.0),
    ("kilograms", "mass", 1.0),
    ("ml", "volume", 0.001),
    ("l", "volume", 1.0),
    ("litres", "volume", 1.0),
    ("liters", "volume", 1.0),
    ("seconds", "time", 1.0),
    ("minutes", "time", 60.0),
    ("min", "time", 60.0),
    ("hours", "time", 3600.0),
    ("h", "time", 3600.0),
    ("w", "power", 1.0),
    ("watts", "power", 1.0),
    ("kw", "power", 1000.0),
];

fn parse_unit(word: &str) -> Option<Unit> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"$€£¥%".contains(c)).to_lowercase();
    UNITS.iter().find(|(name, ..)| *name == word).map(|(_, kind, factor)| Unit { kind, factor: *factor })
}

impl Quantity {
    /// Parses text that consists of one quantity and nothing else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let found = Self::find_all(text);
        let [quantity] = found.as_slice() else { return None };
        let rest: String = text.replacen(&quantity.text, "", 1);
        let words = rest.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
        let mut other_words = words.filter(|word| parse_unit(word).is_none());
        other_words.next().is_none().then(|| quantity.clone())
    }

    /// Returns every number in the text with its unit. Digits that are part of a word (`12a`) do not count.
    pub(super) fn find_all(text: &str) -> Vec<Self> {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        let mut found = Vec::new();
        let mut index = 0;
        while index < characters.len() {
            if !characters[index].1.is_ascii_digit() {
                index += 1;
                continue;
            }
            let end = number_end(&characters, index);
            let before = index.checked_sub(1).map(|index| characters[index].1);
            let after = characters.get(end).map(|(_, c)| *c);
            let is_in_word = before.is_some_and(char::is_alphabetic)
                || is_followed_by_letters(text, &characters, end, after);
            if !is_in_word {
                found.extend(Self::parse_number(text, &characters, index, end, before));
            }
            index = end;
        }
        found
    }

    fn parse_number(
        text: &str,
        characters: &[(usize, char)],
        first_digit: usize,
        end: usize,
        before: Option<char>,
    ) -> Option<Self> {
        let offset = |index: usize| characters.get(index).map_or(text.len(), |(offset, _)| *offset);
        let digits = &text[offset(first_digit)..offset(end)];
        let value: f64 = digits.replace([',', ' '], "").parse().ok()?;
        let mut start = first_digit;
        let mut unit_before = None;
        if let Some(currency) = before.filter(|c| "$€£¥".contains(*c)) {
            unit_before = parse_unit(&currency.to_string());
            start -= 1;
        }
        let is_negative = start.checked_sub(1).is_some_and(|index| {
            // A dash after a letter or digit is a hyphen or a range, not a minus.
            let is_sign = index.checked_sub(1).is_none_or(|index| !characters[index].1.is_alphanumeric());
            matches!(characters[index].1, '-' | '−') && is_sign
        });
        let next_word = text[offset(end)..].split_whitespace().next();
        let unit_after = next_word.and_then(parse_unit);
        Some(Self {
            value: if is_negative { -value } else { value },
            unit: unit_before.or(unit_after),
            text: text[offset(start)..offset(end)].to_owned(),
        })
    }

    /// Returns whether both are the same amount. A number without a unit is compared by its value alone.
    pub(super) fn is_same_amount(&self, other: &Self) -> bool {
        let is_close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
        match (self.unit, other.unit) {
            (Some(own), Some(others)) => {
                own.kind == others.kind && is_close(self.value * own.factor, other.value * others.factor)
            }
            _ => is_close(self.value, other.value),
        }
    }
}

/// Returns where a number ends that may have thousands separators and a decimal point.
fn number_end(characters: &[(usize, char)], start: usize) -> usize {
    let is_digit = |index: usize| characters.get(index).is_some_and(|(_, c)| c.is_ascii_digit());
    let is_group = |start: usize| (start..start + 3).all(is_digit) && !is_digit(start + 3);
    let mut end = start;
    let mut has_point = false;
    loop {
        match characters.get(end).map(|(_, c)| *c) {
            Some(c) if c.is_ascii_digit() => end += 1,
            Some(',') if !has_point && is_group(end + 1) => end += 1,
            Some('.') if !has_point && is_digit(end + 1) => {
                has_point = true;
                end += 1;
            }
            _ => return end,
        }
    }
}

/// Returns whether letters that are not a unit follow directly: true for `12a`, false for `12kg`.
fn is_followed_by_letters(text: &str, characters: &[(usize, char)], end: usize, after: Option<char>) -> bool {
    if !after.is_some_and(char::is_alphabetic) {
        return false;
    }
    let offset = characters.get(end).map_or(text.len(), |(offset, _)| *offset);
    let word: String = text[offset..].chars().take_while(|c| c.is_alphanumeric()).collect();
    parse_unit(&word).is_none()
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minus = if self.value < 0.0 { "-" } else { "" };
        write!(f, "{minus}{}", self.text)
    }
}
