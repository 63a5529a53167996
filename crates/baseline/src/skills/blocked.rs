//! Gives up on a page that blocks automated visitors, and says so.

use super::SkillContext;
use crate::action::{Action, Decision};

/// Texts that occur in the titles of block pages.
const BLOCK_TEXTS: [&str; 9] = [
    "access denied",
    "verify you are human",
    "verification required",
    "are you a robot",
    "are not a robot",
    "unusual traffic",
    "checking that you are human",
    "captcha",
    "attention required",
];

pub(super) fn give_up(context: &mut SkillContext<'_>) -> Option<Decision> {
    let title = context.page.title.to_lowercase();
    let text = BLOCK_TEXTS.iter().find(|text| title.contains(*text))?;
    let answer = format!("The site does not let me in: its page says “{}”.", context.page.title);
    Some(Decision::new(Action::answer(&answer), format!("the title contains {text:?}")))
}
