//! When nothing on the screen fits: further down, the next page, back, and at last the start.

use super::Scene;
use crate::{
    action::{Action, Move},
    page::Role,
    words,
};

/// How many screens down a page is looked at.
const MOST_SCROLLS: usize = 4;
const EMPTY: [&str; 6] =
    ["no result", "nothing match", "nothing found", "no match", "did not match", "nothing was found"];
const NEXT: [&str; 5] = ["next", "next page", "›", "»", "more"];

pub(super) fn look_around(scene: &mut Scene<'_>) -> Option<Move> {
    scroll(scene).or_else(|| next_page(scene)).or_else(|| back(scene))
}

/// A page that did not load or shows nothing yet.
pub(super) fn recover(scene: &mut Scene<'_>) -> Option<Move> {
    let page = scene.page;
    if page.url.starts_with("chrome-error:") || page.url.starts_with("about:blank") {
        let url = scene.start.to_owned();
        return if url.is_empty() { None } else { scene.once(Action::Navigate { url }, "no page is open") };
    }
    let empty = page.elements.is_empty() && page.lines.is_empty();
    if empty { scene.once(Action::Wait, "the page shows nothing yet") } else { None }
}

/// A search that found nothing.
pub(super) fn leave_empty(scene: &mut Scene<'_>) -> Option<Move> {
    let says = |line: &String| {
        let lower = line.to_lowercase();
        let short = line.split_whitespace().count() <= 14;
        short && (EMPTY.iter().any(|sign| lower.contains(sign)) || lower.starts_with("0 "))
    };
    if !scene.page.lines.iter().any(says) || !scene.page.url.contains('?') {
        return None;
    }
    scene.once(Action::Back, "nothing was found here")
}

/// When the text says that what is looked for is below, or is not given at all.
fn scroll(scene: &mut Scene<'_>) -> Option<Move> {
    if scene.memory.bottom || scene.memory.scrolled >= MOST_SCROLLS {
        return None;
    }
    if scene.page.has_text {
        let subject = scene.subject()?;
        let in_text = scene.page.lines.iter().any(|line| {
            let stems = words::stems(line);
            subject.strong.iter().all(|stem| stems.contains(stem))
        });
        if !in_text {
            return None;
        }
    }
    scene.memory.scrolled += 1;
    Some(Move::new(Action::ScrollDown, "what is looked for may be further down"))
}

fn next_page(scene: &mut Scene<'_>) -> Option<Move> {
    let says_next =
        |text: &str| NEXT.contains(&text.trim().to_lowercase().trim_end_matches([' ', '→', '›', '»']));
    let found = scene.page.elements.iter().find(|element| {
        matches!(element.role, Role::Link | Role::Button)
            && (says_next(&element.text) || NEXT.contains(&element.text.trim()))
    });
    let found = found?.clone();
    scene.once(Action::click(&found), "the list goes on on the next page")
}

/// From a page that led nowhere back to where other ways are left; at most once from each.
fn back(scene: &mut Scene<'_>) -> Option<Move> {
    let home = scene.page.address().trim_end_matches('/') == scene.start.trim_end_matches('/');
    if home || scene.memory.tried.is_empty() || scene.left < 4 {
        return None;
    }
    scene.once(Action::Back, "this page leads nowhere")
}
