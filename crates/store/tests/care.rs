//! Merging ranks, and looking after a save path: list, show, diff, remove, check.

#![allow(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

#[path = "support/sample.rs"]
mod sample;

use proto::trajectory::Trajectory;
use store::aggregate::{AggregateError, AggregateOptions, FINISHED_AT, RUN_ID, aggregate, rank_status};
use store::durable::Existing;
use store::pt::{PtFile, PtWriter};
use store::trajectories::{self, RemoveError, Severity, ShowOptions};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split};

const SPLIT: Split = Split::Test;

fn id() -> IterationId {
    IterationId::new(SPLIT, 0)
}

fn fresh() -> (tempfile::TempDir, SavePath) {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_path.create_directories(SPLIT).unwrap();
    (directory, save_path)
}

/// Writes trajectories with their screenshots.
fn write(save_path: &SavePath, id: IterationId, indices: impl IntoIterator<Item = i64>) {
    let mut writer = PtWriter::create(&save_path.iteration_file(id)).unwrap();
    for index in indices {
        let trajectory = sample::trajectory(index, 3);
        draw(save_path, &trajectory);
        writer.push(&trajectory).unwrap();
    }
    let metadata = RunMetadata { server_size: Some(8), seed: Some(3), ..RunMetadata::default() };
    writer.finish(&metadata, Existing::Refuse).unwrap();
}

fn draw(save_path: &SavePath, trajectory: &Trajectory) {
    for step in &trajectory.steps {
        let path = save_path.resolve_image(&step.observation.image_path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"image").unwrap();
    }
}

fn begin_journal(save_path: &SavePath, id: IterationId) -> Journal {
    let run = RunRecord {
        split: id.split,
        iteration: id.iteration,
        rank: id.rank,
        seed: 0,
        config_digest: String::new(),
        tasks: 4,
        metadata: RunMetadata::default(),
    };
    Journal::create(&save_path.journal(id), &run).unwrap()
}

fn indices(save_path: &SavePath) -> Vec<i64> {
    let file = PtFile::open(&save_path.iteration_file(id())).unwrap();
    file.trajectories().unwrap().map(|trajectory| trajectory.unwrap().task.trajectory_index).collect()
}

#[test]
fn ranks_are_merged_in_the_order_of_the_indices_and_gaps_are_said() {
    let (_guard, save_path) = fresh();
    write(&save_path, id().with_rank(Some(0)), [6, 0, 3]);
    write(&save_path, id().with_rank(Some(1)), [1, 3, 4]);
    let options = AggregateOptions { tasks: Some(9), ..AggregateOptions::default() };
    let report = aggregate(&save_path, SPLIT, 0, &options).unwrap();
    assert_eq!(indices(&save_path), [0, 1, 3, 4, 6]);
    assert_eq!((report.trajectories, &report.ranks[..]), (5, &[0, 1][..]));
    assert_eq!(report.missing_indices, [(2, 2), (5, 5), (7, 8)]);
    assert_eq!(report.repeated_indices, [3]);
    let said = report.to_string();
    assert!(said.contains("indices missing: 2, 5, 7-8") && said.contains("repeated: 3"), "{said}");
    let file = PtFile::open(&report.path).unwrap();
    assert_eq!(file.own_metadata().unwrap().server_size, Some(16), "the instances of all ranks");
    assert!(save_path.iteration_file(id().with_rank(Some(0))).exists(), "the ranks' files stay");
}

/// A rank that died with these finished at these times, and what it says of its run.
fn dead_rank(save_path: &SavePath, rank: u32, run_id: &str, finished: &[(i64, &str)]) {
    let id = id().with_rank(Some(rank));
    let extra = serde_json::Map::from_iter([(RUN_ID.to_owned(), run_id.into())]);
    let run = RunRecord {
        split: id.split,
        iteration: id.iteration,
        rank: id.rank,
        seed: 0,
        config_digest: String::new(),
        tasks: 3,
        metadata: RunMetadata { extra, ..RunMetadata::default() },
    };
    let journal = Journal::create(&save_path.journal(id), &run).unwrap();
    for (index, at) in finished {
        let mut trajectory = sample::trajectory(*index, 2);
        trajectory.metadata.extra.insert(FINISHED_AT.to_owned(), (*at).into());
        trajectory.metadata.extra.insert("by".to_owned(), rank.into());
        journal.append_finished_blocking(&trajectory).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn what_dead_ranks_finished_counts_and_of_two_the_first() {
    let (_guard, save_path) = fresh();
    dead_rank(&save_path, 0, "a", &[(0, "2026-01-01T00:00:09Z"), (1, "2026-01-01T00:00:01Z")]);
    dead_rank(&save_path, 1, "a", &[(0, "2026-01-01T00:00:05Z"), (1, "2026-01-01T00:00:07Z")]);
    dead_rank(&save_path, 2, "b", &[(2, "2026-01-01T00:00:05Z")]);
    std::fs::write(save_path.plan(SPLIT, 0), "{}").unwrap();
    let mut options =
        AggregateOptions { tasks: Some(3), run_id: Some("a".into()), ..AggregateOptions::default() };
    let refused = aggregate(&save_path, SPLIT, 0, &options);
    assert!(matches!(refused, Err(AggregateError::Incomplete { .. })), "{refused:?}");
    options.tasks = Some(2);
    let report = aggregate(&save_path, SPLIT, 0, &options).unwrap();
    assert_eq!((&report.repeated_indices[..], report.strangers.len()), (&[0, 1][..], 1));
    let said = report.to_string();
    assert!(said.contains("2 trajectories that another rank had finished before were dropped"), "{said}");
    assert!(said.contains("left out, of another run"), "{said}");
    let file = PtFile::open(&report.path).unwrap();
    let by = |place| file.read(place).unwrap().metadata.extra["by"].as_u64();
    assert_eq!((by(0), by(1)), (Some(1), Some(0)));
    assert!(!save_path.plan(SPLIT, 0).exists(), "everything is merged");
}

#[test]
fn a_finished_file_is_replaced_only_when_told() {
    let (_guard, save_path) = fresh();
    write(&save_path, id().with_rank(Some(0)), [0, 1]);
    write(&save_path, id(), [7]);
    let refused = aggregate(&save_path, SPLIT, 0, &AggregateOptions::default());
    assert!(matches!(refused, Err(AggregateError::Exists { .. })));
    assert_eq!(indices(&save_path), [7]);
    let options = AggregateOptions { overwrite: true, ..AggregateOptions::default() };
    aggregate(&save_path, SPLIT, 0, &options).unwrap();
    assert_eq!(indices(&save_path), [0, 1]);
}

#[test]
fn missing_and_running_ranks_are_named_and_merged_without_only_when_told() {
    let (_guard, save_path) = fresh();
    assert!(matches!(
        aggregate(&save_path, SPLIT, 0, &AggregateOptions::default()),
        Err(AggregateError::Nothing { .. })
    ));
    write(&save_path, id().with_rank(Some(1)), [1]);
    let journal = begin_journal(&save_path, id().with_rank(Some(2)));
    let mut options = AggregateOptions { ranks: Some(4), ..AggregateOptions::default() };
    match aggregate(&save_path, SPLIT, 0, &options) {
        Err(AggregateError::Incomplete { missing, unfinished }) => {
            assert_eq!((missing, unfinished), (vec![0, 3], vec![2]));
        }
        other => panic!("{other:?}"),
    }
    assert!(!save_path.iteration_file(id()).exists());
    assert_eq!(rank_status(&save_path, SPLIT, 0, None).unwrap().missing, [0], "up to the highest seen");
    options.partial = true;
    assert_eq!(aggregate(&save_path, SPLIT, 0, &options).unwrap().missing_ranks, [0, 3]);
    assert_eq!(indices(&save_path), [1]);
    journal.close_blocking().unwrap();
}

#[test]
fn the_list_tells_what_is_there_and_what_cannot_be_read() {
    let (_guard, save_path) = fresh();
    assert_eq!(trajectories::list(&save_path).unwrap().to_string(), "no trajectories here\n");
    write(&save_path, id(), [0, 1, 2]);
    let journal = begin_journal(&save_path, IterationId::new(SPLIT, 1));
    journal.append_finished_blocking(&sample::trajectory(0, 2)).unwrap();
    journal.close_blocking().unwrap();
    std::fs::write(save_path.iteration_file(IterationId::new(SPLIT, 2)), b"rubbish").unwrap();
    let listing = trajectories::list(&save_path).unwrap();
    let said = listing.to_string();
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..7], ["test", "0", "-", "finished", "3", "9", "66.7"], "{said}");
    assert_eq!(rows[2][..7], ["test", "1", "-", "unfinished", "1", "of", "4"], "{said}");
    assert!(
        said.contains("rubbish") || listing.files[2].problem.as_ref().unwrap().contains("neither"),
        "{said}"
    );
    let table =
        trajectories::render_summaries(&store::iteration::summaries_of(&save_path, SPLIT, 0).unwrap());
    assert!(table.lines().nth(1).unwrap().contains("success"), "{table}");
    assert_eq!(table.lines().count(), 4);
}

#[test]
fn a_trajectory_is_shown_with_its_steps_and_without_terminal_tricks() {
    let (_guard, save_path) = fresh();
    let mut trajectory = sample::trajectory(2, 3);
    trajectory.steps[0].observation.title = "evil \u{1b}[2Jtitle".to_owned();
    let mut writer = PtWriter::create(&save_path.iteration_file(id())).unwrap();
    writer.push(&trajectory).unwrap();
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
    let found = trajectories::find(&save_path, SPLIT, 0, 2).unwrap().unwrap();
    assert_eq!(trajectories::find(&save_path, SPLIT, 0, 9).unwrap(), None);
    let text = trajectories::show(&found, ShowOptions::default());
    for words in [
        "Find the price of item 2",
        "success · reward 1",
        "step 2 (key)",
        "rubric (2): The price is named",
        "action: click {\"coordinate\":[500,250.5]}",
        "judge:\n    B: fine",
        "evil \\u{1b}[2Jtitle",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("You are a web agent."));
    let long = trajectories::show(&found, ShowOptions { prompts: true, ac_trees: true });
    assert!(long.contains("You are a web agent.") && long.contains("text: Suche"));
}

#[test]
fn a_diff_names_the_steps_that_differ() {
    let left = sample::trajectory(2, 4);
    let mut right = left.clone();
    assert_eq!(trajectories::diff(&left, &right).to_string(), "the same in every step\n");
    right.steps[2].action.as_mut().unwrap().key = "hover".to_owned();
    right.steps.pop();
    let diff = trajectories::diff(&left, &right);
    assert!(diff.is_same_task);
    assert_eq!(diff.common_steps, 2);
    let said = diff.to_string();
    assert!(said.contains("step 2\n  action\n    < click") && said.contains("    > hover"), "{said}");
    assert!(said.contains("  steps\n    < 4\n    > 3"), "{said}");
    assert!(!trajectories::diff(&left, &sample::trajectory(3, 4)).is_same_task);
}

#[test]
fn removing_some_rewrites_the_file_and_deletes_only_their_screenshots() {
    let (_guard, save_path) = fresh();
    write(&save_path, id(), [0, 1, 2]);
    let plan = trajectories::plan_removal(&save_path, SPLIT, 0, Some(&[1])).unwrap();
    assert_eq!((plan.trajectories, plan.image_bytes), (1, 15));
    assert!(plan.to_string().contains("1 trajectories, 3 screenshots"), "{plan}");
    assert_eq!(indices(&save_path), [0, 1, 2], "nothing is done yet");
    plan.execute().unwrap();
    assert_eq!(indices(&save_path), [0, 2]);
    assert!(!save_path.images().join("task_0001_ab").exists());
    assert!(save_path.images().join("task_0000_ab/step_002.png").exists());
    assert!(trajectories::check(&save_path).unwrap().is_whole());
    let refused = trajectories::plan_removal(&save_path, SPLIT, 0, Some(&[0, 1]));
    assert!(matches!(refused, Err(RemoveError::NoSuchIndex { index: 1, .. })));
}

#[test]
fn removing_an_iteration_takes_its_files_but_nothing_outside_of_the_save_path_s_images() {
    let (_guard, save_path) = fresh();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("keep.png");
    std::fs::write(&outside, b"mine").unwrap();
    let mut trajectory = sample::trajectory(0, 3);
    draw(&save_path, &trajectory);
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
        Err(RemoveError::Nothing { .. })
    ));
}

#[test]
fn a_journal_in_use_is_not_removed() {
    let (_guard, save_path) = fresh();
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
fn the_check_finds_each_kind_of_damage() {
    let (_guard, save_path) = fresh();
    write(&save_path, id(), [0, 1]);
    let clean = trajectories::check(&save_path).unwrap();
    assert!(clean.is_whole() && clean.findings.is_empty(), "{clean}");
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
    let mut bytes = std::fs::read(&third).unwrap();
    let place = bytes.windows(7).position(|seven| seven == b"Suche, ").unwrap();
    bytes[place] = b'T';
    std::fs::write(&third, &bytes).unwrap();

    let report = trajectories::check(&save_path).unwrap();
    assert!(!report.is_whole());
    let said = report.to_string();
    for (severity, words) in [
        (Severity::Problem, "trajectory 1 step 1: no screenshot"),
        (Severity::Problem, "line 2 (byte"),
        (Severity::Note, "a write was cut short"),
        (Severity::Note, "trajectory 1 has several finished records"),
        (Severity::Problem, "checksum of data.pkl"),
        (Severity::Note, "1 directories belong to no trajectory"),
        (Severity::Note, "left by an interrupted write"),
    ] {
        let found = report.findings.iter().find(|finding| finding.what.contains(words));
        assert_eq!(found.map(|finding| finding.severity), Some(severity), "{words}: {said}");
    }
}
