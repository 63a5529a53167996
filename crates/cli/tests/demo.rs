//! `webgym demo` with default arguments: farm, practice sites, baseline policy and judge in one process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{path::Path, process::Command};

use proto::trajectory::Outcome;
use store::{IterationFile, IterationId, SavePath, Split};

/// Task name, outcome and number of steps of each trajectory.
type Outcomes = Vec<(String, String, u64)>;

fn demo(folder: &Path, more: &[&str]) -> (String, Outcomes) {
    let output = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["demo", "--out"])
        .arg(folder)
        .args(more)
        .output()
        .expect("webgym runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let saved = SavePath::new(folder).iteration_file(IterationId::new(Split::Train, 0));
    let summaries = IterationFile::open(&saved).expect("the iteration's file");
    let mut outcomes: Outcomes = summaries
        .summaries()
        .iter()
        .map(|one| (one.task_name.clone(), one.outcome.map_or("none", Outcome::as_str).to_owned(), one.steps))
        .collect();
    outcomes.sort();
    (stdout, outcomes)
}

#[test]
fn demo_solves_some_tasks_and_prints_next_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, outcomes) = demo(folder.path(), &[]);
    assert!(outcomes.len() >= 30, "{} tasks", outcomes.len());
    let succeeded = outcomes.iter().filter(|(_, outcome, _)| outcome == "success").count();
    let share = 100 * succeeded / outcomes.len();
    assert!((30..=90).contains(&share), "{share} % succeeded");
    assert!(
        outcomes.iter().all(|(_, outcome, _)| outcome == "success" || outcome == "failure"),
        "{outcomes:?}"
    );
    for text in ["overall", "trajectories show", "vllm_server_url="] {
        assert!(stdout.contains(text), "{text} is missing in:\n{stdout}");
    }
}

#[test]
fn same_seed_gives_same_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--tasks", "12", "--instances", "3", "--seed", "11"];
    let (_, first) = demo(&folder.path().join("first"), &few);
    let (_, second) = demo(&folder.path().join("second"), &few);
    assert_eq!(first, second);
    assert_eq!(first.len(), 12);
    let (_, other) =
        demo(&folder.path().join("other"), &["--tasks", "12", "--instances", "3", "--seed", "12"]);
    assert_ne!(first, other, "another seed draws other tasks");
}
