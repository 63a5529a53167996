//! Task files: valid, invalid and very large ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{fmt::Write as _, path::PathBuf};

use rollout::plan::tasks::{TaskError, TaskFile, TaskKey};
use serde_json::{Value, json};
use tempfile::TempDir;

fn task(number: usize) -> Value {
    json!({
        "task_id": number, "task_name": format!("Find item {number}"), "website": format!("www.shop{}.example", number % 50),
        "domain": "Shopping", "subdomain": "Lamps", "difficulty": number % 9 + 1,
        "evaluator_reference": [{"id": 1, "description": "Price", "facts": ["It is shown", "It is right"]}],
        "definite_answer": null, "origin": "made up",
    })
}

fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn selected_tasks_are_loaded_by_index() {
    let text = format!("\u{feff}{}\r\n\r\n  {}\n{}", task(0), task(1), task(2));
    let (_folder, path) = file(&text);
    let tasks = TaskFile::open(&path, false).unwrap();
    assert_eq!(tasks.entries().len(), 3);
    assert_eq!(tasks.domain(&tasks.entries()[1]), "shop1.example");
    let loaded = tasks.load(&[2, 0, 2]).unwrap();
    let names: Vec<&str> = loaded.iter().map(|task| task.task_name.as_str()).collect();
    assert_eq!(names, ["Find item 2", "Find item 0", "Find item 2"]);
    assert_eq!(loaded[0].extra["origin"], "made up");
    assert_eq!(loaded[0].evaluator_reference[1].description, "[Group 1: Price] It is right");
    assert_eq!(TaskKey::of(&loaded[1]), tasks.entries()[0].key);
}

#[test]
fn bad_lines_are_an_error_listing_the_first_twenty() {
    let mut text = format!("{}\n", task(0));
    for _ in 0..25 {
        text.push_str("{\"task_name\": 3}\n");
    }
    let (_folder, path) = file(&text);
    let error = TaskFile::open(&path, false).unwrap_err().to_string();
    assert!(error.starts_with("25 lines are not a task:\n"), "{error}");
    assert!(error.contains("tasks.jsonl:2: task_name must be a string, not a number"), "{error}");
    assert!(error.contains("tasks.jsonl:21: ") && !error.contains("tasks.jsonl:22: "), "{error}");
    assert!(error.contains("… and 5 more lines"), "{error}");
    assert!(error.contains("skip_bad_tasks=true"), "{error}");
}

#[test]
fn error_lists_every_defect_of_a_line() {
    let mut bad = task(0);
    bad["difficulty"] = json!(0);
    bad["website"] = json!("");
    bad.as_object_mut().unwrap().remove("domain");
    let (_folder, path) = file(&format!("{}\n{bad}\n", task(0)));
    let error = TaskFile::open(&path, false).unwrap_err().to_string();
    let wanted = "1 line is not a task:\n  TASKS:2: domain is missing (a string is required); website \"\" is not a web \
                  address; difficulty must be 1 or more, not 0; task_id 0 is already used in line 1\n";
    assert!(error.starts_with(&wanted.replace("TASKS", &path.display().to_string())), "{error}");
}

#[test]
fn skipped_line_does_not_reserve_its_task_id() {
    let mut bad = task(0);
    bad["difficulty"] = json!(0);
    let (_folder, path) = file(&format!("{bad}\n{}\n", task(0)));
    let tasks = TaskFile::open(&path, true).unwrap();
    assert_eq!((tasks.entries().len(), tasks.skipped.count), (1, 1));
}

#[test]
fn bad_lines_are_skipped_when_configured() {
    let (_folder, path) = file(&format!("{}\nnot json\n{}\n", task(0), task(1)));
    let tasks = TaskFile::open(&path, true).unwrap();
    assert_eq!(tasks.entries().len(), 2);
    assert_eq!(tasks.skipped.count, 1);
    assert_eq!(tasks.skipped.first[0].0, 2);
}

#[test]
fn repeated_task_id_is_reported_with_first_line() {
    let mut other = task(1);
    other["task_id"] = json!(0);
    let mut text_id = task(2);
    text_id["task_id"] = json!("0");
    let (_folder, path) = file(&format!("{}\n{other}\n{text_id}\n", task(0)));
    let error = TaskFile::open(&path, false).unwrap_err();
    let TaskError::BadLines(bad) = error else { panic!("{error}") };
    assert_eq!(bad.first, [(2, "task_id 0 is already used in line 1".to_owned().into())]);
}

#[test]
fn empty_or_missing_file_is_an_error() {
    let (folder, path) = file("\n \n");
    assert!(matches!(TaskFile::open(&path, false), Err(TaskError::Empty { .. })));
    let error = TaskFile::open(&folder.path().join("none.jsonl"), false).unwrap_err().to_string();
    assert!(error.contains("none.jsonl"), "{error}");
}

#[test]
fn changed_file_is_detected_while_loading() {
    let (_folder, path) = file(&format!("{}\n{}\n", task(0), task(1)));
    let tasks = TaskFile::open(&path, false).unwrap();
    std::fs::write(&path, format!("{}\n{}\n", task(5), task(6))).unwrap();
    let error = tasks.load(&[1]).unwrap_err().to_string();
    assert!(error.contains("tasks.jsonl:2: the file has changed"), "{error}");
}

#[test]
fn huge_file_needs_little_memory() {
    // An unoptimised build is slow, so it reads fewer tasks.
    const COUNT: usize = if cfg!(debug_assertions) { 60_000 } else { 300_000 };
    let mut text = String::new();
    for number in 0..COUNT {
        writeln!(text, "{}", task(number)).unwrap();
    }
    let (_folder, path) = file(&text);
    let before = resident_kib();
    let started = std::time::Instant::now();
    let tasks = TaskFile::open(&path, false).unwrap();
    let growth = resident_kib().saturating_sub(before);
    println!("{COUNT} tasks, {} MiB, {:?}, {growth} KiB more resident", text.len() >> 20, started.elapsed());
    assert_eq!(tasks.entries().len(), COUNT);
    assert!(size_of_val(tasks.entries()) <= COUNT * 64, "{} bytes", size_of_val(tasks.entries()));
    assert_eq!(tasks.load(&[COUNT - 1]).unwrap()[0].task_name, format!("Find item {}", COUNT - 1));
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}
