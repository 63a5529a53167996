//! Finds dates in text, in the usual formats: 2026-11-15, 15 November 2026, November 15th, 2026, 15.11.2026, 11/15/2026.

use std::sync::LazyLock;

use jiff::civil::Date;

/// English month names in lower case.
static MONTHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let first_days = (1..=12).filter_map(|month| Date::new(2000, month, 1).ok());
    first_days.map(|day| day.strftime("%B").to_string().to_lowercase()).collect()
});

/// Returns every date in the text.
pub(super) fn find(text: &str) -> Vec<Date> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let mut dates: Vec<Date> = words.iter().filter_map(|word| parse_numeric(word)).collect();
    dates.extend(words.windows(3).filter_map(|three| parse_with_month_name(&three[0], &three[1], &three[2])));
    dates
}

fn parse_with_month_name(first: &str, second: &str, year: &str) -> Option<Date> {
    let year: i16 = year.parse().ok().filter(|year| (1000..=9999).contains(year))?;
    let (day, month) = match (month(first), month(second)) {
        (Some(month), None) => (day(second)?, month),
        (None, Some(month)) => (day(first)?, month),
        _ => return None,
    };
    Date::new(year, month, day).ok()
}

fn month(word: &str) -> Option<i8> {
    if word.len() < 3 {
        return None;
    }
    let index =
        MONTHS.iter().position(|month| *month == word || (word.len() <= 4 && month.starts_with(word)))?;
    i8::try_from(index + 1).ok()
}

fn day(word: &str) -> Option<i8> {
    let digits =
        word.trim_end_matches("st").trim_end_matches("nd").trim_end_matches("rd").trim_end_matches("th");
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn parse_numeric(word: &str) -> Option<Date> {
    let separator = ['-', '/', '.'].into_iter().find(|separator| word.matches(*separator).count() == 2)?;
    let parts: Vec<i16> = word.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [first, second, third] = parts.as_slice() else { return None };
    let to_i8 = |value: i16| i8::try_from(value).ok();
    let (year, month, day) = match (first, separator) {
        (1000.., _) => (*first, to_i8(*second)?, to_i8(*third)?),
        // With slashes the month comes first if it can be a month; otherwise the day comes first.
        (_, '/') if *first <= 12 => (*third, to_i8(*first)?, to_i8(*second)?),
        _ => (*third, to_i8(*second)?, to_i8(*first)?),
    };
    Date::new(year, month, day).ok().filter(|_| year >= 1000)
}
