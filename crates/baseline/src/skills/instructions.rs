//! Carries out the instructions of the task one by one, and reports the result.

use super::{SkillContext, answer_format::extract_answer};
use crate::{
    action::{Action, Decision},
    goal::{AnswerKind, Instruction, Subject},
    nlp,
    page::{self, Element, Role},
};

/// Enough for lists that load more items while scrolling.
const MAX_SCROLLS: usize = 12;
const PRESSABLE: [Role; 5] = [Role::Button, Role::Link, Role::Toggle, Role::Option, Role::Other];
const CART_WORDS: [&str; 4] = ["cart", "basket", "bag", "trolley"];

pub(super) fn carry_out_next(context: &mut SkillContext<'_>) -> Option<Decision> {
    let instruction = context.goal.instructions.get(context.memory.instructions_done)?.clone();
    match instruction {
        Instruction::Press { target, times } => press(context, &target, times),
        Instruction::Choose { option, field } => choose(context, &option, &field),
        Instruction::Type { value, field } => type_text(context, &value, &field),
        Instruction::AddToCart { item, count } => add_to_cart(context, &item, count),
    }
}

/// Returns the action that completes the current instruction.
fn complete(context: &mut SkillContext<'_>, action: Action, reason: &str) -> Decision {
    context.memory.remember_lines(context.page);
    context.memory.instructions_done += 1;
    context.memory.repetitions = 0;
    context.memory.scrolled = 0;
    Decision::new(action, reason)
}

fn press(context: &mut SkillContext<'_>, target: &str, times: usize) -> Option<Decision> {
    let Some(element) = context.page.find_by_name(target, &PRESSABLE).cloned() else {
        return scroll(context, target);
    };
    let action = Action::click(&element);
    if context.memory.repetitions + 1 >= times {
        return Some(complete(context, action, "the task asks for it"));
    }
    context.memory.repetitions += 1;
    let reason = format!("the task asks for it, {} of {times}", context.memory.repetitions);
    Some(Decision::new(action, reason))
}

fn scroll(context: &mut SkillContext<'_>, target: &str) -> Option<Decision> {
    if context.memory.at_bottom || context.memory.scrolled >= MAX_SCROLLS {
        return None;
    }
    context.memory.scrolled += 1;
    Some(Decision::new(Action::ScrollDown, format!("“{target}” is not visible yet")))
}

fn choose(context: &mut SkillContext<'_>, option: &str, field: &str) -> Option<Decision> {
    if let Some(element) = context.page.find_by_name(option, &[Role::Option, Role::Toggle]).cloned() {
        return Some(complete(context, Action::click(&element), "the task asks to choose it"));
    }
    if let Some(select) = context.page.find_by_name(field, &[Role::Select]).cloned() {
        // Typing into a select chooses the option with that text.
        return Some(complete(context, Action::type_text(&select, option), "the task asks to choose it"));
    }
    press(context, option, 1)
}

fn type_text(context: &mut SkillContext<'_>, value: &str, field: &str) -> Option<Decision> {
    let fields = [Role::Text, Role::Number, Role::Date];
    let Some(element) = context.page.find_by_name(field, &fields).cloned() else {
        return scroll(context, field);
    };
    Some(complete(context, Action::type_text(&element, value), "the task asks to type it"))
}

/// Makes the item the subject until its page is open, then adds it.
fn add_to_cart(context: &mut SkillContext<'_>, item: &str, count: usize) -> Option<Decision> {
    let subject = Subject::new(item);
    if !context.is_about(&subject) {
        context.memory.subject = Some(item.to_owned());
        return None;
    }
    let is_add_button = |element: &&Element| {
        let first = element.stems.first().map_or("", String::as_str);
        first == "add"
            || first == "buy"
            || element.stems.iter().any(|stem| CART_WORDS.contains(&stem.as_str()))
    };
    let quantity = context
        .page
        .with_role(Role::Number)
        .find(|field| field.stems.iter().any(|stem| nlp::stems_match(stem, &nlp::stem("quantity"))));
    if count > 1
        && let Some(field) = quantity.cloned()
    {
        return Some(complete(
            context,
            Action::type_text(&field, &count.to_string()),
            "typing the quantity submits the form that adds it",
        ));
    }
    let Some(button) = context.page.with_role(Role::Button).find(is_add_button).cloned() else {
        return scroll(context, "Add");
    };
    press(context, &button.text, count)
}

/// Answers the question about the result after all instructions are carried out.
pub(super) fn report_result(context: &mut SkillContext<'_>) -> Option<Decision> {
    let goal = context.goal;
    if goal.instructions.is_empty() || context.memory.instructions_done < goal.instructions.len() {
        return None;
    }
    let labelled =
        if goal.kind == AnswerKind::PageText { field_values(context) } else { labelled_result(context) };
    if let Some(answer) = labelled.or_else(|| changed_line(context)) {
        return Some(Decision::new(Action::answer(&answer), "the page shows this after the instructions"));
    }
    let has_added =
        goal.instructions.iter().any(|instruction| matches!(instruction, Instruction::AddToCart { .. }));
    let cart =
        context.page.links().find(|link| link.stems.iter().any(|stem| CART_WORDS.contains(&stem.as_str())));
    let cart = cart.filter(|_| has_added)?.clone();
    context.try_once(Action::click(&cart), "the cart shows the total")
}

/// Returns the values of the filled fields as the page shows them beside a word of each field's name.
fn field_values(context: &SkillContext<'_>) -> Option<String> {
    if !context.goal.noun.contains(&nlp::stem("fields")) {
        return None;
    }
    let pairs = page::pairs(context.page);
    let fields = context.goal.instructions.iter().filter_map(|instruction| match instruction {
        Instruction::Type { field, .. } => Some(nlp::stems(field)),
        _ => None,
    });
    let values: Option<Vec<String>> = fields
        .map(|field| {
            let matches = |pair: &&page::Pair| {
                !pair.stems.is_empty() && pair.stems.iter().all(|stem| field.contains(stem))
            };
            pairs.iter().rev().find(matches).map(|pair| pair.value.clone())
        })
        .collect();
    values.filter(|values| !values.is_empty()).map(|values| values.join(", "))
}

/// Returns the last value beside a label that the question asks for.
fn labelled_result(context: &SkillContext<'_>) -> Option<String> {
    let goal = context.goal;
    let wanted: Vec<&String> = goal.noun.iter().chain(&goal.wanted).collect();
    let pairs = page::pairs(context.page);
    let matches = |pair: &&page::Pair| {
        let words: Vec<&String> = pair.stems.iter().filter(|stem| !nlp::is_stop_word(stem)).collect();
        !words.is_empty() && words.iter().all(|word| wanted.iter().any(|stem| nlp::stems_match(stem, word)))
    };
    pairs.iter().rev().filter(matches).find_map(|pair| extract_answer(goal, &pair.value))
}

/// Returns the last line that the last action added. Of `label: value` only the value, if the task mentions the label.
fn changed_line(context: &SkillContext<'_>) -> Option<String> {
    let new = context.memory.new_lines(context.page);
    let line = new.last()?;
    let asks_for_line = context.goal.noun.contains(&nlp::stem("line"));
    if let Some((label, value)) = line.split_once(": ").filter(|_| !asks_for_line) {
        let label = nlp::stems(label);
        if label.iter().all(|stem| context.goal.stems.contains(stem)) && !value.trim().is_empty() {
            return Some(value.trim().to_owned());
        }
    }
    Some((*line).to_owned())
}
