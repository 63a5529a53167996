//! Decides how a trajectory counts in the metrics: crashed and for which reason, blocked, unscored or scored.

use proto::trajectory::{Action, Outcome};

use crate::summary::Summary;

/// An episode with fewer steps and no answer counts as crashed, not as failed.
const MIN_STEPS_WITHOUT_ANSWER: u64 = 10;

/// The reason why a trajectory counts as crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashReason {
    NoSteps,
    /// The first action reports that the address of the start page is invalid.
    InvalidUrl,
    /// At least one step has no action.
    MissingAction,
    /// The episode has too few steps, does not end with an answer and was not blocked.
    EndedEarly,
}

/// Returns why a trajectory counts as crashed, or `None` if it does not.
pub fn crash_reason(summary: &Summary) -> Option<CrashReason> {
    if summary.steps == 0 {
        Some(CrashReason::NoSteps)
    } else if summary.first_action.as_deref() == Some(Action::INVALID_URL) {
        Some(CrashReason::InvalidUrl)
    } else if summary.lacks_action {
        Some(CrashReason::MissingAction)
    } else if summary.steps < min_steps_without_answer(summary)
        && !summary.is_answered()
        && !summary.is_blocked
    {
        Some(CrashReason::EndedEarly)
    } else {
        None
    }
}

/// Returns the number of steps below which an episode without an answer counts as crashed. An episode that used all its
/// steps did not crash.
fn min_steps_without_answer(summary: &Summary) -> u64 {
    let allowed = u64::try_from(summary.max_steps).ok().filter(|steps| *steps > 0);
    let is_interrupted = summary.last_action.as_deref() == Some(Action::INVALID_STEP);
    match allowed {
        Some(allowed) if !is_interrupted => MIN_STEPS_WITHOUT_ANSWER.min(allowed),
        _ => MIN_STEPS_WITHOUT_ANSWER,
    }
}

/// The category that a trajectory counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The run ended or the task's time was over before the agent ended the episode. It counts in no rate and no average.
    Cancelled,
    /// The archive of a replay lacks what a page needed. It counts in no rate and no average either.
    ReplayMiss,
    Crashed(CrashReason),
    Blocked,
    /// Collected but not judged: the judge or the infrastructure failed, not the agent.
    Unscored,
    Scored {
        is_success: bool,
    },
}

pub fn category(summary: &Summary) -> Category {
    match summary.outcome {
        Some(Outcome::Cancelled) => return Category::Cancelled,
        Some(Outcome::ReplayMiss) => return Category::ReplayMiss,
        _ => {}
    }
    if let Some(reason) = crash_reason(summary) {
        return Category::Crashed(reason);
    }
    if summary.is_blocked {
        return Category::Blocked;
    }
    match summary.outcome {
        Some(Outcome::JudgeError | Outcome::InfraLost) => Category::Unscored,
        _ => Category::Scored { is_success: summary.reward == 1 },
    }
}

/// Tasks grouped by difficulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifficultyClass {
    Easy,
    Medium,
    Hard,
}

impl DifficultyClass {
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    pub const fn of(difficulty: i64) -> Self {
        match difficulty {
            ..=3 => Self::Easy,
            4..=6 => Self::Medium,
            7.. => Self::Hard,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(steps: u64, first: &str, last: &str) -> Summary {
        Summary {
            steps,
            first_action: Some(first.to_owned()),
            last_action: Some(last.to_owned()),
            ..Summary::default()
        }
    }

    #[test]
    fn crash_reason_follows_from_steps_and_actions() {
        let blocked = |summary: Summary| Summary { is_blocked: true, ..summary };
        let without_action = |summary: Summary| Summary { lacks_action: true, ..summary };
        let table = [
            ("no steps", Summary::default(), Some(CrashReason::NoSteps)),
            ("no steps and blocked", blocked(Summary::default()), Some(CrashReason::NoSteps)),
            (
                "first action is invalid_url",
                summary(12, "invalid_url", "answer"),
                Some(CrashReason::InvalidUrl),
            ),
            ("a later action is invalid_url", summary(12, "click", "invalid_url"), None),
            (
                "a step has no action",
                without_action(summary(12, "click", "answer")),
                Some(CrashReason::MissingAction),
            ),
            ("9 steps, no answer", summary(9, "click", "click"), Some(CrashReason::EndedEarly)),
            ("9 steps, invalid_step", summary(9, "click", "invalid_step"), Some(CrashReason::EndedEarly)),
            ("9 steps, no answer, blocked", blocked(summary(9, "click", "click")), None),
            ("1 step, an answer", summary(1, "answer", "answer"), None),
            ("10 steps, no answer", summary(10, "click", "click"), None),
            (
                "all of 5 allowed steps, no answer",
                Summary { max_steps: 5, ..summary(5, "click", "click") },
                None,
            ),
            (
                "4 of 5 allowed steps, no answer",
                Summary { max_steps: 5, ..summary(4, "click", "click") },
                Some(CrashReason::EndedEarly),
            ),
            (
                "5 steps of which the last is invalid",
                Summary { max_steps: 5, ..summary(5, "click", "invalid_step") },
                Some(CrashReason::EndedEarly),
            ),
        ];
        for (case, summary, expected) in table {
            assert_eq!(crash_reason(&summary), expected, "{case}");
        }
    }

    #[test]
    fn category_follows_from_reward_and_outcome() {
        let answered = |outcome, reward, is_blocked| Summary {
            reward,
            is_blocked,
            outcome,
            ..summary(3, "click", "answer")
        };
        let table = [
            ("reward 1", answered(None, 1, false), Category::Scored { is_success: true }),
            ("reward 0", answered(None, 0, false), Category::Scored { is_success: false }),
            ("blocked with reward 1", answered(None, 1, true), Category::Blocked),
            ("judge unreachable", answered(Some(Outcome::JudgeError), 0, false), Category::Unscored),
            ("infrastructure lost", answered(Some(Outcome::InfraLost), 0, false), Category::Unscored),
            ("archive incomplete", answered(Some(Outcome::ReplayMiss), 0, false), Category::ReplayMiss),
            (
                "archive incomplete at the first page",
                Summary { outcome: Some(Outcome::ReplayMiss), ..summary(1, "invalid_step", "invalid_step") },
                Category::ReplayMiss,
            ),
            ("cancelled", answered(Some(Outcome::Cancelled), 0, false), Category::Cancelled),
        ];
        for (case, summary, expected) in table {
            assert_eq!(category(&summary), expected, "{case}");
        }
    }

    #[test]
    fn difficulty_maps_to_its_class() {
        for (difficulty, class) in
            [(1, "easy"), (3, "easy"), (4, "medium"), (6, "medium"), (7, "hard"), (40, "hard")]
        {
            assert_eq!(DifficultyClass::of(difficulty).as_str(), class, "{difficulty}");
        }
    }
}
