//! Which screenshots a judge is shown.

use std::path::PathBuf;

use proto::trajectory::Trajectory;

use super::super::StepMark;

/// No more than this many are submitted, the latest ones.
const MOST_SUBMITTED: usize = 48;
/// The question about blocking needs only a sample.
const MOST_SAMPLED: usize = 20;

/// Screenshots with the number of their step.
pub(super) struct Evidence(pub(super) Vec<(usize, PathBuf)>);

impl Evidence {
    pub(super) fn submitted(trajectory: &Trajectory, marks: &[StepMark]) -> Self {
        let steps = marks.iter().filter(|mark| mark.submit).map(|mark| mark.step);
        Self(steps.filter_map(|step| picture(trajectory, step)).collect())
    }

    /// Evenly over the episode, the first and the last among them.
    pub(super) fn sampled(trajectory: &Trajectory) -> Self {
        let count = trajectory.steps.len();
        let wanted = count.min(MOST_SAMPLED);
        let step = |place: usize| if wanted < 2 { 0 } else { place * (count - 1) / (wanted - 1) };
        Self((0..wanted).filter_map(|place| picture(trajectory, step(place))).collect())
    }
}

fn picture(trajectory: &Trajectory, step: usize) -> Option<(usize, PathBuf)> {
    let path = &trajectory.steps.get(step)?.observation.image_path;
    (!path.is_empty()).then(|| (step, PathBuf::from(path)))
}

/// Takes the submit flag off all but the last so many.
pub(super) fn keep_last(marks: &mut [StepMark]) {
    let mut left = MOST_SUBMITTED;
    for mark in marks.iter_mut().rev().filter(|mark| mark.submit) {
        mark.submit = left > 0;
        left = left.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_ones_are_submitted() {
        let mut marks: Vec<StepMark> = (0..100)
            .map(|step| StepMark { step, submit: step % 2 == 0 || step > 50, judgment: None })
            .collect();
        keep_last(&mut marks);
        let kept: Vec<usize> = marks.iter().filter(|mark| mark.submit).map(|mark| mark.step).collect();
        assert_eq!(kept.len(), 48);
        assert_eq!(kept.last(), Some(&99));
        assert_eq!(kept.first(), Some(&52));
    }
}
