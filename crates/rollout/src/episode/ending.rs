//! How an attempt ended, and what that means: which endings are the agent's, which are ours.

use proto::trajectory::{Outcome, Trajectory};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent answered.
    Answered,
    /// The agent used up its steps.
    OutOfSteps,
    /// The agent kept going back where there is no back (train only).
    Stuck,
    /// The page stayed blank and nothing could be done about it.
    Blank,
    /// The browser, its node or the farm went away. Another attempt may do better.
    Lost(String),
    /// The farm had no browser for the task in all its time.
    NoBrowser(String),
    /// The farm will not open the task's page, by its own rules: no attempt will do better.
    Refused(String),
    /// The policy could not be asked.
    PolicyLost(String),
    /// The policy server is there but will not take our requests: no attempt will do better.
    PolicyRefuses(String),
    /// The task took longer than tasks may.
    TimedOut,
    /// The run ended first: what there is of the episode is kept.
    Cancelled,
    /// The run was told to stop at once: a resumed one collects the task anew.
    Stopped,
    /// Nothing can be written any more.
    Disk(String),
}

impl Ending {
    /// Worth another attempt: what ended it was neither the agent nor the task.
    pub fn is_infrastructure(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::PolicyLost(_))
    }

    /// The agent's own doing, for a judge to look at.
    pub fn is_the_agents(&self) -> bool {
        matches!(self, Self::Answered | Self::OutOfSteps | Self::Stuck | Self::Blank)
    }

    /// The outcome when no judge has a say.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Answered | Self::OutOfSteps | Self::Stuck | Self::Blank => Outcome::Failure,
            Self::Lost(_)
            | Self::Refused(_)
            | Self::NoBrowser(_)
            | Self::PolicyLost(_)
            | Self::PolicyRefuses(_)
            | Self::Disk(_) => Outcome::InfraLost,
            Self::TimedOut | Self::Cancelled | Self::Stopped => Outcome::Cancelled,
        }
    }

    /// Such an ending gets a last step that says so.
    pub fn leaves_invalid_step(&self) -> bool {
        !matches!(self, Self::Answered | Self::OutOfSteps | Self::Stuck)
    }

    pub fn why(&self) -> String {
        match self {
            Self::Answered => "answered".into(),
            Self::OutOfSteps => "out of steps".into(),
            Self::Stuck => "went back three times on the start page".into(),
            Self::Blank => "the page stayed blank".into(),
            Self::Lost(why) => format!("browser lost: {why}"),
            Self::Refused(why) => format!("page refused: {why}"),
            Self::NoBrowser(why) => format!("no browser to be had: {why}"),
            Self::PolicyLost(why) => format!("policy lost: {why}"),
            Self::PolicyRefuses(why) => format!("policy refuses: {why}"),
            Self::TimedOut => "the task took too long".into(),
            Self::Cancelled => "the run ended first".into(),
            Self::Stopped => "the run was stopped".into(),
            Self::Disk(why) => format!("cannot be written: {why}"),
        }
    }
}

/// Whether a saved trajectory ended by the agent's own doing, whoever saved it.
pub fn is_the_agents(trajectory: &Trajectory) -> bool {
    !trajectory.steps.is_empty()
        && !matches!(trajectory.metadata.outcome, Some(Outcome::InfraLost | Outcome::Cancelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infrastructure_is_never_the_agents_failure() {
        for ending in
            [Ending::Lost("x".into()), Ending::PolicyLost("x".into()), Ending::PolicyRefuses("x".into())]
        {
            assert_eq!(ending.outcome(), Outcome::InfraLost);
            assert!(!ending.is_the_agents() && ending.leaves_invalid_step());
        }
        for ending in [Ending::TimedOut, Ending::Cancelled] {
            assert_eq!(ending.outcome(), Outcome::Cancelled);
            assert!(!ending.is_infrastructure() && ending.leaves_invalid_step());
        }
    }
}
