//! The skills, each a function that looks at the situation and may propose a move. They are asked in a fixed order and
//! the first proposal is taken; none of them knows a website.

mod blocked;
mod consent;
mod controls;
mod count;
mod fact;
mod follow;
mod obey;
mod options;
mod pick;
mod rank;
mod seek;
mod shape;
mod submit;
mod wander;

use crate::{
    action::{Action, Move},
    goal::{Goal, Subject},
    memory::Memory,
    page::Page,
};

/// What a skill sees.
pub(crate) struct Scene<'a> {
    pub(crate) goal: &'a Goal,
    pub(crate) page: &'a Page,
    pub(crate) memory: &'a mut Memory,
    pub(crate) start: &'a str,
    /// Steps that are left, this one included.
    pub(crate) left: usize,
}

type Skill = fn(&mut Scene<'_>) -> Option<Move>;

/// In the order in which they are asked.
const SKILLS: &[Skill] = &[
    blocked::give_up,
    wander::recover,
    consent::dismiss,
    obey::next_order,
    obey::report,
    controls::next,
    count::answer,
    pick::answer,
    follow::relation,
    fact::answer,
    follow::further,
    follow::byline,
    wander::leave_empty,
    seek::best_link,
    seek::list_link,
    seek::search,
    seek::any_link,
    wander::look_around,
];

impl Scene<'_> {
    /// The thing to look for now: one found on the way, or the first that the task names.
    pub(crate) fn subject(&self) -> Option<Subject> {
        let found = self.memory.subject.as_deref().map(Subject::new);
        found.or_else(|| self.goal.subject().cloned())
    }

    /// The page in front is the one of the subject.
    pub(crate) fn is_about(&self, subject: &Subject) -> bool {
        let heading = crate::words::content(self.page.heading());
        let lists =
            ["search", "result", "list", "all"].iter().any(|word| heading.iter().any(|stem| stem == word));
        let named = subject.strong.iter().all(|stem| heading.contains(stem));
        let mostly = crate::words::coverage(&subject.stems, &heading) >= 0.5;
        !lists && named && mostly && heading.len() <= subject.stems.len() + 3
    }

    /// What the question asks beside naming things: without the words of the page's own name, and of ways already gone.
    pub(crate) fn asked(&self) -> Vec<String> {
        let heading = crate::words::content(self.page.heading());
        let open = |stem: &&String| !heading.contains(stem) && !self.memory.used.contains(stem);
        self.goal.wanted.iter().filter(open).cloned().collect()
    }

    /// Notes the action as tried and hands it on; `None` when it was tried on this page before.
    pub(crate) fn once(&mut self, action: Action, why: impl Into<String>) -> Option<Move> {
        let sentence = action.sentence();
        if self.memory.has_tried(&sentence) {
            return None;
        }
        self.memory.note(&sentence);
        Some(Move::new(action, why))
    }
}

/// The move for a situation; there always is one.
pub(crate) fn choose(scene: &mut Scene<'_>) -> Move {
    fact::keep_guess(scene);
    if scene.left <= 1 {
        return last_word(scene);
    }
    for skill in SKILLS {
        if let Some(next) = skill(scene) {
            return next;
        }
    }
    last_word(scene)
}

/// The best guess so far, or the plain truth that there is none.
fn last_word(scene: &Scene<'_>) -> Move {
    match &scene.memory.guess {
        Some(guess) => Move::new(
            Action::answer(&guess.answer),
            format!("nothing better is to be found; this is the best guess (trust {} %)", guess.trust),
        ),
        None => Move::new(
            Action::answer("I could not find the answer on the pages I saw."),
            "nothing on the pages seen answers the question",
        ),
    }
}
