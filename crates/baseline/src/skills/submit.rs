//! Sending a form whose filters were set.

use super::Scene;
use crate::{
    action::{Action, Move},
    page::{Element, Page, Role},
};

/// What such buttons say; the first group is about filters, the second about anything.
const APPLY: [&str; 4] = ["apply", "filter", "update", "refine"];
const GO: [&str; 7] = ["show", "search", "go", "find", "submit", "ok", "view"];
/// Far enough to reach the end of a form.
const MOST_SCROLLS: usize = 3;

/// Presses the button; scrolls to it when only the text shows that there is one.
pub(super) fn send(scene: &mut Scene<'_>) -> Option<Move> {
    if let Some(button) = button(scene.page).cloned() {
        scene.memory.unsent = false;
        let action = Action::click(&button);
        scene.memory.note(&action.sentence());
        return Some(Move::new(action, "the filters are set and must be applied"));
    }
    let promised = scene
        .page
        .lines
        .iter()
        .any(|line| is_short(line) && says(line, &APPLY) || is_short(line) && says(line, &GO));
    if promised && scene.memory.scrolled < MOST_SCROLLS && !scene.memory.bottom {
        scene.memory.scrolled += 1;
        return Some(Move::new(Action::ScrollDown, "the button that applies the filters is further down"));
    }
    // Some forms apply a filter as soon as it is set.
    scene.memory.unsent = false;
    None
}

fn is_short(line: &str) -> bool {
    line.split_whitespace().count() <= 3
}

fn says(text: &str, verbs: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let first = lower.split_whitespace().next().unwrap_or_default();
    verbs.contains(&first)
}

/// The one behind the filters. A button of the search field is another form's, unless there is no other.
fn button(page: &Page) -> Option<&Element> {
    let last = page
        .elements
        .iter()
        .rposition(|element| matches!(element.role, Role::Select | Role::Tick | Role::Number));
    let behind = page.elements.iter().skip(last.unwrap_or(0));
    let buttons: Vec<&Element> = behind.filter(|element| element.role == Role::Button).collect();
    let any: Vec<&Element> = page.of(Role::Button).collect();
    let pick =
        |list: &[&'_ Element], verbs: &[&str]| list.iter().position(|button| says(&button.text, verbs));
    pick(&buttons, &APPLY)
        .or_else(|| pick(&buttons, &GO))
        .map(|place| buttons[place])
        .or_else(|| pick(&any, &APPLY).map(|place| any[place]))
}
