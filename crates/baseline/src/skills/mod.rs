//! The skills: functions that may propose a decision for the current page. They are tried in a fixed order, and the
//! first proposal is taken. No skill contains knowledge of a particular website.

mod answer_format;
mod blocked;
mod consent;
mod count;
mod exploration;
mod fact;
mod filters;
mod instructions;
mod navigation;
mod options;
mod ranking;
mod relations;
mod submit;
mod superlatives;

use crate::{
    action::{Action, Decision},
    goal::{Goal, Subject},
    memory::Memory,
    nlp,
    page::Page,
};

/// What a skill decides from.
pub(crate) struct SkillContext<'a> {
    pub(crate) goal: &'a Goal,
    pub(crate) page: &'a Page,
    pub(crate) memory: &'a mut Memory,
    pub(crate) start_url: &'a str,
    /// The remaining steps, including this one.
    pub(crate) steps_left: usize,
}

type Skill = fn(&mut SkillContext<'_>) -> Option<Decision>;

/// The skills in the order in which they are tried.
const SKILLS: &[Skill] = &[
    blocked::give_up,
    exploration::recover,
    consent::dismiss_banner,
    instructions::carry_out_next,
    instructions::report_result,
    filters::set_next,
    count::answer,
    superlatives::answer,
    relations::follow_first,
    fact::answer,
    relations::follow,
    relations::follow_byline,
    exploration::leave_empty_results,
    navigation::follow_good_link,
    navigation::follow_list_link,
    navigation::search,
    navigation::follow_fair_link,
    exploration::explore,
];

impl SkillContext<'_> {
    /// Returns the current subject: the one in the memory, or the first that the task names.
    pub(crate) fn subject(&self) -> Option<Subject> {
        let current = self.memory.subject.as_deref().map(Subject::new);
        current.or_else(|| self.goal.subject().cloned())
    }

    /// Whether the current page is the page of the subject.
    pub(crate) fn is_about(&self, subject: &Subject) -> bool {
        let heading = nlp::content_stems(self.page.heading());
        let is_list =
            ["search", "result", "list", "all"].iter().any(|word| heading.iter().any(|stem| stem == word));
        let is_named = subject.required.iter().all(|stem| heading.contains(stem));
        let is_covered = nlp::coverage(&subject.stems, &heading) >= 0.5;
        !is_list && is_named && is_covered && heading.len() <= subject.stems.len() + 3
    }

    /// Returns the stems of the question that are still open: those not in the page's heading and not yet used.
    pub(crate) fn open_stems(&self) -> Vec<String> {
        let heading = nlp::content_stems(self.page.heading());
        let is_open = |stem: &&String| !heading.contains(stem) && !self.memory.used_stems.contains(stem);
        self.goal.wanted.iter().filter(is_open).cloned().collect()
    }

    /// Records the action and returns it; `None` if it was already tried on this page.
    pub(crate) fn try_once(&mut self, action: Action, reason: impl Into<String>) -> Option<Decision> {
        let description = action.description();
        if self.memory.has_tried(&description) {
            return None;
        }
        self.memory.record_action(&description);
        Some(Decision::new(action, reason))
    }
}

/// Chooses the next action. On the last step this is always an answer.
pub(crate) fn choose(context: &mut SkillContext<'_>) -> Decision {
    fact::keep_guess(context);
    if context.steps_left <= 1 {
        return final_answer(context);
    }
    for skill in SKILLS {
        if let Some(decision) = skill(context) {
            return decision;
        }
    }
    final_answer(context)
}

/// Answers with the best guess so far, or says that there is none.
fn final_answer(context: &SkillContext<'_>) -> Decision {
    match &context.memory.guess {
        Some(guess) => Decision::new(
            Action::answer(&guess.answer),
            format!("nothing better was found; this is the best guess (confidence {} %)", guess.confidence),
        ),
        None => Decision::new(
            Action::answer("I could not find the answer on the pages I saw."),
            "no visited page answers the question",
        ),
    }
}
