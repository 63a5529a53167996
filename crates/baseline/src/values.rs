//! Finds amounts, years and dates in text, and parses number words.

use crate::nlp::{Token, is_stop_word, tokenize};

/// A number in a text, with its currency sign or unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Amount {
    pub(crate) value: f64,
    /// The number as written, with currency sign or unit.
    pub(crate) text: String,
    pub(crate) is_money: bool,
    pub(crate) unit: String,
    /// Byte offset in the text.
    pub(crate) start: usize,
}

const CURRENCIES: [char; 4] = ['$', '€', '£', '¥'];

/// Returns all numbers of a text.
pub(crate) fn amounts(text: &str) -> Vec<Amount> {
    let all = tokenize(text);
    let mut found = Vec::new();
    for (index, token) in all.iter().enumerate() {
        let Some(value) = parse_number(token.text) else { continue };
        let start = token.end - token.text.len();
        let currency = token.gap.trim_end().chars().last().filter(|c| CURRENCIES.contains(c));
        let unit = all.get(index + 1).map(|next| unit_after(text, token, next)).unwrap_or_default();
        let written = match (currency, unit.is_empty()) {
            (Some(currency), _) => format!("{currency}{}", token.text),
            (None, false) => format!("{} {unit}", token.text),
            (None, true) => token.text.to_owned(),
        };
        found.push(Amount { value, text: written, is_money: currency.is_some(), unit, start });
    }
    found
}

/// Returns the word after a number as its unit, including symbols such as `³/s`.
fn unit_after(text: &str, number: &Token<'_>, next: &Token<'_>) -> String {
    let is_adjacent = matches!(next.gap, "" | " " | "\u{a0}");
    if !is_adjacent
        || is_stop_word(&next.lower())
        || !next.text.starts_with(char::is_alphabetic)
        || next.text.len() > 12
    {
        return String::new();
    }
    let from = number.end + next.gap.len();
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.find(|c: char| c.is_whitespace() || ",.;:)".contains(c)).unwrap_or(rest.len());
    rest.get(..length).unwrap_or(next.text).to_owned()
}

/// Parses `1,240,000`, `4.5` or `12`.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let digits = text.replace(',', "");
    let is_numeric = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_numeric && digits.len() <= 15).then(|| digits.parse().ok()).flatten()
}

/// Returns all numbers that can be years.
pub(crate) fn years(text: &str) -> Vec<String> {
    let is_year = |token: &Token<'_>| {
        token.text.len() == 4 && token.text.parse().is_ok_and(|year: u32| (1000..2200).contains(&year))
    };
    tokenize(text).iter().filter(|token| is_year(token)).map(|token| token.text.to_owned()).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Date {
    /// Formats the date as `YYYY-MM-DD`, the value of a date input.
    pub(crate) fn iso(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Parses a month name or its first three letters.
pub(crate) fn parse_month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let index =
        MONTHS.iter().position(|name| *name == word || (word.len() == 3 && name.starts_with(&word)))?;
    u32::try_from(index + 1).ok()
}

/// Returns all dates with their text: `1 May 2025`, `May 1, 2025`, `2025-05-01`.
pub(crate) fn dates(text: &str) -> Vec<(Date, String)> {
    let all = tokenize(text);
    all.windows(3)
        .filter_map(|three| {
            let date = parse_date([three[0].text, three[1].text, three[2].text])?;
            let start = three[0].end - three[0].text.len();
            Some((date, text.get(start..three[2].end)?.to_owned()))
        })
        .collect()
}

fn parse_date([first, second, third]: [&str; 3]) -> Option<Date> {
    let number = |text: &str| text.parse::<u32>().ok();
    let (year, month, day) = if let Some(month) = parse_month(second) {
        (number(third)?, month, number(first)?)
    } else if let Some(month) = parse_month(first) {
        (number(third)?, month, number(second)?)
    } else {
        (number(first)?, number(second)?, number(third)?)
    };
    let is_valid = (1000..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_valid.then_some(Date { year, month, day })
}

const NUMBER_WORDS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
const ORDINAL_WORDS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// Parses `three`, `3`, `twice` or `a`.
pub(crate) fn parse_count(word: &str) -> Option<usize> {
    let word = word.to_lowercase();
    match word.as_str() {
        "a" | "an" | "once" => Some(1),
        "twice" | "both" => Some(2),
        _ => NUMBER_WORDS
            .iter()
            .position(|name| *name == word)
            .or_else(|| word.parse().ok().filter(|count| *count < 1000)),
    }
}

/// Parses `third` or `3rd`.
pub(crate) fn parse_ordinal(word: &str) -> Option<usize> {
    let word = word.to_lowercase();
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let numeral = digits.parse().ok().filter(|_| ["st", "nd", "rd", "th"].contains(&&word[digits.len()..]));
    ORDINAL_WORDS.iter().position(|name| *name == word).map(|index| index + 1).or(numeral)
}

/// Formats a number with thousands separators, and with decimals if it has some.
pub(crate) fn format_grouped(value: f64) -> String {
    let whole = value.abs().trunc();
    let digits = format!("{whole:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let fraction = value.abs() - whole;
    if fraction > 0.001 {
        text.push_str(format!("{fraction:.2}").trim_start_matches('0'));
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_currency_and_unit() {
        let found: Vec<_> = amounts("$1,234.50 for 850 km, 7 W and 186 m³/s; 4.5 (212 reviews)")
            .into_iter()
            .map(|amount| (amount.value, amount.text, amount.is_money))
            .collect();
        let expected = [
            (1234.5, "$1,234.50", true),
            (850.0, "850 km", false),
            (7.0, "7 W", false),
            (186.0, "186 m³/s", false),
            (4.5, "4.5", false),
            (212.0, "212 reviews", false),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found.0 - expected.0).abs() < 1e-9 && found.1 == expected.1 && found.2 == expected.2,
                "{found:?}"
            );
        }
    }

    #[test]
    fn common_date_formats_are_parsed() {
        for text in ["1 May 2025", "May 1, 2025", "2025-05-01", "1 may 2025"] {
            let found = dates(&format!("posted {text} here"));
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!((found[0].0.iso().as_str(), found[0].1.as_str()), ("2025-05-01", text));
        }
        assert!(dates("rated 4 of 5 by 99 people").is_empty());
    }

    #[test]
    fn number_words_are_parsed() {
        assert_eq!(
            (parse_count("three"), parse_count("Twice"), parse_count("12")),
            (Some(3), Some(2), Some(12))
        );
        assert_eq!(
            (parse_ordinal("third"), parse_ordinal("2nd"), parse_ordinal("second"), parse_ordinal("house")),
            (Some(3), Some(2), Some(2), None)
        );
        assert_eq!(years("in 1950 and 75,000 or 123"), ["1950"]);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            (format_grouped(1_702_000.0), format_grouped(12.5), format_grouped(-999.0)),
            ("1,702,000".into(), "12.50".into(), "-999".into())
        );
    }
}
