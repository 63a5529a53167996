//! Dates in the forms people write: 2026-11-15, 15 November 2026, November 15th, 2026, 15.11.2026, 11/15/2026.

use jiff::civil::Date;

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

/// Every date of the text.
pub(super) fn find(text: &str) -> Vec<Date> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let mut dates: Vec<Date> = words.iter().filter_map(|word| digits(word)).collect();
    dates.extend(words.windows(3).filter_map(|three| in_words(&three[0], &three[1], &three[2])));
    dates
}

fn in_words(first: &str, second: &str, year: &str) -> Option<Date> {
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
    let place =
        MONTHS.iter().position(|month| *month == word || (word.len() <= 4 && month.starts_with(word)))?;
    i8::try_from(place + 1).ok()
}

fn day(word: &str) -> Option<i8> {
    let digits =
        word.trim_end_matches("st").trim_end_matches("nd").trim_end_matches("rd").trim_end_matches("th");
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn digits(word: &str) -> Option<Date> {
    let separator = ['-', '/', '.'].into_iter().find(|separator| word.matches(*separator).count() == 2)?;
    let parts: Vec<i16> = word.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [one, two, three] = parts.as_slice() else { return None };
    let small = |value: i16| i8::try_from(value).ok();
    let (year, month, day) = match (one, separator) {
        (1000.., _) => (*one, small(*two)?, small(*three)?),
        // Points are day first; slashes are month first unless that cannot be.
        (_, '/') if *one <= 12 => (*three, small(*one)?, small(*two)?),
        _ => (*three, small(*two)?, small(*one)?),
    };
    Date::new(year, month, day).ok().filter(|_| year >= 1000)
}
