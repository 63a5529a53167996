//! A task as an importer describes it, and its line in a task file.

use serde_json::{Map, Value, json};

use crate::{episode::SETUP_FIELD, judge::program};

/// Difficulties in the middle of the classes easy, medium and hard.
pub(super) const EASY: i64 = 2;
pub(super) const MEDIUM: i64 = 5;
pub(super) const HARD: i64 = 8;

/// What an importer knows about a task.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskDraft {
    pub(super) task_id: Value,
    pub(super) task_name: String,
    pub(super) website: String,
    pub(super) domain: String,
    pub(super) subdomain: String,
    pub(super) difficulty: i64,
    /// The rubric of a judge model.
    pub(super) rubric: Vec<String>,
    pub(super) definite_answer: Option<String>,
    /// The checks of a program judge.
    pub(super) judge: Option<Value>,
    pub(super) setup: Option<String>,
}

impl TaskDraft {
    /// Returns the task as a line of a task file. `source` is what the benchmark says about it.
    pub(super) fn to_line(&self, benchmark: &str, source: &Map<String, Value>) -> String {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        add("task_id", self.task_id.clone());
        add("task_name", self.task_name.clone().into());
        add("website", self.website.clone().into());
        add("domain", self.domain.clone().into());
        add("subdomain", self.subdomain.clone().into());
        add("difficulty", self.difficulty.into());
        if !self.rubric.is_empty() {
            add("evaluator_reference", json!(self.rubric));
        }
        if let Some(answer) = &self.definite_answer {
            add("definite_answer", answer.clone().into());
        }
        if let Some(judge) = &self.judge {
            add(program::FIELD, judge.clone());
        }
        if let Some(setup) = &self.setup {
            add(SETUP_FIELD, setup.clone().into());
        }
        add("source", json!({"benchmark": benchmark, "record": source}));
        Value::Object(fields).to_string()
    }
}

/// Returns a field that must be a string with text in it.
pub(super) fn required<'a>(record: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match record.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(Value::String(_)) => Err(format!("{name} is empty")),
        Some(other) => Err(format!("{name} must be a string, not {other}")),
        None => Err(format!("{name} is missing")),
    }
}

/// Returns the difficulty that a benchmark calls easy, medium or hard.
pub(super) fn difficulty_of(name: &str) -> Option<i64> {
    match name.to_ascii_lowercase().as_str() {
        "easy" => Some(EASY),
        "medium" => Some(MEDIUM),
        "hard" => Some(HARD),
        _ => None,
    }
}
