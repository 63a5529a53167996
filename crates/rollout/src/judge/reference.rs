//! Judging without a model: the final answer against the reference answer, by text, numbers with units, dates and
//! lists in any order. Pure; says how it decided.

mod dates;
mod quantities;
mod words;

use quantities::Quantity;
use words::{Words, items};

/// A decision and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub matches: bool,
    pub how: String,
}

impl Decision {
    fn yes(how: impl Into<String>) -> Self {
        Self { matches: true, how: how.into() }
    }

    fn no(how: impl Into<String>) -> Self {
        Self { matches: false, how: how.into() }
    }
}

/// An answer that names more numbers than this is guessing, not answering.
const MOST_NUMBERS: usize = 6;

/// Does `answer` say what `reference` says?
pub fn compare(answer: &str, reference: &str) -> Decision {
    let (given, wanted) = (Words::of(answer), Words::of(reference));
    if wanted.is_empty() {
        return Decision::no("the reference answer is empty");
    }
    if given.is_empty() {
        return Decision::no("the answer is empty");
    }
    if given == wanted {
        return Decision::yes("the answer is the reference, word for word");
    }
    if let Some(decision) = yes_or_no(&given, &wanted) {
        return decision;
    }
    let parts = items(reference);
    if parts.len() > 1 {
        return list(answer, &parts);
    }
    single(answer, reference)
}

/// Every item must be there; their order does not matter.
fn list(answer: &str, parts: &[String]) -> Decision {
    let missing: Vec<&String> = parts.iter().filter(|part| !single(answer, part).matches).collect();
    match missing.first() {
        None => Decision::yes(format!("all {} items of the reference are in the answer", parts.len())),
        Some(first) => {
            Decision::no(format!("{} of {} items are missing, first {first:?}", missing.len(), parts.len()))
        }
    }
}

fn single(answer: &str, reference: &str) -> Decision {
    let wanted_dates = dates::find(reference);
    if let [date] = wanted_dates.as_slice() {
        let found = dates::find(answer);
        return if found.contains(date) {
            Decision::yes(format!("the answer names the date {date}"))
        } else {
            Decision::no(format!("the answer does not name the date {date}"))
        };
    }
    if let Some(wanted) = Quantity::only(reference) {
        return number(answer, &wanted);
    }
    if Words::of(answer).contain(&Words::of(reference)) {
        return Decision::yes("the reference stands in the answer");
    }
    Decision::no("the reference does not stand in the answer")
}

fn number(answer: &str, wanted: &Quantity) -> Decision {
    let found = Quantity::find(answer);
    if !found.iter().any(|one| one.is(wanted)) {
        return Decision::no(format!("the answer does not say {wanted}"));
    }
    if found.len() > MOST_NUMBERS {
        return Decision::no(format!(
            "the answer names {} numbers; one of them being {wanted} says nothing",
            found.len()
        ));
    }
    Decision::yes(format!("the answer says {wanted}"))
}

fn yes_or_no(given: &Words, wanted: &Words) -> Option<Decision> {
    let wanted = wanted.yes_or_no_alone()?;
    let said = given.first_yes_or_no();
    Some(match said {
        Some(said) if said == wanted => {
            Decision::yes(format!("both say {}", if said { "yes" } else { "no" }))
        }
        Some(_) => Decision::no("one says yes, the other no"),
        None => Decision::no("the answer says neither yes nor no"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_as_a_person_would() {
        let cases = [
            ("Paris", "paris", true),
            ("The capital is **Paris**.", "Paris", true),
            ("Parisian", "Paris", false),
            ("$1,299.00", "$1299", true),
            ("It costs 1299 dollars", "$1,299", true),
            ("It costs 1,299.01 dollars", "$1,299", false),
            ("€12", "$12", false),
            ("12", "$12", true),
            ("5 km", "5 kilometres", true),
            ("5 miles", "5 km", false),
            ("5000 m", "5 km", true),
            ("forty-two", "42", false),
            ("There are 3 lamps", "3", true),
            ("There are 13 lamps", "3", false),
            ("1 2 3 4 5 6 7 8", "3", false),
            ("-4 °C", "-4", true),
            ("4 °C", "-4", false),
            ("50%", "50 percent", true),
            ("It was on 15 November 2026", "2026-11-15", true),
            ("November 15th, 2026", "15.11.2026", true),
            ("2026/11/14", "2026-11-15", false),
            ("red, green and blue", "blue; red; green", true),
            ("red and green", "blue, red, green", false),
            ("Yes, it is in stock.", "yes", true),
            ("No", "yes", false),
            ("Not sure", "no", false),
            ("", "x", false),
            ("x", "", false),
            ("O'Neill & Sons", "ONeill and Sons", false),
            ("o’neill and sons", "O'Neill and Sons", true),
            ("Ärger", "ärger", true),
            ("The author is Mira Holt (born 1901)", "Mira Holt", true),
            ("item 12a", "12", false),
        ];
        for (answer, reference, matches) in cases {
            let decision = compare(answer, reference);
            assert_eq!(decision.matches, matches, "{answer:?} against {reference:?}: {}", decision.how);
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_equals_itself(text in "\\PC{0,60}") {
            let decision = compare(&text, &text);
            let has_words = !Words::of(&text).is_empty();
            proptest::prop_assert_eq!(decision.matches, has_words);
        }
    }
}
