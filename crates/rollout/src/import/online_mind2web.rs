//! Online-Mind2Web: a JSON list with `task_id`, `confirmed_task` (`task_description` in the data card), `website`,
//! `reference_length` and `level`.

use serde_json::{Map, Value};

use super::task_draft::{EASY, HARD, MEDIUM, TaskDraft, difficulty_of, required};
use crate::address;

pub(super) fn convert(record: &Map<String, Value>) -> Result<TaskDraft, String> {
    let name = if record.contains_key("confirmed_task") { "confirmed_task" } else { "task_description" };
    let (task, website) = (required(record, name)?, required(record, "website")?);
    Ok(TaskDraft {
        task_id: required(record, "task_id")?.into(),
        task_name: task.to_owned(),
        website: website.to_owned(),
        domain: "Online-Mind2Web".into(),
        subdomain: address::domain(&address::with_scheme(website)),
        difficulty: difficulty(record)?,
        rubric: vec![task.to_owned()],
        ..TaskDraft::default()
    })
}

/// Reads the level. A file without it has the number of steps that a person needed: up to 5 is easy, up to 10 medium.
fn difficulty(record: &Map<String, Value>) -> Result<i64, String> {
    if let Some(level) = record.get("level") {
        let difficulty = level.as_str().and_then(difficulty_of);
        return difficulty.ok_or_else(|| format!("level must be easy, medium or hard, not {level}"));
    }
    match record.get("reference_length").and_then(Value::as_i64) {
        Some(length) if length <= 5 => Ok(EASY),
        Some(length) if length <= 10 => Ok(MEDIUM),
        Some(_) => Ok(HARD),
        None => Err("level and reference_length are missing".into()),
    }
}
