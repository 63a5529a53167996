//! Follows relations: from the page of the named subject to the page of the thing that is asked about.

use super::{SkillContext, fact};
use crate::{
    action::{Action, Decision},
    nlp,
    page::{self, Element, Pair},
};

/// Follows a relation that the task mentions, such as the teacher of a person, before the first fact is read.
pub(super) fn follow_first(context: &mut SkillContext<'_>) -> Option<Decision> {
    if context.memory.used_stems.is_empty() { follow(context) } else { None }
}

/// Follows a relation after no fact was found on the page.
pub(super) fn follow(context: &mut SkillContext<'_>) -> Option<Decision> {
    if !can_follow(context) {
        return None;
    }
    let (link, used) = page::pairs(context.page).iter().find_map(|pair| related_link(context, pair))?;
    open(context, &link, used)
}

/// Follows the link below the heading, which names the maker or provider of the subject.
pub(super) fn follow_byline(context: &mut SkillContext<'_>) -> Option<Decision> {
    if !can_follow(context) || context.memory.subject.is_some() {
        return None;
    }
    let link = fact::link_below_heading(context.page)?.clone();
    open(context, &link, Vec::new())
}

fn can_follow(context: &SkillContext<'_>) -> bool {
    let has_open_superlative = context.memory.subject.is_none() && !context.goal.superlatives.is_empty();
    let is_about = context.subject().is_some_and(|subject| context.is_about(&subject));
    is_about && !has_open_superlative && context.goal.instructions.is_empty()
}

/// Returns the link beside a label that the question mentions but does not ask for, if the question asks for more.
fn related_link(context: &SkillContext<'_>, pair: &Pair) -> Option<(Element, Vec<String>)> {
    let matches = |stem: &String| pair.stems.iter().any(|word| nlp::stems_match(stem, word));
    let goal = context.goal;
    let open = context.open_stems();
    let used: Vec<String> = open.iter().filter(|stem| matches(stem)).cloned().collect();
    let asks_more = open.iter().any(|stem| !matches(stem) && !goal.noun.contains(stem));
    if !pair.same_line || used.is_empty() || !asks_more || goal.noun.iter().any(matches) {
        return None;
    }
    let link = context.page.links().find(|link| link.text == pair.value)?;
    Some((link.clone(), used))
}

/// Clicks the link and makes its target the subject.
fn open(context: &mut SkillContext<'_>, link: &Element, used: Vec<String>) -> Option<Decision> {
    let decision = context
        .try_once(Action::click(link), format!("“{}” is related to what the task asks for", link.text))?;
    context.memory.subject = Some(link.text.clone());
    context.memory.used_stems.extend(used);
    let relative_clause = context.goal.relative_clause.clone();
    context.memory.used_stems.extend(relative_clause);
    // Earlier guesses are about another subject.
    context.memory.guess = None;
    Some(decision)
}
