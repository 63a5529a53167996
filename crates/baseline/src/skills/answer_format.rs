//! Extracts the part of a text that has the kind of answer the question asks for.

use crate::{
    goal::{AnswerKind, Goal},
    nlp, values,
};

const PLACE_WORDS: [&str; 9] =
    ["city", "town", "place", "country", "region", "village", "state", "mountain", "where"];
const MAX_NAME_CHARS: usize = 80;

/// Returns the answer in a value, in the format that the question asks for; `None` if the value has none.
pub(super) fn extract_answer(goal: &Goal, value: &str) -> Option<String> {
    let value = value.trim();
    match goal.kind {
        AnswerKind::Money => {
            values::amounts(value).into_iter().find(|amount| amount.is_money).map(|amount| amount.text)
        }
        AnswerKind::Count | AnswerKind::Measure => number(goal, value),
        AnswerKind::Year => values::years(value).into_iter().next(),
        AnswerKind::Date => values::dates(value).into_iter().next().map(|(_, written)| written),
        AnswerKind::Time => time(value),
        AnswerKind::Person | AnswerKind::Name => name(goal, value),
        AnswerKind::YesNo => yes_or_no(value),
        AnswerKind::PageText | AnswerKind::Anything => {
            (!value.is_empty()).then(|| value.chars().take(200).collect())
        }
    }
}

/// Returns the number with its unit, unless the question already contains the unit: `3` for "how many years".
fn number(goal: &Goal, value: &str) -> Option<String> {
    let amount = values::amounts(value).into_iter().next()?;
    let is_in_question = goal.noun.contains(&nlp::stem(&amount.unit));
    let without_unit = amount.unit.is_empty() || (goal.kind == AnswerKind::Count && is_in_question);
    let number = amount.text.split(' ').next().unwrap_or_default().to_owned();
    Some(if without_unit { number } else { amount.text })
}

fn time(value: &str) -> Option<String> {
    let is_time = |word: &&str| word.contains(':') && word.chars().all(|c| c.is_ascii_digit() || c == ':');
    value.split_whitespace().map(|word| word.trim_matches([',', '.', ';'])).find(is_time).map(str::to_owned)
}

/// Returns the value without remarks in parentheses; of `1858 in Lyon` only the place, if a place is asked for.
fn name(goal: &Goal, value: &str) -> Option<String> {
    let name = value.split(" (").next().unwrap_or(value).trim();
    let asks_for_place = PLACE_WORDS.iter().any(|word| goal.noun.contains(&nlp::stem(word)));
    let name = match name.split_once(" in ") {
        Some((before, after)) if asks_for_place && before.chars().any(|c| c.is_ascii_digit()) => after,
        _ => name,
    };
    (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS).then(|| name.to_owned())
}

fn yes_or_no(value: &str) -> Option<String> {
    let first = nlp::tokenize(value).first()?.lower();
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
    fn answers_have_the_requested_format() {
        for (task, value, expected) in [
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
            assert_eq!(extract_answer(&Goal::parse(task), value).as_deref(), expected, "{task} {value}");
        }
    }
}
