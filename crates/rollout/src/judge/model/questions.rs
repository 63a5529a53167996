//! The variables of the questions to the judge model. Text of the agent and of pages is sanitized before it goes into a
//! prompt.

use proto::trajectory::{RubricItem, Task, Trajectory};

use super::evidence::Evidence;
use crate::{
    policy::{escape_markers, quote, single_line, text_form},
    prompts::{ActionLine, QuestionVariables},
};

// The agent is rewarded by the judge and may try to influence it, so its text is bounded as well as quoted.
const MAX_ANSWER_CHARS: usize = 20_000;
const MAX_ACTION_CHARS: usize = 600;

/// Asks whether one screenshot is relevant for the decision.
pub(super) fn keypoint(trajectory: &Trajectory, step: usize) -> QuestionVariables {
    let task = &trajectory.task;
    let path = trajectory.steps[step].observation.image_path.clone();
    QuestionVariables {
        rubric: task.evaluator_reference.iter().map(|item| escape_markers(&item.description)).collect(),
        screenshots: vec![(step, path.into())],
        ..about(task)
    }
}

/// Asks whether the site blocked the agent.
pub(super) fn blocking(trajectory: &Trajectory) -> QuestionVariables {
    let actions = trajectory.steps.iter().enumerate().map(|(index, step)| {
        let action = step.action.as_ref().map_or_else(|| "nothing".to_owned(), text_form);
        ActionLine {
            step: index + 1,
            url: single_line(&step.observation.url, MAX_ACTION_CHARS),
            action: single_line(&action, MAX_ACTION_CHARS),
        }
    });
    QuestionVariables {
        actions: actions.collect(),
        screenshots: Evidence::sampled(trajectory).0,
        ..about(&trajectory.task)
    }
}

/// Criterion B: asks whether the screenshots support the answer.
pub(super) fn supported(task: &Task, answer: &str, evidence: &Evidence) -> QuestionVariables {
    QuestionVariables {
        answer: quote(answer, MAX_ANSWER_CHARS),
        screenshots: evidence.0.clone(),
        ..about(task)
    }
}

/// Criterion A: asks whether the screenshots show that a rubric item is met.
pub(super) fn rubric_item(
    task: &Task,
    item: &RubricItem,
    answer: &str,
    evidence: &Evidence,
) -> QuestionVariables {
    QuestionVariables { item: escape_markers(&item.description), ..supported(task, answer, evidence) }
}

/// Asks whether the answer states the same as the reference.
pub(super) fn reference(task: &Task, answer: &str, reference: &str) -> QuestionVariables {
    QuestionVariables {
        reference: escape_markers(reference),
        answer: quote(answer, MAX_ANSWER_CHARS),
        ..about(task)
    }
}

fn about(task: &Task) -> QuestionVariables {
    QuestionVariables { task: escape_markers(&task.task_name), ..QuestionVariables::default() }
}
