//! Scoring a finished episode. A verdict is typed: scored with evidence, or not judged and why; a judge that
//! cannot be reached never looks like a failed task. Never holds a browser: it reads what is on disk.

mod model;
pub mod reference;
pub mod rejudge;

use crate::plan::blocklist::BlockedSite;

use proto::trajectory::{Evaluation, Outcome, Trajectory};

pub use model::ModelJudge;
pub(crate) use model::final_answer;

/// What a judge says about one step: whether its screenshot was part of the evidence, and the words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepMark {
    pub step: usize,
    pub submit: bool,
    pub judgment: Option<String>,
}

/// A verdict on a whole episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub outcome: Outcome,
    pub evaluation: Evaluation,
    pub marks: Vec<StepMark>,
    /// The step whose page kept the agent out, when the judge named it.
    pub blocked_at: Option<usize>,
}

impl Verdict {
    pub fn new(outcome: Outcome, evaluation: impl Into<String>) -> Self {
        Self { outcome, evaluation: Evaluation::Text(evaluation.into()), marks: Vec::new(), blocked_at: None }
    }

    /// Writes the verdict into the trajectory, where readers of either system look for it: on the last step.
    pub fn apply(self, trajectory: &mut Trajectory) {
        for step in &mut trajectory.steps {
            step.reward.submit = false;
            step.reward.submission_judgment = None;
        }
        for mark in self.marks {
            if let Some(step) = trajectory.steps.get_mut(mark.step) {
                step.reward.submit = mark.submit;
                step.reward.submission_judgment = mark.judgment;
            }
        }
        if let Some(last) = trajectory.steps.last_mut() {
            last.reward.reward = i64::from(self.outcome == Outcome::Success);
            last.reward.is_blocked = self.outcome == Outcome::Blocked;
            last.reward.evaluation = self.evaluation;
        }
        let keypoints = trajectory.steps.iter().enumerate().filter(|(_, step)| step.reward.submit);
        trajectory.metadata.keypoint_step_ids =
            keypoints.filter_map(|(step, _)| i64::try_from(step).ok()).collect();
        trajectory.metadata.outcome = Some(self.outcome);
    }
}

/// Whoever scores the episodes of a run.
pub enum Judge {
    /// Nobody: every episode is kept unjudged.
    None,
    /// The reference answers, without a model.
    Reference,
    Model(Box<ModelJudge>),
}

impl Judge {
    /// Scores an episode that the agent itself ended.
    pub async fn judge(&self, trajectory: &Trajectory) -> Verdict {
        match self {
            Self::None => Verdict::new(Outcome::JudgeError, "Not judged: no judge is configured."),
            Self::Reference => by_reference(trajectory),
            Self::Model(judge) => judge.judge(trajectory).await,
        }
    }
}

/// The site that kept the agent out, by the page that did, with the picture of it; `None` when none did.
pub fn blocked_site(verdict: &Verdict, trajectory: &Trajectory) -> Option<BlockedSite> {
    if verdict.outcome != Outcome::Blocked {
        return None;
    }
    let step = match verdict.blocked_at {
        Some(step) => trajectory.steps.get(step),
        None => trajectory.steps.last(),
    };
    let seen = &step?.observation;
    let url = if seen.url.starts_with("http") { &seen.url } else { &trajectory.task.website };
    let picture = Some(seen.image_path.clone()).filter(|path| !path.is_empty());
    Some(BlockedSite::new(url, jiff::Timestamp::now(), trajectory.task.task_id.clone(), picture))
}

fn by_reference(trajectory: &Trajectory) -> Verdict {
    let Some(answer) = final_answer(trajectory) else {
        return Verdict::new(Outcome::Failure, "The episode ended without an answer.");
    };
    let Some(reference) = &trajectory.task.reference_answer else {
        return Verdict::new(
            Outcome::JudgeError,
            "Not judged: the task has no reference answer, and no judge model is configured.",
        );
    };
    let decision = reference::compare(&answer, reference);
    let outcome = if decision.matches { Outcome::Success } else { Outcome::Failure };
    let mut verdict =
        Verdict::new(outcome, format!("Compared with the reference answer {reference:?}: {}.", decision.how));
    let last = trajectory.steps.len().saturating_sub(1);
    verdict.marks.push(StepMark { step: last, submit: true, judgment: None });
    verdict
}
