//! Listing, showing, comparing, removing and checking the trajectories of a save path.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/sample.rs"]
mod sample;
#[path = "support/save_path.rs"]
mod save_path;
#[path = "support/uncompressed.rs"]
mod uncompressed;

use save_path::{SPLIT, begin_journal, id, indices, temporary_save_path, write, write_screenshots};
use store::durable::Existing;
use store::pt::PtWriter;
use store::trajectories::{self, RemoveError, Severity, ShowOptions};
use store::{IterationId, RunMetadata};

#[test]
fn list_includes_unreadable_files() {
    let (_directory, save_path) = temporary_save_path();
    assert_eq!(trajectories::list(&save_path).unwrap().to_string(), "no trajectories found\n");
    write(&save_path, id(), [0, 1, 2]);
    let journal = begin_journal(&save_path, IterationId::new(SPLIT, 1));
    journal.append_finished_blocking(&sample::trajectory(0, 2)).unwrap();
    journal.close_blocking().unwrap();
    std::fs::write(save_path.iteration_file(IterationId::new(SPLIT, 2)), b"garbage").unwrap();
    let listing = trajectories::list(&save_path).unwrap();
    let text = listing.to_string();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..7], ["test", "0", "-", "finished", "3", "9", "66.7"], "{text}");
    assert_eq!(rows[2][..7], ["test", "1", "-", "unfinished", "1", "of", "4"], "{text}");
    assert!(
        text.contains("garbage") || listing.files[2].problem.as_ref().unwrap().contains("neither"),
        "{text}"
    );
    let table =
        trajectories::render_summaries(&store::iteration::summaries_of(&save_path, SPLIT, 0).unwrap());
    assert!(table.lines().nth(1).unwrap().contains("success"), "{table}");
    assert_eq!(table.lines().count(), 4);
}

#[test]
fn shown_trajectory_has_no_terminal_escapes() {
    let (_directory, save_path) = temporary_save_path();
    let mut trajectory = sample::trajectory(2, 3);
    trajectory.steps[0].observation.title = "evil \u{1b}[2Jtitle".to_owned();
    trajectory.metadata.extra.insert("ending".to_owned(), "answered \u{1b}[2J".into());
    let network = serde_json::json!({"matches": {"exact": 41, "normalised": 3, "scored": 1, "missed": 1}, "recorded": 0,
        "misses": [{"method": "GET", "url": "http://a.test/\u{1b}[2J"}]});
    trajectory.metadata.network = Some(serde_json::from_value(network).unwrap());
    let mut writer = PtWriter::create(&save_path.iteration_file(id())).unwrap();
    writer.push(&trajectory).unwrap();
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
    let found = trajectories::find(&save_path, SPLIT, 0, 2).unwrap().unwrap();
    assert_eq!(trajectories::find(&save_path, SPLIT, 0, 9).unwrap(), None);
    let text = trajectories::show(&found, ShowOptions::default());
    for expected in [
        "Find the price of item 2",
        "success · reward 1 · answered \\u{1b}[2J",
        "replay: 41 exact, 3 normalised, 1 scored, 1 missed\n  missed: GET http://a.test/\\u{1b}[2J\n",
        "step 2 (key)",
        "rubric (2): The price is named",
        "action: click {\"coordinates\":[500,250.5]}",
        "judge:\n    B: fine",
        "evil \\u{1b}[2Jtitle",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("You are a web agent."));
    let long = trajectories::show(&found, ShowOptions { prompts: true, ac_trees: true });
    assert!(long.contains("You are a web agent.") && long.contains("text: Suche"));
}

#[test]
fn diff_names_the_steps_that_differ() {
    let left = sample::trajectory(2, 4);
    let mut right = left.clone();
    assert_eq!(trajectories::diff(&left, &right).to_string(), "the trajectories are equal in every step\n");
    right.steps[2].action.as_mut().unwrap().key = "hover".to_owned();
    right.steps.pop();
    let diff = trajectories::diff(&left, &right);
    assert!(diff.is_same_task);
    assert_eq!(diff.common_steps, 2);
    let text = diff.to_string();
    assert!(text.contains("step 2\n  action\n    < click") && text.contains("    > hover"), "{text}");
    assert!(text.contains("  steps\n    < 4\n    > 3"), "{text}");
    assert!(!trajectories::diff(&left, &sample::trajectory(3, 4)).is_same_task);
}

#[test]
fn removing_trajectories_deletes_their_screenshots() {
    let (_directory, save_path) = temporary_save_path();
    write(&save_path, id(), [0, 1, 2]);
    let plan = trajectories::plan_removal(&save_path, SPLIT, 0, Some(&[1])).unwrap();
    assert_eq!((plan.trajectories, plan.image_bytes), (1, 15));
    assert!(plan.to_string().contains("1 trajectories, 3 screenshots"), "{plan}");
    assert_eq!(indices(&save_path), [0, 1, 2], "planning removes nothing");
    plan.execute().unwrap();
    assert_eq!(indices(&save_path), [0, 2]);
    assert!(!save_path.images().join("task_0001_ab").exists());
    assert!(save_path.images().join("task_0000_ab/step_002.png").exists());
    assert!(trajectories::check(&save_path).unwrap().is_intact());
    let refused = trajectories::plan_removal(&save_path, SPLIT, 0, Some(&[0, 1]));
    assert!(matches!(refused, Err(RemoveError::NoSuchIndex { index: 1, .. })));
}

#[test]
fn removing_an_iteration_keeps_images_outside() {
    let (_directory, save_path) = temporary_save_path();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("keep.png");
    std::fs::write(&outside, b"mine").unwrap();
    let mut trajectory = sample::trajectory(0, 3);
    write_screenshots(&save_path, &trajectory);
    trajectory.steps[1].observation.image_path = outside.to_str().unwrap().to_owned();
    trajectory.steps[2].observation.image_path =
        format!("{}/../../{}", save_path.images().display(), outside.display());
    let mut writer = PtWriter::create(&save_path.iteration_file(id())).unwrap();
    writer.push(&trajectory).unwrap();
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
    trajectories::plan_removal(&save_path, SPLIT, 0, None).unwrap().execute().unwrap();
    assert!(!save_path.iteration_file(id()).exists());
    assert!(outside.exists());
    assert!(matches!(
        trajectories::plan_removal(&save_path, SPLIT, 0, None),
        Err(RemoveError::NoIteration { .. })
    ));
}

#[test]
fn journal_in_use_is_not_removed() {
    let (_directory, save_path) = temporary_save_path();
    let journal = begin_journal(&save_path, id());
    let plan = trajectories::plan_removal(&save_path, SPLIT, 0, None).unwrap();
    assert!(plan.execute().is_err());
    assert!(save_path.journal(id()).exists());
    assert!(matches!(
        trajectories::plan_removal(&save_path, SPLIT, 0, Some(&[0])),
        Err(RemoveError::Journal { .. })
    ));
    journal.close_blocking().unwrap();
    plan.execute().unwrap();
    assert!(!save_path.journal(id()).exists());
}

#[test]
fn check_finds_each_kind_of_damage() {
    let (_directory, save_path) = temporary_save_path();
    write(&save_path, id(), [0, 1]);
    let clean = trajectories::check(&save_path).unwrap();
    assert!(clean.is_intact() && clean.findings.is_empty(), "{clean}");
    assert_eq!((clean.files, clean.trajectories, clean.screenshots), (1, 2, 6));

    std::fs::remove_file(save_path.images().join("task_0001_ab/step_001.png")).unwrap();
    std::fs::create_dir(save_path.images().join("task_9999_xx")).unwrap();
    std::fs::write(save_path.split_directory(SPLIT).join(".half.tmp"), b"").unwrap();
    let second = IterationId::new(SPLIT, 1);
    let journal = begin_journal(&save_path, second);
    for index in [0, 1, 1] {
        journal.append_finished_blocking(&sample::trajectory(index, 1)).unwrap();
    }
    journal.close_blocking().unwrap();
    let mut bytes = std::fs::read(save_path.journal(second)).unwrap();
    let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    bytes[first_line + 50] ^= 1;
    bytes.extend_from_slice(b"half a li");
    std::fs::write(save_path.journal(second), &bytes).unwrap();
    let third = save_path.iteration_file(IterationId::new(SPLIT, 2));
    std::fs::copy(save_path.iteration_file(id()), &third).unwrap();
    uncompressed::uncompress(&third);
    let mut bytes = std::fs::read(&third).unwrap();
    let position = bytes.windows(7).position(|window| window == b"Suche, ").unwrap();
    bytes[position] = b'T';
    std::fs::write(&third, &bytes).unwrap();

    let report = trajectories::check(&save_path).unwrap();
    assert!(!report.is_intact());
    let text = report.to_string();
    for (severity, message) in [
        (Severity::Problem, "trajectory 1 step 1: no screenshot"),
        (Severity::Problem, "line 2 (byte"),
        (Severity::Note, "an interrupted write"),
        (Severity::Note, "trajectory 1 has several finished records"),
        (Severity::Problem, "checksum of data.pkl"),
        (Severity::Note, "1 directories are not used by any trajectory"),
        (Severity::Note, "leftover of an interrupted write"),
    ] {
        let found = report.findings.iter().find(|finding| finding.message.contains(message));
        assert_eq!(found.map(|finding| finding.severity), Some(severity), "{message}: {text}");
    }
}
