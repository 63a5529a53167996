//! Whether a piece of text is the kind of answer a question wants, and the part of it that is.

use crate::{
    goal::{Goal, Kind},
    values, words,
};

const PLACES: [&str; 9] =
    ["city", "town", "place", "country", "region", "village", "state", "mountain", "where"];
const LONGEST_NAME: usize = 80;

/// The answer inside a value, in the form the question wants; `None` when it is not of that kind.
pub(super) fn shaped(goal: &Goal, value: &str) -> Option<String> {
    let value = value.trim();
    match goal.kind {
        Kind::Money => {
            values::amounts(value).into_iter().find(|amount| amount.money).map(|amount| amount.text)
        }
        Kind::Count | Kind::Measure => number(goal, value),
        Kind::Year => values::years(value).into_iter().next(),
        Kind::Date => values::dates(value).into_iter().next().map(|(_, written)| written),
        Kind::Time => time(value),
        Kind::Person | Kind::Name => name(goal, value),
        Kind::YesNo => yes_or_no(value),
        Kind::Said | Kind::Anything => (!value.is_empty()).then(|| value.chars().take(200).collect()),
    }
}

/// With its unit, unless that is just the word of the question: `3` for how many years.
fn number(goal: &Goal, value: &str) -> Option<String> {
    let amount = values::amounts(value).into_iter().next()?;
    let asked = goal.noun.contains(&words::stem(&amount.unit));
    let plain = amount.unit.is_empty() || (goal.kind == Kind::Count && asked);
    let bare = amount.text.split(' ').next().unwrap_or_default().to_owned();
    Some(if plain { bare } else { amount.text })
}

fn time(value: &str) -> Option<String> {
    let is_time =
        |word: &&str| word.contains(':') && word.chars().all(|sign| sign.is_ascii_digit() || sign == ':');
    value.split_whitespace().map(|word| word.trim_matches([',', '.', ';'])).find(is_time).map(str::to_owned)
}

/// Without remarks in brackets; of `1858 in Lyon` the place, when a place is asked for.
fn name(goal: &Goal, value: &str) -> Option<String> {
    let bare = value.split(" (").next().unwrap_or(value).trim();
    let place = PLACES.iter().any(|word| goal.noun.contains(&words::stem(word)));
    let bare = match bare.split_once(" in ") {
        Some((before, after)) if place && before.chars().any(|sign| sign.is_ascii_digit()) => after,
        _ => bare,
    };
    (!bare.is_empty() && bare.chars().count() <= LONGEST_NAME).then(|| bare.to_owned())
}

fn yes_or_no(value: &str) -> Option<String> {
    let first = words::tokens(value).first()?.lower();
    match first.as_str() {
        "yes" | "true" => Some("Yes".to_owned()),
        "no" | "not" | "none" | "false" => Some("No".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_take_the_form_of_the_question() {
        for (task, value, wanted) in [
            ("What is the price of it?", "now $59.00 only", Some("$59.00")),
            ("What is the price of it?", "59", None),
            ("How long is it?", "850 km", Some("850 km")),
            ("How many years of experience are needed?", "3 years", Some("3")),
            ("In which year was it founded?", "founded 1290 or so", Some("1290")),
            ("On which date does it start?", "1 May 2025", Some("1 May 2025")),
            ("In which city was she born?", "1858 in Lyon", Some("Lyon")),
            ("Who is the mayor of it?", "Anna Berg (since 2001)", Some("Anna Berg")),
            ("Is it waterproof?", "No, not at all", Some("No")),
            ("At what time does it open?", "from 9:30 on", Some("9:30")),
        ] {
            assert_eq!(shaped(&Goal::read(task), value).as_deref(), wanted, "{task} {value}");
        }
    }
}
