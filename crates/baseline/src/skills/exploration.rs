//! Explores when no other skill applies: scrolls, opens the next page, goes back. Also recovers from failed pages.

use super::SkillContext;
use crate::{
    action::{Action, Decision},
    nlp,
    page::Role,
};

const MAX_SCROLLS: usize = 4;
const NO_RESULTS_TEXTS: [&str; 6] =
    ["no result", "nothing match", "nothing found", "no match", "did not match", "nothing was found"];
const NEXT_PAGE_TEXTS: [&str; 5] = ["next", "next page", "›", "»", "more"];

pub(super) fn explore(context: &mut SkillContext<'_>) -> Option<Decision> {
    scroll(context).or_else(|| open_next_page(context)).or_else(|| go_back(context))
}

/// Reopens the start page if no page is open, and waits if the page is empty.
pub(super) fn recover(context: &mut SkillContext<'_>) -> Option<Decision> {
    let page = context.page;
    if page.url.starts_with("chrome-error:") || page.url.starts_with("about:blank") {
        let url = context.start_url.to_owned();
        return if url.is_empty() {
            None
        } else {
            context.try_once(Action::Navigate { url }, "no page is open")
        };
    }
    let is_empty = page.elements.is_empty() && page.lines.is_empty();
    if is_empty { context.try_once(Action::Wait, "the page shows nothing yet") } else { None }
}

/// Goes back from a search without results.
pub(super) fn leave_empty_results(context: &mut SkillContext<'_>) -> Option<Decision> {
    let says_no_results = |line: &String| {
        let lower = line.to_lowercase();
        let is_short = line.split_whitespace().count() <= 14;
        is_short && (NO_RESULTS_TEXTS.iter().any(|text| lower.contains(text)) || lower.starts_with("0 "))
    };
    if !context.page.lines.iter().any(says_no_results) || !context.page.url.contains('?') {
        return None;
    }
    context.try_once(Action::Back, "nothing was found here")
}

/// Scrolls down if the page's text mentions the subject, or if the text was not given.
fn scroll(context: &mut SkillContext<'_>) -> Option<Decision> {
    if context.memory.at_bottom || context.memory.scrolled >= MAX_SCROLLS {
        return None;
    }
    if context.page.has_text {
        let subject = context.subject()?;
        let is_mentioned = context.page.lines.iter().any(|line| {
            let stems = nlp::stems(line);
            subject.required.iter().all(|stem| stems.contains(stem))
        });
        if !is_mentioned {
            return None;
        }
    }
    context.memory.scrolled += 1;
    Some(Decision::new(Action::ScrollDown, "the subject may be further down"))
}

fn open_next_page(context: &mut SkillContext<'_>) -> Option<Decision> {
    let is_next_page = |text: &str| {
        NEXT_PAGE_TEXTS.contains(&text.trim().to_lowercase().trim_end_matches([' ', '→', '›', '»']))
    };
    let found = context.page.elements.iter().find(|element| {
        matches!(element.role, Role::Link | Role::Button)
            && (is_next_page(&element.text) || NEXT_PAGE_TEXTS.contains(&element.text.trim()))
    });
    let found = found?.clone();
    context.try_once(Action::click(&found), "the list continues on the next page")
}

/// Goes back from a page without useful links, at most once from each page.
fn go_back(context: &mut SkillContext<'_>) -> Option<Decision> {
    let is_start_page =
        context.page.url_without_fragment().trim_end_matches('/') == context.start_url.trim_end_matches('/');
    if is_start_page || context.memory.tried.is_empty() || context.steps_left < 4 {
        return None;
    }
    context.try_once(Action::Back, "this page has no useful links")
}
