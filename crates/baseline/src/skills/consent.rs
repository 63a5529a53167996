//! Closes cookie banners and similar overlays.

use super::SkillContext;
use crate::{
    action::{Action, Decision},
    nlp,
    page::{Element, Role},
};

/// Labels of the buttons; those that refuse come first.
const LABELS: [&str; 16] = [
    "reject all",
    "reject",
    "decline",
    "only necessary",
    "necessary only",
    "no thanks",
    "not now",
    "maybe later",
    "accept all",
    "accept cookies",
    "accept",
    "i agree",
    "agree",
    "got it",
    "dismiss",
    "allow all",
];
const TOPICS: [&str; 5] = ["cookie", "consent", "privacy", "newsletter", "subscribe"];

pub(super) fn dismiss_banner(context: &mut SkillContext<'_>) -> Option<Decision> {
    let text = context.page.lines.join(" ").to_lowercase();
    if !TOPICS.iter().any(|topic| text.contains(topic)) {
        return None;
    }
    let found = LABELS
        .iter()
        .find_map(|label| context.page.with_role(Role::Button).find(|button| has_label(button, label)))?
        .clone();
    context.try_once(Action::click(&found), "a banner covers the page")
}

fn has_label(button: &Element, label: &str) -> bool {
    let text = button.text.to_lowercase();
    let words = nlp::tokenize(&text).len();
    text == label || (words <= 5 && text.contains(label) && TOPICS.iter().any(|topic| text.contains(topic)))
}
