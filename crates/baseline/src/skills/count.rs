//! Answers questions for a number of things with the count that a list shows.

use super::{SkillContext, superlatives};
use crate::{
    action::{Action, Decision},
    nlp, values,
};

/// Generic words for the items of a list.
const ITEM_WORDS: [&str; 8] = ["result", "item", "match", "entry", "hit", "listing", "product", "article"];

/// Runs after all filters are set.
pub(super) fn answer(context: &mut SkillContext<'_>) -> Option<Decision> {
    if !context.goal.is_count() || !context.goal.instructions.is_empty() || context.memory.subject.is_some() {
        return None;
    }
    let (answer, line) = shown_count(context)?;
    context.memory.offer_guess(&answer, 0.3);
    let is_filtered = !context.memory.filters.is_empty() || superlatives::is_limited_to_subject(context);
    if context.memory.has_unsent_filters || !is_filtered {
        return None;
    }
    Some(Decision::new(Action::answer(&answer), format!("the list shows “{line}”")))
}

/// Finds a short line such as `12 products, page 1 of 2`; returns the number and the line.
fn shown_count(context: &SkillContext<'_>) -> Option<(String, String)> {
    let is_short = |line: &&String| line.split_whitespace().count() <= 10;
    let has_filters = !context.memory.filters.is_empty();
    let is_count_of_items = |unit: &str| {
        let unit = nlp::stem(unit);
        context.goal.noun.contains(&unit) || (has_filters && ITEM_WORDS.contains(&unit.as_str()))
    };
    context.page.lines.iter().filter(is_short).find_map(|line| {
        let amount = values::amounts(line).into_iter().next()?;
        let starts_with_number = line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let number = amount.text.split(' ').next()?.to_owned();
        (starts_with_number && !amount.is_money && is_count_of_items(&amount.unit))
            .then(|| (number, line.clone()))
    })
}
