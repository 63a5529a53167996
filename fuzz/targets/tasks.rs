//! Task files: every line is a task or an error, every task can be loaded by its position, and a task that is written
//! again parses to the same task.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use proto::trajectory::{Task, TaskId};
use rollout::plan::tasks::{TaskFile, parse_line};
use serde_json::{Value, json};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

fn to_line(task: &Task) -> String {
    let mut fields = task.extra.clone();
    let rubric: Vec<Value> = task
        .evaluator_reference
        .iter()
        .map(|item| json!({"description": item.description, "difficulty": item.difficulty}))
        .collect();
    let id = task.task_id.as_ref().map(|id| match id {
        TaskId::Number(number) => json!(number),
        TaskId::Text(text) => json!(text),
    });
    for (name, value) in [
        ("task_name", json!(task.task_name)),
        ("domain", json!(task.domain)),
        ("subdomain", json!(task.subdomain)),
        ("website", json!(task.website)),
        ("difficulty", json!(task.difficulty)),
        ("evaluator_reference", json!(rubric)),
        ("definite_answer", json!(task.reference_answer)),
        ("attempt_level", json!(task.attempt_level)),
        ("task_id", json!(id)),
    ] {
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields).to_string()
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(task) = parse_line(bytes) {
        // A task without a rubric is valid only with an answer; a missing answer written as null is refused.
        if !task.evaluator_reference.is_empty() {
            assert_eq!(parse_line(to_line(&task).as_bytes()).as_ref(), Ok(&task));
        }
    }
    let path = FOLDER.path().join("tasks.jsonl");
    std::fs::write(&path, bytes).expect("write a file");
    let Ok(file) = TaskFile::open(&path, true) else { return };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    assert!(file.entries().len() + file.skipped.count <= lines.count());
    let positions: Vec<usize> = (0..file.entries().len()).collect();
    assert_eq!(file.load(&positions).expect("the file has not changed").len(), positions.len());
});
