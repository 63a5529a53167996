//! `.pt` files: written completely or not at all, and equal after a round trip.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/sample.rs"]
mod sample;
#[path = "support/uncompressed.rs"]
mod uncompressed;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proto::network::{MatchCounts, MissedRequest, NetworkSummary};
use proto::trajectory::{
    Action, Evaluation, Observation, Outcome, Response, Reward, RubricItem, Step, StepExtras, Task, TaskId,
    Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Value};
use store::durable::Existing;
use store::pt::{self, PtError, PtFile, PtWriter};
use store::unpickle::{UnpickleLimits, load};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split, finish_iteration};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), map_of(inner).prop_map(Value::Object)]
    })
}

fn map_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    btree_map(any::<String>(), values, 0..4).prop_map(Map::from_iter)
}

fn task() -> impl Strategy<Value = Task> {
    let rubric = vec((any::<String>(), any::<i64>()), 0..3).prop_map(|items| {
        items.into_iter().map(|(description, difficulty)| RubricItem { description, difficulty }).collect()
    });
    let id = option::of(prop_oneof![
        any::<i64>().prop_map(TaskId::Number),
        any::<String>().prop_map(TaskId::Text)
    ]);
    let texts = (any::<String>(), any::<String>(), any::<String>(), any::<String>(), any::<Option<String>>());
    (texts, any::<[i64; 4]>(), rubric, id, map_of(json())).prop_map(
        |(texts, numbers, rubric, task_id, extra)| Task {
            task_name: texts.0,
            domain: texts.1,
            subdomain: texts.2,
            website: texts.3,
            difficulty: numbers[0],
            evaluator_reference: rubric,
            reference_answer: texts.4,
            attempt_level: numbers[1],
            task_id,
            max_steps: numbers[2],
            trajectory_index: numbers[3],
            extra,
        },
    )
}

fn extras() -> impl Strategy<Value = StepExtras> {
    let numbers = option::of(vec(-1e6..0.0, 0..3));
    let ids = any::<[Option<Vec<u32>>; 2]>();
    (ids, numbers, any::<[Option<String>; 2]>(), map_of(json())).prop_map(
        |([prompt_token_ids, token_ids], logprobs, [finish_reason, policy_version], timings_ms)| StepExtras {
            prompt_token_ids,
            token_ids,
            logprobs,
            finish_reason,
            policy_version,
            timings_ms,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let observation = (any::<[String; 3]>(), any::<Option<String>>())
        .prop_map(|([image_path, title, url], ac_tree)| Observation { image_path, ac_tree, title, url });
    let action = (any::<[String; 2]>(), map_of(json()))
        .prop_map(|([key, action_string], arguments)| Action { key, arguments, action_string });
    let response =
        (any::<[String; 2]>(), map_of(json())).prop_map(|([raw_response, raw_prompt], answering_tokens)| {
            Response { raw_response, answering_tokens, raw_prompt }
        });
    let evaluation = prop_oneof![
        any::<String>().prop_map(Evaluation::Text),
        any::<Vec<String>>().prop_map(Evaluation::Texts)
    ];
    let reward = (any::<i64>(), evaluation, any::<[bool; 2]>(), any::<Option<String>>()).prop_map(
        |(reward, evaluation, [is_blocked, submit], submission_judgment)| Reward {
            reward,
            evaluation,
            is_blocked,
            submit,
            submission_judgment,
        },
    );
    // A file has False where a journal has no value.
    let same_as_next = any::<bool>().prop_map(Some);
    (observation, option::of(action), response, reward, same_as_next, extras()).prop_map(
        |(observation, action, response, reward, same_as_next_screenshot, extras)| Step {
            observation,
            action,
            response,
            reward,
            same_as_next_screenshot,
            extras,
        },
    )
}

fn trajectory() -> impl Strategy<Value = Trajectory> {
    let outcome = option::of(prop_oneof![
        Just(Outcome::Success),
        Just(Outcome::Failure),
        Just(Outcome::Blocked),
        Just(Outcome::InfraLost),
        Just(Outcome::JudgeError),
        Just(Outcome::Cancelled),
        Just(Outcome::ReplayMiss),
    ]);
    let network = option::of(any::<(u32, u32, String, f64)>().prop_map(|(exact, missed, url, score)| {
        let matches = MatchCounts { exact: exact.into(), missed: missed.into(), ..MatchCounts::default() };
        let misses = vec![MissedRequest { method: "GET".into(), url: url.clone(), score: Some(score) }];
        NetworkSummary { matches, sites: [(url, matches)].into(), misses, recorded: 3 }
    }));
    let metadata =
        (any::<Vec<i64>>(), outcome, any::<Option<String>>(), any::<Vec<String>>(), network, map_of(json()));
    let forked_at_step = option::of(0..u64::from(u32::MAX));
    let metadata = (metadata, forked_at_step).prop_map(|(metadata, forked_at_step)| {
        let (keypoint_step_ids, outcome, group_id, policy_versions, network, extra) = metadata;
        TrajectoryMetadata {
            keypoint_step_ids,
            outcome,
            group_id,
            policy_versions,
            forked_at_step,
            network,
            extra,
        }
    });
    (task(), vec(step(), 1..4), metadata).prop_map(|(task, steps, metadata)| Trajectory {
        task,
        steps,
        metadata,
    })
}

fn write(path: &std::path::Path, trajectories: &[Trajectory]) {
    let mut writer = PtWriter::create(path).unwrap();
    for trajectory in trajectories {
        writer.push(trajectory).unwrap();
    }
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
}

fn read(path: &std::path::Path) -> Vec<Trajectory> {
    PtFile::open(path).unwrap().trajectories().unwrap().collect::<Result<_, _>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trajectories_are_equal_after_a_round_trip(trajectories in vec(trajectory(), 0..4)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write(&path, &trajectories);
        prop_assert_eq!(&read(&path), &trajectories);
        let file = PtFile::open(&path).unwrap();
        for (position, trajectory) in trajectories.iter().enumerate() {
            prop_assert_eq!(&file.read(position).unwrap(), trajectory);
        }
        // The journal stores trajectories as JSON.
        for trajectory in &trajectories {
            let line = serde_json::to_string(trajectory).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Trajectory>(&line).unwrap(), trajectory);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..2000)) {
        let _ = load(&bytes, UnpickleLimits::default());
    }

    #[test]
    fn random_instructions_never_panic(
        codes in vec(prop::sample::select(&b"(.01N\x88\x89K\x05]ae}ldsu\x8f\x90\x91)\x85\x86\x87tR\x81bq\x01h\x01\x94\x93"[..]), 0..300)
    ) {
        let _ = load(&[&b"\x80\x04"[..], &codes, b"."].concat(), UnpickleLimits::default());
    }

    #[test]
    fn modified_files_never_panic(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write(&path, &[sample::trajectory(0, 2), sample::trajectory(1, 3)]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(file) = PtFile::open(&path) {
            let _ = file.trajectories().map(|trajectories| trajectories.take(10).count());
            let _ = file.read(1);
        }
        let start = bytes.windows(2).position(|two| two == [0x80, 2]).unwrap_or(0);
        let _ = load(&bytes[start..], UnpickleLimits::default());
    }
}

fn write_journal(save_path: &SavePath, id: IterationId, indices: std::ops::Range<i64>) {
    save_path.create_directories(id.split).unwrap();
    let run = RunRecord {
        split: id.split,
        iteration: id.iteration,
        rank: id.rank,
        seed: 1,
        config_digest: String::new(),
        tasks: indices.clone().count() as u64,
        metadata: RunMetadata { seed: Some(1), ..RunMetadata::default() },
    };
    let journal = Journal::create(&save_path.journal(id), &run).unwrap();
    for index in indices {
        journal.append_finished_blocking(&sample::trajectory(index, 2)).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn finishing_replaces_the_journal_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let id = IterationId::new(Split::Train, 0);
    write_journal(&save_path, id, 0..4);
    let finished = finish_iteration(&save_path, id).unwrap();
    assert_eq!((finished.summaries.len(), finished.tasks), (4, 4));
    assert_eq!(read(&finished.path).len(), 4);
    assert!(!save_path.journal(id).exists());
    assert_eq!(save_path.next_iteration(Split::Train, None).unwrap(), 1);
    assert_eq!(PtFile::open(&finished.path).unwrap().own_metadata().unwrap().seed, Some(1));
}

#[test]
fn interrupted_finish_completes_and_other_file_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let id = IterationId::new(Split::Train, 0);
    write_journal(&save_path, id, 0..4);
    pt::write_from_journal(&save_path.journal(id), &save_path.iteration_file(id), Existing::Refuse).unwrap();
    finish_iteration(&save_path, id).unwrap();
    assert!(!save_path.journal(id).exists());

    write_journal(&save_path, id, 0..2);
    assert!(matches!(finish_iteration(&save_path, id), Err(PtError::Exists { .. })));
    assert!(save_path.journal(id).exists(), "the journal is kept");
    assert_eq!(read(&save_path.iteration_file(id)).len(), 4, "the existing file is kept");
}

#[test]
fn open_journal_cannot_be_finished() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let id = IterationId::new(Split::Train, 0);
    write_journal(&save_path, id, 0..1);
    let (journal, _) = Journal::resume(&save_path.journal(id)).unwrap();
    assert!(finish_iteration(&save_path, id).is_err());
    journal.close_blocking().unwrap();
    finish_iteration(&save_path, id).unwrap();
}

#[test]
fn rewrite_changes_and_removes_trajectories() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut trajectories: Vec<Trajectory> = (0..5).map(|index| sample::trajectory(index, 2)).collect();
    write(&path, &trajectories);
    let count = pt::rewrite(&path, |mut trajectory| {
        trajectory.steps[1].reward.reward = 7;
        (trajectory.task.trajectory_index != 2).then_some(trajectory)
    });
    trajectories.remove(2);
    for trajectory in &mut trajectories {
        trajectory.steps[1].reward.reward = 7;
    }
    assert_eq!(count.unwrap(), 4);
    assert_eq!(read(&path), trajectories);
}

#[test]
fn trajectory_without_steps_keeps_its_task() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut empty = sample::trajectory(3, 1);
    empty.steps.clear();
    write(&path, &[sample::trajectory(0, 1), empty.clone()]);
    let found = read(&path).pop().unwrap();
    assert!(found.steps.is_empty());
    assert_eq!((&found.task.task_name, found.task.trajectory_index), (&empty.task.task_name, 3));
}

#[test]
fn non_trajectory_file_error_names_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for (content, message) in [(&b"\x80\x02}."[..], "no list of trajectories"), (b"hello", "neither")] {
        std::fs::write(&path, content).unwrap();
        let result: Result<Vec<_>, _> =
            PtFile::open(&path).and_then(|file| file.trajectories()).and_then(Iterator::collect);
        let error = result.unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("file"), "{error}");
    }
}

#[test]
fn file_is_compressed_and_read_by_position() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut trajectories: Vec<Trajectory> = (0..5).map(|index| sample::trajectory(index, 20)).collect();
    let mut length = 0;
    for step in trajectories.iter_mut().flat_map(|trajectory| &mut trajectory.steps) {
        step.response.raw_prompt = "Find the cheapest lamp. ".repeat(400);
        length += step.response.raw_prompt.len() as u64;
    }
    write(&path, &trajectories);
    assert!(std::fs::metadata(&path).unwrap().len() < length / 4);
    let file = PtFile::open(&path).unwrap();
    for position in [4, 0, 2] {
        assert_eq!(file.read(position).unwrap(), trajectories[position]);
    }
    // Nothing before a trajectory is needed to read it.
    let offset = file.entries().unwrap()[4].compressed_offset.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let (earlier, _) = bytes.split_at_mut(offset as usize);
    let half = earlier.len() / 2;
    earlier[half..].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let file = PtFile::open(&path).unwrap();
    assert_eq!(file.read(4).unwrap(), trajectories[4]);
    assert!(
        file.read(3).is_err()
            && file.trajectories().and_then(Iterator::collect::<Result<Vec<_>, _>>).is_err()
    );
}

#[test]
fn uncompressed_file_of_an_earlier_version_is_read_by_position() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let trajectories: Vec<Trajectory> = (0..3).map(|index| sample::trajectory(index, 2)).collect();
    write(&path, &trajectories);
    uncompressed::uncompress(&path);
    let file = PtFile::open(&path).unwrap();
    assert_eq!(file.entries().unwrap().len(), 3);
    assert_eq!(file.read(2).unwrap(), trajectories[2]);
    assert_eq!(read(&path), trajectories);
}

#[test]
fn text_that_compresses_too_well_is_still_readable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut trajectory = sample::trajectory(0, 1);
    trajectory.steps[0].response.raw_response = "a".repeat(40 << 20);
    write(&path, std::slice::from_ref(&trajectory));
    assert!(std::fs::metadata(&path).unwrap().len() > (40 << 20) / 110, "readers refuse higher ratios");
    assert!(read(&path) == [trajectory]);
}
