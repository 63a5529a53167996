//! How many there are: the number a list says of itself.

use super::{Scene, pick};
use crate::{
    action::{Action, Move},
    values, words,
};

/// Words for whatever a list holds.
const THINGS: [&str; 8] = ["result", "item", "match", "entry", "hit", "listing", "product", "article"];

/// Asked when every filter is set that can be.
pub(super) fn answer(scene: &mut Scene<'_>) -> Option<Move> {
    if !scene.goal.counts() || !scene.goal.orders.is_empty() || scene.memory.subject.is_some() {
        return None;
    }
    let (answer, line) = said(scene)?;
    scene.memory.offer(&answer, 0.3);
    let narrowed = !scene.memory.set.is_empty() || pick::is_scoped(scene);
    if scene.memory.unsent || !narrowed {
        return None;
    }
    Some(Move::new(Action::answer(&answer), format!("the list says “{line}”")))
}

/// A short line such as `12 products, page 1 of 2`.
fn said(scene: &Scene<'_>) -> Option<(String, String)> {
    let fits = |line: &&String| line.split_whitespace().count() <= 10;
    let filtered = !scene.memory.set.is_empty();
    let of_things = |unit: &str| {
        let unit = words::stem(unit);
        scene.goal.noun.contains(&unit) || (filtered && THINGS.contains(&unit.as_str()))
    };
    scene.page.lines.iter().filter(fits).find_map(|line| {
        let amount = values::amounts(line).into_iter().next()?;
        let starts = line.trim_start().starts_with(|sign: char| sign.is_ascii_digit());
        let number = amount.text.split(' ').next()?.to_owned();
        (starts && !amount.money && of_things(&amount.unit)).then(|| (number, line.clone()))
    })
}
