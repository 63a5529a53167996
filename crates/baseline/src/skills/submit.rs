//! Submits a form whose filters were set.

use super::SkillContext;
use crate::{
    action::{Action, Decision},
    page::{Element, Page, Role},
};

/// First words of buttons that apply filters.
const APPLY_WORDS: [&str; 4] = ["apply", "filter", "update", "refine"];
/// First words of other submit buttons.
const SUBMIT_WORDS: [&str; 7] = ["show", "search", "go", "find", "submit", "ok", "view"];
/// Enough to reach the end of a form.
const MAX_SCROLLS: usize = 3;

/// Clicks the submit button, or scrolls down if only the page's text shows that there is one.
pub(super) fn submit(context: &mut SkillContext<'_>) -> Option<Decision> {
    if let Some(button) = submit_button(context.page).cloned() {
        context.memory.has_unsent_filters = false;
        let action = Action::click(&button);
        context.memory.record_action(&action.description());
        return Some(Decision::new(action, "the filters are set and must be applied"));
    }
    let is_in_text = context.page.lines.iter().any(|line| {
        is_short(line) && starts_with_word(line, &APPLY_WORDS)
            || is_short(line) && starts_with_word(line, &SUBMIT_WORDS)
    });
    if is_in_text && context.memory.scrolled < MAX_SCROLLS && !context.memory.at_bottom {
        context.memory.scrolled += 1;
        return Some(Decision::new(
            Action::ScrollDown,
            "the button that applies the filters is further down",
        ));
    }
    // There is no submit button, so the form probably applies filters immediately.
    context.memory.has_unsent_filters = false;
    None
}

fn is_short(line: &str) -> bool {
    line.split_whitespace().count() <= 3
}

fn starts_with_word(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let first = lower.split_whitespace().next().unwrap_or_default();
    words.contains(&first)
}

/// Returns the submit button after the last filter. An earlier button may belong to a search form, so it is used only if
/// it applies filters.
fn submit_button(page: &Page) -> Option<&Element> {
    let last = page
        .elements
        .iter()
        .rposition(|element| matches!(element.role, Role::Select | Role::Toggle | Role::Number));
    let after = page.elements.iter().skip(last.unwrap_or(0));
    let buttons: Vec<&Element> = after.filter(|element| element.role == Role::Button).collect();
    let all: Vec<&Element> = page.with_role(Role::Button).collect();
    let find = |list: &[&Element], words: &[&str]| {
        list.iter().position(|button| starts_with_word(&button.text, words))
    };
    find(&buttons, &APPLY_WORDS)
        .or_else(|| find(&buttons, &SUBMIT_WORDS))
        .map(|index| buttons[index])
        .or_else(|| find(&all, &APPLY_WORDS).map(|index| all[index]))
}
