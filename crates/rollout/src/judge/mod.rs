//! Scores finished episodes from the screenshots and actions on disk. A verdict either scores the episode or states why
//! it could not be judged, so that a judge that cannot be reached never counts as a failed task.

mod model;
pub mod program;
pub mod reference;
pub mod rejudge;

use crate::plan::blocklist::BlockedSite;

use futures_util::future::BoxFuture;
use proto::{
    judgment::JudgmentSubject,
    trajectory::{Evaluation, Outcome, Task, Trajectory, TrajectoryMetadata},
};

pub use model::{ModelJudge, final_answer, says_blocked, says_success};
pub use program::ProgramJudge;
use program::{JudgedEpisode, JudgedPage};

/// The judge's decision about one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepJudgment {
    pub step: usize,
    /// Whether the step's screenshot was part of the evidence.
    pub submit: bool,
    /// The judge's explanation.
    pub judgment: Option<String>,
}

/// The judge's decision about a whole episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub outcome: Outcome,
    pub evaluation: Evaluation,
    pub step_judgments: Vec<StepJudgment>,
    /// Whether the site blocked the agent at some step, even if the agent got past it and succeeded.
    pub is_blocked: bool,
    /// The step whose page blocked the agent, if the judge named it.
    pub blocked_at: Option<usize>,
    /// The score from 0 to 1, if the judge gives one. Only 1 is a success.
    pub score: Option<f64>,
}

/// The key of [`Verdict::score`] in the metadata of a trajectory.
const SCORE: &str = "score";

impl Verdict {
    pub fn new(outcome: Outcome, evaluation: impl Into<String>) -> Self {
        Self {
            outcome,
            evaluation: Evaluation::Text(evaluation.into()),
            step_judgments: Vec::new(),
            is_blocked: outcome == Outcome::Blocked,
            blocked_at: None,
            score: None,
        }
    }

    /// Writes the verdict into the trajectory. The reward goes on the last step, as in the Python system.
    pub fn apply(self, trajectory: &mut Trajectory) {
        for step in &mut trajectory.steps {
            step.reward.submit = false;
            step.reward.submission_judgment = None;
        }
        for judgment in self.step_judgments {
            if let Some(step) = trajectory.steps.get_mut(judgment.step) {
                step.reward.submit = judgment.submit;
                step.reward.submission_judgment = judgment.judgment;
            }
        }
        if let Some(last) = trajectory.steps.last_mut() {
            last.reward.reward = i64::from(self.outcome == Outcome::Success);
            last.reward.is_blocked = self.is_blocked;
            last.reward.evaluation = self.evaluation;
        }
        let keypoints = trajectory.steps.iter().enumerate().filter(|(_, step)| step.reward.submit);
        trajectory.metadata.keypoint_step_ids =
            keypoints.filter_map(|(step, _)| i64::try_from(step).ok()).collect();
        trajectory.metadata.outcome = Some(self.outcome);
        match self.score {
            Some(score) => trajectory.metadata.extra.insert(SCORE.to_owned(), score.into()),
            None => trajectory.metadata.extra.shift_remove(SCORE),
        };
    }
}

/// The judge of a run.
pub enum Judge {
    /// Leaves every episode unjudged.
    None,
    /// Compares with the reference answers, without a model.
    Reference,
    Model(Box<ModelJudge>),
    /// Runs the programmatic checks of the tasks. Its verdicts are made before an episode's browser is released.
    Program(ProgramJudge),
    /// A judge of the program that uses this library; see `examples/custom_judge.rs`.
    Custom(Box<dyn CustomJudge>),
}

/// Scores episodes by rules of its own.
pub trait CustomJudge: Send + Sync {
    /// Scores an episode that was ended by the agent. `Outcome::JudgeError` leaves it unjudged.
    fn judge<'a>(&'a self, trajectory: &'a Trajectory) -> BoxFuture<'a, Verdict>;
}

impl Judge {
    /// Scores an episode that was ended by the agent.
    pub async fn judge(&self, trajectory: &Trajectory) -> Verdict {
        match self {
            Self::None => Verdict::new(Outcome::JudgeError, "Not judged: no judge is configured."),
            Self::Reference => {
                let answer = final_answer(&trajectory.steps);
                judge_by_reference(&trajectory.task, answer.as_deref(), trajectory.steps.len())
            }
            Self::Model(judge) => judge.judge(trajectory).await,
            Self::Program(judge) => judge.judge_saved(trajectory),
            Self::Custom(judge) => judge.judge(trajectory).await,
        }
    }

    /// Scores an episode whose page is still open, for programs that run episodes by themselves.
    pub async fn judge_open(&self, episode: &JudgedEpisode<'_>, page: &dyn JudgedPage) -> Verdict {
        let JudgedEpisode { task, answer, steps, .. } = *episode;
        match self {
            Self::Program(judge) => judge.judge(episode, page).await,
            Self::Reference => judge_by_reference(task, answer, steps.len()),
            Self::None | Self::Model(_) | Self::Custom(_) => {
                let (task, steps) = (task.clone(), steps.to_vec());
                self.judge(&Trajectory { task, steps, metadata: TrajectoryMetadata::default() }).await
            }
        }
    }
}

/// Returns the task's website if it blocked the agent, with the screenshot of the blocking page. `None` if it did not, or
/// if the agent succeeded all the same.
pub fn blocked_site(verdict: &Verdict, trajectory: &Trajectory) -> Option<BlockedSite> {
    if verdict.outcome != Outcome::Blocked {
        return None;
    }
    let step = match verdict.blocked_at {
        Some(step) => trajectory.steps.get(step),
        None => trajectory.steps.last(),
    };
    let screenshot = step.map(|step| step.observation.image_path.clone()).filter(|path| !path.is_empty());
    // The blocking page itself may be on another site, such as that of a CAPTCHA vendor.
    let Task { website, task_id, .. } = &trajectory.task;
    Some(BlockedSite::new(website, jiff::Timestamp::now(), task_id.clone(), screenshot))
}

fn judge_by_reference(task: &Task, answer: Option<&str>, steps: usize) -> Verdict {
    let Some(answer) = answer else {
        return Verdict::new(Outcome::Failure, "The episode ended without an answer.");
    };
    let Some(reference) = task.reference() else {
        return Verdict::new(
            Outcome::JudgeError,
            "Not judged: the task has no reference answer, and no judge model is configured.",
        );
    };
    let decision = reference::compare(answer, reference);
    let outcome = if decision.matches { Outcome::Success } else { Outcome::Failure };
    let word = if decision.matches { "SUCCESS" } else { "NOT SUCCESS" };
    let reason =
        format!("Compared with the reference answer {reference:?}: {}.\nVerdict: {word}", decision.reason);
    let mut verdict = Verdict::new(outcome, "");
    verdict.evaluation = Evaluation::Texts(vec![JudgmentSubject::Reference.entitle(&reason)]);
    let last = steps.saturating_sub(1);
    verdict.step_judgments.push(StepJudgment { step: last, submit: true, judgment: None });
    verdict
}
