//! Selects the screenshots that are sent to the judge model.

use std::path::PathBuf;

use proto::trajectory::Trajectory;

use super::super::StepJudgment;

/// Upper bound of submitted screenshots; the latest ones are kept.
const MAX_SUBMITTED: usize = 48;
/// Upper bound of screenshots for the question about blocking, which needs only a sample.
const MAX_SAMPLED: usize = 20;

/// Paths of screenshots with the index of their step.
pub(super) struct Evidence(pub(super) Vec<(usize, PathBuf)>);

impl Evidence {
    pub(super) fn submitted(trajectory: &Trajectory, step_judgments: &[StepJudgment]) -> Self {
        let steps = step_judgments.iter().filter(|judgment| judgment.submit).map(|judgment| judgment.step);
        Self(steps.filter_map(|step| screenshot(trajectory, step)).collect())
    }

    /// Takes a sample spread evenly over the episode, including the first and the last screenshot.
    pub(super) fn sampled(trajectory: &Trajectory) -> Self {
        let count = trajectory.steps.len();
        let wanted = count.min(MAX_SAMPLED);
        let step = |index: usize| if wanted < 2 { 0 } else { index * (count - 1) / (wanted - 1) };
        Self((0..wanted).filter_map(|index| screenshot(trajectory, step(index))).collect())
    }
}

fn screenshot(trajectory: &Trajectory, step: usize) -> Option<(usize, PathBuf)> {
    let path = &trajectory.steps.get(step)?.observation.image_path;
    (!path.is_empty()).then(|| (step, PathBuf::from(path)))
}

/// Clears the submit flag of all but the last [`MAX_SUBMITTED`] submitted steps.
pub(super) fn limit_submitted(step_judgments: &mut [StepJudgment]) {
    for judgment in step_judgments.iter_mut().rev().filter(|judgment| judgment.submit).skip(MAX_SUBMITTED) {
        judgment.submit = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_screenshots_are_submitted() {
        let mut step_judgments: Vec<StepJudgment> = (0..100)
            .map(|step| StepJudgment { step, submit: step % 2 == 0 || step > 50, judgment: None })
            .collect();
        limit_submitted(&mut step_judgments);
        let kept: Vec<usize> =
            step_judgments.iter().filter(|judgment| judgment.submit).map(|judgment| judgment.step).collect();
        assert_eq!(kept.len(), 48);
        assert_eq!(kept.last(), Some(&99));
        assert_eq!(kept.first(), Some(&52));
    }
}
