//! How an attempt ended: which endings the agent caused, which the infrastructure, and the outcome of each.

use proto::{
    network::NetworkSummary,
    trajectory::{Outcome, Trajectory},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent answered.
    Answered,
    /// The agent used up its steps.
    OutOfSteps,
    /// The agent kept going back on the start page (train only).
    Stuck,
    /// The page stayed blank.
    Blank,
    /// The page did not react in time, for example because it never rendered. Another attempt would show the same page.
    Unresponsive(String),
    /// The episode has become too long for the model's context, even with the fewest screenshots.
    PromptTooLarge(String),
    /// Even the first prompt does not fit the model's context, which is the fault of the configuration.
    FirstPromptTooLarge(String),
    /// The browser, its node or the farm was lost. Another attempt may succeed.
    Lost(String),
    /// The steps that the attempt took over from its group did not show the same pages. Another attempt may succeed.
    Diverged(String),
    /// The farm had no free browser within the task's time.
    NoBrowser(String),
    /// A page of a replay needed what the archive does not have. Another attempt would miss it too.
    ReplayMiss(String),
    /// The farm's rules forbid the task's page, so no attempt can succeed.
    Refused(String),
    /// The task's setup script failed, so the task cannot be attempted.
    SetupFailed(String),
    /// A prompt template failed. It may fail for every episode.
    PromptFailed(String),
    /// The policy server did not answer.
    PolicyLost(String),
    /// The policy server refuses our requests, so no attempt can succeed.
    PolicyRefuses(String),
    /// The task exceeded its time limit.
    TimedOut,
    /// The run ended first. The steps so far are saved.
    Cancelled,
    /// The run was stopped at once. A resumed run collects the task again.
    Stopped,
    /// The disk cannot be written.
    Disk(String),
}

impl Ending {
    /// Returns whether another attempt may succeed, because neither the agent nor the task caused the ending.
    pub fn is_infrastructure(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Diverged(_) | Self::PolicyLost(_))
    }

    /// Returns whether the agent caused the ending, so that a judge scores it.
    pub fn is_by_agent(&self) -> bool {
        matches!(
            self,
            Self::Answered
                | Self::OutOfSteps
                | Self::Stuck
                | Self::Blank
                | Self::Unresponsive(_)
                | Self::PromptTooLarge(_)
        )
    }

    /// Blames the archive for a start page that could not be prepared, if it lacks what the page needs.
    pub(crate) fn after_replay(self, network: &NetworkSummary) -> Self {
        match (self, network.misses.first()) {
            (Self::SetupFailed(reason), Some(miss)) => {
                Self::ReplayMiss(format!("{} {} (the setup failed: {reason})", miss.method, miss.url))
            }
            (ending, _) => ending,
        }
    }

    /// Returns the outcome before any judgment.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Answered
            | Self::OutOfSteps
            | Self::Stuck
            | Self::Blank
            | Self::Unresponsive(_)
            | Self::PromptTooLarge(_) => Outcome::Failure,
            Self::Lost(_)
            | Self::Diverged(_)
            | Self::FirstPromptTooLarge(_)
            | Self::Refused(_)
            | Self::SetupFailed(_)
            | Self::NoBrowser(_)
            | Self::PolicyLost(_)
            | Self::PolicyRefuses(_)
            | Self::PromptFailed(_)
            | Self::Disk(_) => Outcome::InfraLost,
            Self::TimedOut | Self::Cancelled | Self::Stopped => Outcome::Cancelled,
            Self::ReplayMiss(_) => Outcome::ReplayMiss,
        }
    }

    /// Returns whether the trajectory gets a last, invalid step with the reason.
    pub fn has_invalid_step(&self) -> bool {
        !matches!(self, Self::Answered | Self::OutOfSteps | Self::Stuck)
    }

    /// Returns the reason as trajectories record it.
    pub fn reason(&self) -> String {
        match self {
            Self::Answered => "answered".into(),
            Self::OutOfSteps => "out of steps".into(),
            Self::Stuck => "went back three times on the start page".into(),
            Self::Blank => "the page stayed blank".into(),
            Self::Unresponsive(reason) => format!("the page did not react: {reason}"),
            Self::PromptTooLarge(reason) => format!("too long for the model: {reason}"),
            Self::FirstPromptTooLarge(reason) => format!("the first prompt is too long: {reason}"),
            Self::Lost(reason) => format!("browser lost: {reason}"),
            Self::Diverged(reason) => format!("not as in the first attempt of the group: {reason}"),
            Self::ReplayMiss(reason) => format!("not in the archive: {reason}"),
            Self::Refused(reason) => format!("page refused: {reason}"),
            Self::SetupFailed(reason) => format!("setup failed: {reason}"),
            Self::NoBrowser(reason) => format!("no browser available: {reason}"),
            Self::PolicyLost(reason) => format!("policy lost: {reason}"),
            Self::PromptFailed(reason) => reason.clone(),
            Self::PolicyRefuses(reason) => format!("policy refuses: {reason}"),
            Self::TimedOut => "the task took too long".into(),
            Self::Cancelled => "the run ended first".into(),
            Self::Stopped => "the run was stopped".into(),
            Self::Disk(reason) => format!("cannot be written: {reason}"),
        }
    }
}

/// Returns whether the agent caused the ending of a saved trajectory.
pub fn is_ended_by_agent(trajectory: &Trajectory) -> bool {
    !trajectory.steps.is_empty()
        && !matches!(
            trajectory.metadata.outcome,
            Some(Outcome::InfraLost | Outcome::Cancelled | Outcome::ReplayMiss)
        )
}

#[cfg(test)]
mod tests {
    use proto::{
        network::MissedRequest,
        trajectory::{Step, Task, TrajectoryMetadata},
    };

    use super::*;

    #[test]
    fn setup_on_an_incomplete_page_is_a_miss() {
        let miss = MissedRequest { method: "GET".into(), url: "http://a.test/x.js".into(), score: None };
        let incomplete = NetworkSummary { misses: vec![miss], ..NetworkSummary::default() };
        let failed = || Ending::SetupFailed("x is not defined".into());
        let ending = failed().after_replay(&incomplete);
        assert_eq!(
            ending.reason(),
            "not in the archive: GET http://a.test/x.js (the setup failed: x is not defined)"
        );
        assert_eq!(failed().after_replay(&NetworkSummary::default()), failed());
        assert_eq!(Ending::Answered.after_replay(&incomplete), Ending::Answered);
    }

    #[test]
    fn infrastructure_ending_is_not_an_agent_failure() {
        for ending in
            [Ending::Lost("x".into()), Ending::PolicyLost("x".into()), Ending::PolicyRefuses("x".into())]
        {
            assert_eq!(ending.outcome(), Outcome::InfraLost);
            assert!(!ending.is_by_agent() && ending.has_invalid_step());
        }
        let missed = Ending::ReplayMiss("x".into());
        assert!(missed.outcome().is_masked() && !missed.is_infrastructure() && !missed.is_by_agent());
        let saved = |outcome| {
            let metadata = TrajectoryMetadata { outcome: Some(outcome), ..TrajectoryMetadata::default() };
            Trajectory { task: Task::default(), steps: vec![Step::default()], metadata }
        };
        assert!(
            !is_ended_by_agent(&saved(Outcome::ReplayMiss)) && is_ended_by_agent(&saved(Outcome::JudgeError))
        );
        for ending in [Ending::TimedOut, Ending::Cancelled] {
            assert_eq!(ending.outcome(), Outcome::Cancelled);
            assert!(!ending.is_infrastructure() && ending.has_invalid_step());
        }
    }
}
