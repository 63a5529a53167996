//! Merging the files of several ranks.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/sample.rs"]
mod sample;
#[path = "support/save_path.rs"]
mod save_path;

use save_path::{SPLIT, begin_journal, id, indices, temporary_save_path, write};
use store::aggregate::{AggregateError, AggregateOptions, FINISHED_AT, RUN_ID, aggregate, rank_status};
use store::pt::PtFile;
use store::{Journal, RunMetadata, RunRecord, SavePath};

#[test]
fn ranks_are_merged_by_index_and_gaps_are_reported() {
    let (_directory, save_path) = temporary_save_path();
    write(&save_path, id().with_rank(Some(0)), [6, 0, 3]);
    write(&save_path, id().with_rank(Some(1)), [1, 3, 4]);
    let options = AggregateOptions { tasks: Some(9), ..AggregateOptions::default() };
    let report = aggregate(&save_path, SPLIT, 0, &options).unwrap();
    assert_eq!(indices(&save_path), [0, 1, 3, 4, 6]);
    assert_eq!((report.trajectories, &report.ranks[..]), (5, &[0, 1][..]));
    assert_eq!(report.missing_indices, [(2, 2), (5, 5), (7, 8)]);
    assert_eq!(report.repeated_indices, [3]);
    let text = report.to_string();
    assert!(text.contains("indices missing: 2, 5, 7-8") && text.contains("repeated: 3"), "{text}");
    let file = PtFile::open(&report.path).unwrap();
    assert_eq!(file.own_metadata().unwrap().server_size, Some(16), "the sum over all ranks");
    assert!(save_path.iteration_file(id().with_rank(Some(0))).exists(), "the rank files stay");
}

/// Writes the journal of a rank that died after finishing the given trajectories at the given times.
fn write_dead_rank(save_path: &SavePath, rank: u32, run_id: &str, finished: &[(i64, &str)]) {
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
    for (index, time) in finished {
        let mut trajectory = sample::trajectory(*index, 2);
        trajectory.metadata.extra.insert(FINISHED_AT.to_owned(), (*time).into());
        trajectory.metadata.extra.insert("rank".to_owned(), rank.into());
        journal.append_finished_blocking(&trajectory).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn first_finished_trajectory_of_dead_ranks_is_kept() {
    let (_directory, save_path) = temporary_save_path();
    write_dead_rank(&save_path, 0, "a", &[(0, "2026-01-01T00:00:09Z"), (1, "2026-01-01T00:00:01Z")]);
    write_dead_rank(&save_path, 1, "a", &[(0, "2026-01-01T00:00:05Z"), (1, "2026-01-01T00:00:07Z")]);
    write_dead_rank(&save_path, 2, "b", &[(2, "2026-01-01T00:00:05Z")]);
    std::fs::write(save_path.plan(SPLIT, 0), "{}").unwrap();
    let mut options =
        AggregateOptions { tasks: Some(3), run_id: Some("a".into()), ..AggregateOptions::default() };
    let refused = aggregate(&save_path, SPLIT, 0, &options);
    assert!(matches!(refused, Err(AggregateError::Incomplete { .. })), "{refused:?}");
    options.tasks = Some(2);
    let report = aggregate(&save_path, SPLIT, 0, &options).unwrap();
    assert_eq!((&report.repeated_indices[..], report.other_runs.len()), (&[0, 1][..], 1));
    let text = report.to_string();
    assert!(text.contains("2 trajectories were dropped because another rank"), "{text}");
    assert!(text.contains("skipped, belongs to another run"), "{text}");
    let file = PtFile::open(&report.path).unwrap();
    let rank_of = |position| file.read(position).unwrap().metadata.extra["rank"].as_u64();
    assert_eq!((rank_of(0), rank_of(1)), (Some(1), Some(0)));
    assert!(!save_path.plan(SPLIT, 0).exists(), "the plan is removed once everything is merged");
}

#[test]
fn existing_merged_file_is_replaced_only_on_request() {
    let (_directory, save_path) = temporary_save_path();
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
fn unfinished_ranks_are_named_unless_partial() {
    let (_directory, save_path) = temporary_save_path();
    assert!(matches!(
        aggregate(&save_path, SPLIT, 0, &AggregateOptions::default()),
        Err(AggregateError::NoFiles { .. })
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
    assert_eq!(
        rank_status(&save_path, SPLIT, 0, None).unwrap().missing,
        [0],
        "up to the highest rank with a file"
    );
    options.partial = true;
    assert_eq!(aggregate(&save_path, SPLIT, 0, &options).unwrap().missing_ranks, [0, 3]);
    assert_eq!(indices(&save_path), [1]);
    journal.close_blocking().unwrap();
}
