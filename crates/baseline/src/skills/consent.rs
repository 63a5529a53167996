//! Cookie banners and the like are closed when they are in sight.

use super::Scene;
use crate::{
    action::{Action, Move},
    page::{Element, Role},
    words,
};

/// What such buttons say, the gentler first.
const BUTTONS: [&str; 16] = [
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

pub(super) fn dismiss(scene: &mut Scene<'_>) -> Option<Move> {
    let text = scene.page.lines.join(" ").to_lowercase();
    if !TOPICS.iter().any(|topic| text.contains(topic)) {
        return None;
    }
    let found = BUTTONS
        .iter()
        .find_map(|label| scene.page.of(Role::Button).find(|button| says(button, label)))?
        .clone();
    scene.once(Action::click(&found), "a banner covers the page")
}

fn says(button: &Element, label: &str) -> bool {
    let text = button.text.to_lowercase();
    let words = words::tokens(&text).len();
    text == label || (words <= 5 && text.contains(label) && TOPICS.iter().any(|topic| text.contains(topic)))
}
