//! How a single trajectory counts: crashed and why, blocked, scored or not.

use proto::trajectory::{Action, Outcome};

use crate::summary::Summary;

/// An episode that ends below this many steps without an answer did not fail at its task: something broke.
const FEW_STEPS: u64 = 10;

/// Why a trajectory counts as crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    NoSteps,
    /// The first action says that the start page's address is not one.
    InvalidUrl,
    /// A step lacks its action.
    MissingAction,
    /// Few steps, no answer at the end, and not blocked.
    CutShort,
}

pub fn crash(summary: &Summary) -> Option<Crash> {
    if summary.steps == 0 {
        Some(Crash::NoSteps)
    } else if summary.first_action.as_deref() == Some(Action::INVALID_URL) {
        Some(Crash::InvalidUrl)
    } else if summary.lacks_action {
        Some(Crash::MissingAction)
    } else if summary.steps < FEW_STEPS && !summary.is_answered() && !summary.is_blocked {
        Some(Crash::CutShort)
    } else {
        None
    }
}

/// Where a trajectory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Crashed(Crash),
    Blocked,
    /// Collected, but nobody could say whether it succeeded: the judge or the infrastructure failed, not the agent.
    Unscored,
    Scored {
        is_success: bool,
    },
}

pub fn standing(summary: &Summary) -> Standing {
    if let Some(crash) = crash(summary) {
        return Standing::Crashed(crash);
    }
    if summary.is_blocked {
        return Standing::Blocked;
    }
    match summary.outcome {
        Some(Outcome::JudgeError | Outcome::InfraLost) => Standing::Unscored,
        _ => Standing::Scored { is_success: summary.reward == 1 },
    }
}

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
    fn crash_rules() {
        let blocked = |summary: Summary| Summary { is_blocked: true, ..summary };
        let lacking = |summary: Summary| Summary { lacks_action: true, ..summary };
        let table = [
            ("no steps", Summary::default(), Some(Crash::NoSteps)),
            ("no steps, though blocked", blocked(Summary::default()), Some(Crash::NoSteps)),
            ("first action is invalid_url", summary(12, "invalid_url", "answer"), Some(Crash::InvalidUrl)),
            ("a later invalid_url is no crash", summary(12, "click", "invalid_url"), None),
            ("a step lacks its action", lacking(summary(12, "click", "answer")), Some(Crash::MissingAction)),
            ("9 steps, no answer", summary(9, "click", "click"), Some(Crash::CutShort)),
            ("9 steps, invalid_step", summary(9, "click", "invalid_step"), Some(Crash::CutShort)),
            ("9 steps, no answer, blocked", blocked(summary(9, "click", "click")), None),
            ("1 step, an answer", summary(1, "answer", "answer"), None),
            ("10 steps, no answer", summary(10, "click", "click"), None),
        ];
        for (clause, summary, expected) in table {
            assert_eq!(crash(&summary), expected, "{clause}");
        }
    }

    #[test]
    fn standings() {
        let answered = |outcome, reward, is_blocked| Summary {
            reward,
            is_blocked,
            outcome,
            ..summary(3, "click", "answer")
        };
        let table = [
            ("reward 1", answered(None, 1, false), Standing::Scored { is_success: true }),
            ("reward 0", answered(None, 0, false), Standing::Scored { is_success: false }),
            ("blocked even with reward 1", answered(None, 1, true), Standing::Blocked),
            ("judge unreachable", answered(Some(Outcome::JudgeError), 0, false), Standing::Unscored),
            ("infrastructure lost", answered(Some(Outcome::InfraLost), 0, false), Standing::Unscored),
            (
                "cancelled",
                answered(Some(Outcome::Cancelled), 0, false),
                Standing::Scored { is_success: false },
            ),
        ];
        for (case, summary, expected) in table {
            assert_eq!(standing(&summary), expected, "{case}");
        }
    }

    #[test]
    fn classes_of_difficulty() {
        for (difficulty, class) in
            [(1, "easy"), (3, "easy"), (4, "medium"), (6, "medium"), (7, "hard"), (40, "hard")]
        {
            assert_eq!(DifficultyClass::of(difficulty).as_str(), class, "{difficulty}");
        }
    }
}
