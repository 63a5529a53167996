//! Amounts, money, years, dates and counting words inside text, with the text they were written as.

use crate::words::{Token, is_stop, tokens};

/// A number as it is written, with its currency sign or unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Amount {
    pub(crate) value: f64,
    /// With the currency sign in front or the unit behind.
    pub(crate) text: String,
    pub(crate) money: bool,
    pub(crate) unit: String,
    pub(crate) at: usize,
}

const CURRENCIES: [char; 4] = ['$', '€', '£', '¥'];

/// Every number in a text.
pub(crate) fn amounts(text: &str) -> Vec<Amount> {
    let all = tokens(text);
    let mut found = Vec::new();
    for (place, token) in all.iter().enumerate() {
        let Some(value) = number(token.text) else { continue };
        let start = token.end - token.text.len();
        let sign = token.gap.trim_end().chars().last().filter(|sign| CURRENCIES.contains(sign));
        let unit = all.get(place + 1).map(|next| unit_after(text, token, next)).unwrap_or_default();
        let written = match (sign, unit.is_empty()) {
            (Some(sign), _) => format!("{sign}{}", token.text),
            (None, false) => format!("{} {unit}", token.text),
            (None, true) => token.text.to_owned(),
        };
        found.push(Amount { value, text: written, money: sign.is_some(), unit, at: start });
    }
    found
}

/// The unit is the word right behind a number, with the small signs that some units end in.
fn unit_after(text: &str, number: &Token<'_>, next: &Token<'_>) -> String {
    let close = matches!(next.gap, "" | " " | "\u{a0}");
    if !close || is_stop(&next.lower()) || !next.text.starts_with(char::is_alphabetic) || next.text.len() > 12
    {
        return String::new();
    }
    let from = number.end + next.gap.len();
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.find(|sign: char| sign.is_whitespace() || ",.;:)".contains(sign)).unwrap_or(rest.len());
    rest.get(..length).unwrap_or(next.text).to_owned()
}

/// `1,240,000`, `4.5`, `12`.
pub(crate) fn number(text: &str) -> Option<f64> {
    let bare = text.replace(',', "");
    let digits = bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (digits && bare.len() <= 15).then(|| bare.parse().ok()).flatten()
}

/// A year on its own.
pub(crate) fn years(text: &str) -> Vec<String> {
    let is_year = |token: &Token<'_>| {
        token.text.len() == 4 && token.text.parse().is_ok_and(|year: u32| (1000..2200).contains(&year))
    };
    tokens(text).iter().filter(|token| is_year(token)).map(|token| token.text.to_owned()).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Date {
    /// As date fields take it.
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

pub(crate) fn month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let place =
        MONTHS.iter().position(|name| *name == word || (word.len() == 3 && name.starts_with(&word)))?;
    u32::try_from(place + 1).ok()
}

/// Dates and how they are written: `1 May 2025`, `May 1, 2025`, `2025-05-01`.
pub(crate) fn dates(text: &str) -> Vec<(Date, String)> {
    let all = tokens(text);
    all.windows(3)
        .filter_map(|three| {
            let date = date_of([three[0].text, three[1].text, three[2].text])?;
            let start = three[0].end - three[0].text.len();
            Some((date, text.get(start..three[2].end)?.to_owned()))
        })
        .collect()
}

fn date_of([first, second, third]: [&str; 3]) -> Option<Date> {
    let whole = |text: &str| text.parse::<u32>().ok();
    let (year, month, day) = if let Some(named) = month(second) {
        (whole(third)?, named, whole(first)?)
    } else if let Some(named) = month(first) {
        (whole(third)?, named, whole(second)?)
    } else {
        (whole(first)?, whole(second)?, whole(third)?)
    };
    let sensible = (1000..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    sensible.then_some(Date { year, month, day })
}

const COUNTING: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
const ORDERING: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// `three`, `3`, `twice`, `a`, `pair`.
pub(crate) fn counting(word: &str) -> Option<usize> {
    let word = word.to_lowercase();
    match word.as_str() {
        "a" | "an" | "once" => Some(1),
        "twice" | "both" => Some(2),
        _ => COUNTING
            .iter()
            .position(|name| *name == word)
            .or_else(|| word.parse().ok().filter(|count| *count < 1000)),
    }
}

/// `third`, `3rd`.
pub(crate) fn ordinal(word: &str) -> Option<usize> {
    let word = word.to_lowercase();
    let digits = word.trim_end_matches(|sign: char| sign.is_ascii_alphabetic());
    let numeral = digits.parse().ok().filter(|_| ["st", "nd", "rd", "th"].contains(&&word[digits.len()..]));
    ORDERING.iter().position(|name| *name == word).map(|place| place + 1).or(numeral)
}

/// `1,702` for 1702, with decimals only where there are some.
pub(crate) fn grouped(value: f64) -> String {
    let whole = value.abs().trunc();
    let digits = format!("{whole:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let rest = value.abs() - whole;
    if rest > 0.001 {
        text.push_str(format!("{rest:.2}").trim_start_matches('0'));
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_their_sign_and_unit() {
        let found: Vec<_> = amounts("$1,234.50 for 850 km, 7 W and 186 m³/s; 4.5 (212 reviews)")
            .into_iter()
            .map(|amount| (amount.value, amount.text, amount.money))
            .collect();
        let wanted = [
            (1234.5, "$1,234.50", true),
            (850.0, "850 km", false),
            (7.0, "7 W", false),
            (186.0, "186 m³/s", false),
            (4.5, "4.5", false),
            (212.0, "212 reviews", false),
        ];
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(
                (found.0 - wanted.0).abs() < 1e-9 && found.1 == wanted.1 && found.2 == wanted.2,
                "{found:?}"
            );
        }
    }

    #[test]
    fn dates_are_read_in_their_usual_forms() {
        for text in ["1 May 2025", "May 1, 2025", "2025-05-01", "1 may 2025"] {
            let found = dates(&format!("posted {text} here"));
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!((found[0].0.iso().as_str(), found[0].1.as_str()), ("2025-05-01", text));
        }
        assert!(dates("rated 4 of 5 by 99 people").is_empty());
    }

    #[test]
    fn counting_words_count() {
        assert_eq!((counting("three"), counting("Twice"), counting("12")), (Some(3), Some(2), Some(12)));
        assert_eq!(
            (ordinal("third"), ordinal("2nd"), ordinal("second"), ordinal("house")),
            (Some(3), Some(2), Some(2), None)
        );
        assert_eq!(years("in 1950 and 75,000 or 123"), ["1950"]);
    }

    #[test]
    fn numbers_are_written_in_groups() {
        assert_eq!(
            (grouped(1_702_000.0), grouped(12.5), grouped(-999.0)),
            ("1,702,000".into(), "12.50".into(), "-999".into())
        );
    }
}
