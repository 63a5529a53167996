//! AssistantBench: JSON Lines with `id`, `task`, `answer`, `gold_url`, `explanation`, `metadata` and `difficulty`. Answers
//! of the test set are not published.

use serde_json::{Map, Value};

use super::task_draft::{HARD, TaskDraft, difficulty_of, required};

pub(super) fn convert(record: &Map<String, Value>, website: &str) -> Result<TaskDraft, String> {
    let task = required(record, "task")?;
    let answer = match record.get("answer") {
        None | Some(Value::Null) => None,
        Some(Value::String(answer)) => Some(answer.clone()).filter(|answer| !answer.trim().is_empty()),
        Some(other) => return Err(format!("answer must be a string or null, not {other}")),
    };
    let difficulty = match record.get("difficulty") {
        None | Some(Value::Null) => HARD,
        Some(level) => {
            let difficulty = level.as_str().and_then(difficulty_of);
            difficulty.ok_or_else(|| format!("difficulty must be Easy, Medium or Hard, not {level}"))?
        }
    };
    Ok(TaskDraft {
        task_id: required(record, "id")?.into(),
        task_name: task.to_owned(),
        website: website.to_owned(),
        domain: "AssistantBench".into(),
        subdomain: "AssistantBench".into(),
        difficulty,
        rubric: if answer.is_none() { vec![task.to_owned()] } else { Vec::new() },
        definite_answer: answer,
        ..TaskDraft::default()
    })
}
