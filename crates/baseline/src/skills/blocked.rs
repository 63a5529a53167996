//! A site that lets nobody in is told as such, not fought.

use super::Scene;
use crate::action::{Action, Move};

const SIGNS: [&str; 9] = [
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

pub(super) fn give_up(scene: &mut Scene<'_>) -> Option<Move> {
    let title = scene.page.title.to_lowercase();
    let sign = SIGNS.iter().find(|sign| title.contains(*sign))?;
    let answer = format!("The site does not let me in: its page says “{}”.", scene.page.title);
    Some(Move::new(Action::answer(&answer), format!("the title says {sign:?}")))
}
