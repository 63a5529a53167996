//! Numbers with what they count: `$1,299.00`, `5 km`, `50 %`. Units of one kind are converted.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    value: f64,
    unit: Option<Unit>,
    shown: String,
}

/// What a unit measures, and how many of the base unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    kind: &'static str,
    factor: f64,
}

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

fn unit(word: &str) -> Option<Unit> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"$€£¥%".contains(c)).to_lowercase();
    UNITS.iter().find(|(name, ..)| *name == word).map(|(_, kind, factor)| Unit { kind, factor: *factor })
}

impl Quantity {
    /// The text is one quantity and nothing else.
    pub(super) fn only(text: &str) -> Option<Self> {
        let found = Self::find(text);
        let [one] = found.as_slice() else { return None };
        let rest: String = text.replacen(&one.shown, "", 1);
        let words = rest.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
        let mut words = words.filter(|word| unit(word).is_none());
        words.next().is_none().then(|| one.clone())
    }

    /// Every number of the text with its unit. Digits inside a word (`12a`) are no number.
    pub(super) fn find(text: &str) -> Vec<Self> {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at < characters.len() {
            if !characters[at].1.is_ascii_digit() {
                at += 1;
                continue;
            }
            let end = number_end(&characters, at);
            let before = at.checked_sub(1).map(|index| characters[index].1);
            let after = characters.get(end).map(|(_, c)| *c);
            let inside_word = before.is_some_and(char::is_alphabetic) || glued(text, &characters, end, after);
            if !inside_word {
                found.extend(Self::read(text, &characters, at, end, before));
            }
            at = end;
        }
        found
    }

    fn read(
        text: &str,
        characters: &[(usize, char)],
        at: usize,
        end: usize,
        before: Option<char>,
    ) -> Option<Self> {
        let offset = |index: usize| characters.get(index).map_or(text.len(), |(offset, _)| *offset);
        let digits = &text[offset(at)..offset(end)];
        let value: f64 = digits.replace([',', ' '], "").parse().ok()?;
        let mut start = at;
        let mut unit_before = None;
        if let Some(sign) = before.filter(|c| "$€£¥".contains(*c)) {
            unit_before = unit(&sign.to_string());
            start -= 1;
        }
        let sign_at = start.checked_sub(1);
        let minus = sign_at.is_some_and(|index| {
            let lone = index.checked_sub(1).is_none_or(|index| !characters[index].1.is_alphanumeric());
            matches!(characters[index].1, '-' | '−') && lone
        });
        let next = text[offset(end)..].split_whitespace().next();
        let unit_after = next.and_then(unit);
        let shown = text[offset(start)..offset(end)].to_owned();
        Some(Self { value: if minus { -value } else { value }, unit: unit_before.or(unit_after), shown })
    }

    /// The same amount. A number without a unit goes with any.
    pub(super) fn is(&self, other: &Self) -> bool {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
        match (self.unit, other.unit) {
            (Some(one), Some(two)) => {
                one.kind == two.kind && close(self.value * one.factor, other.value * two.factor)
            }
            _ => close(self.value, other.value),
        }
    }
}

/// Digits with thousands separators and one decimal point.
fn number_end(characters: &[(usize, char)], start: usize) -> usize {
    let digit = |index: usize| characters.get(index).is_some_and(|(_, c)| c.is_ascii_digit());
    let mut end = start;
    let mut point = false;
    loop {
        match characters.get(end).map(|(_, c)| *c) {
            Some(c) if c.is_ascii_digit() => end += 1,
            Some(',') if !point && digit(end + 1) && digit(end + 2) && digit(end + 3) && !digit(end + 4) => {
                end += 1;
            }
            Some('.') if !point && digit(end + 1) => {
                point = true;
                end += 1;
            }
            _ => return end,
        }
    }
}

/// Letters follow directly and are no unit: `12a`, but not `12kg`.
fn glued(text: &str, characters: &[(usize, char)], end: usize, after: Option<char>) -> bool {
    if !after.is_some_and(char::is_alphabetic) {
        return false;
    }
    let offset = characters.get(end).map_or(text.len(), |(offset, _)| *offset);
    let word: String = text[offset..].chars().take_while(|c| c.is_alphanumeric()).collect();
    unit(&word).is_none()
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minus = if self.value < 0.0 { "-" } else { "" };
        write!(f, "{minus}{}", self.shown)
    }
}
