//! From one thing to the next: the page of the thing that is named leads to the thing that is asked about.

use super::{Scene, fact};
use crate::{
    action::{Action, Move},
    page::{self, Element, Pair},
    words,
};

/// Follows a label that the task mentions beside its real question: the teacher of somebody, the region of a mountain.
pub(super) fn relation(scene: &mut Scene<'_>) -> Option<Move> {
    if scene.memory.used.is_empty() { further(scene) } else { None }
}

/// The same once more, for when the fact was not there.
pub(super) fn further(scene: &mut Scene<'_>) -> Option<Move> {
    if !follows(scene) {
        return None;
    }
    let (link, used) = page::pairs(scene.page).iter().find_map(|pair| related(scene, pair))?;
    go(scene, &link, used)
}

/// Failing that, the name right below the heading: who offers the thing.
pub(super) fn byline(scene: &mut Scene<'_>) -> Option<Move> {
    if !follows(scene) || scene.memory.subject.is_some() {
        return None;
    }
    let link = fact::below_heading(scene.page)?.clone();
    go(scene, &link, Vec::new())
}

fn follows(scene: &Scene<'_>) -> bool {
    let open = scene.memory.subject.is_none() && !scene.goal.extremes.is_empty();
    let about = scene.subject().is_some_and(|subject| scene.is_about(&subject));
    about && !open && scene.goal.orders.is_empty()
}

/// The link beside a label that the question mentions but does not ask for, when more of the question is left.
fn related(scene: &Scene<'_>, pair: &Pair) -> Option<(Element, Vec<String>)> {
    let fits = |stem: &String| pair.stems.iter().any(|word| words::alike(stem, word));
    let goal = scene.goal;
    let open = scene.asked();
    let used: Vec<String> = open.iter().filter(|stem| fits(stem)).cloned().collect();
    let rest = open.iter().any(|stem| !fits(stem) && !goal.noun.contains(stem));
    if !pair.sure || used.is_empty() || !rest || goal.noun.iter().any(fits) {
        return None;
    }
    let link = scene.page.links().find(|link| link.text == pair.value)?;
    Some((link.clone(), used))
}

fn go(scene: &mut Scene<'_>, link: &Element, used: Vec<String>) -> Option<Move> {
    let next = scene.once(Action::click(link), format!("“{}” leads on to what is asked", link.text))?;
    scene.memory.subject = Some(link.text.clone());
    scene.memory.used.extend(used);
    let relative = scene.goal.relative.clone();
    scene.memory.used.extend(relative);
    // What was guessed on the way there is about something else.
    scene.memory.guess = None;
    Some(next)
}
