use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::writer_thread::Disk;
use super::*;
use crate::layout::Split;
use crate::run_record::{RunMetadata, RunRecord};
use crate::sample;

pub(super) fn run(tasks: u64) -> RunRecord {
    let metadata = RunMetadata { seed: Some(7), ..RunMetadata::default() };
    RunRecord {
        split: Split::Train,
        iteration: 0,
        rank: None,
        seed: 7,
        config_digest: "d".to_owned(),
        tasks,
        metadata,
    }
}

pub(super) fn temporary_path() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train_trajectories.pt.iteration0.checkpoint");
    (directory, path)
}

fn write_journal(path: &Path, indices: &[i64]) {
    let journal = Journal::create(path, &run(10)).unwrap();
    for index in indices {
        journal.append_finished_blocking(&sample::trajectory(*index, 3)).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn finished_trajectories_are_read_back() {
    let (_directory, path) = temporary_path();
    write_journal(&path, &[4, 1]);
    let found = scan(&path).unwrap();
    assert_eq!(found.run, Some(run(10)));
    let mut reader = JournalReader::open(&path).unwrap();
    for (index, located) in &found.finished {
        let trajectory = read_finished(&mut reader, located).unwrap();
        assert_eq!(trajectory, sample::trajectory(*index, 3));
        assert_eq!(located.summary, crate::Summary::of(&trajectory));
    }
    assert_eq!(found.finished.keys().copied().collect::<Vec<_>>(), [1, 4]);
}

#[test]
fn truncated_journal_keeps_complete_records() {
    let (directory, path) = temporary_path();
    write_journal(&path, &[0, 1]);
    let complete = std::fs::read(&path).unwrap();
    let ends: Vec<usize> =
        complete.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    let truncated = directory.path().join("truncated");
    for length in (ends[0]..complete.len()).step_by(97).chain(ends.clone()) {
        std::fs::write(&truncated, &complete[..length]).unwrap();
        let (journal, recovered) = Journal::resume(&truncated).unwrap();
        let expected: Vec<i64> = (0..2).filter(|i| ends[*i as usize + 1] <= length).collect();
        assert_eq!(recovered.finished.iter().copied().collect::<Vec<_>>(), expected, "truncated to {length}");
        journal.append_finished_blocking(&sample::trajectory(9, 1)).unwrap();
        journal.close_blocking().unwrap();
        let rescanned = scan(&truncated).unwrap();
        assert!(
            rescanned.damaged.is_empty() && rescanned.torn_tail.is_none(),
            "truncated to {length}: {rescanned:?}"
        );
        assert_eq!(rescanned.finished.len(), expected.len() + 1);
    }
}

#[test]
fn trailing_zeros_are_truncated() {
    let (_directory, path) = temporary_path();
    write_journal(&path, &[0]);
    File::options().append(true).open(&path).unwrap().write_all(&[0; 5000]).unwrap();
    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!((recovered.truncated_bytes, recovered.finished.len()), (5000, 1));
    journal.close_blocking().unwrap();
}

#[test]
fn damaged_line_does_not_hide_later_records() {
    let (_directory, path) = temporary_path();
    write_journal(&path, &[0, 1, 2]);
    let mut bytes = std::fs::read(&path).unwrap();
    let target = scan(&path).unwrap().finished[&1].clone();
    bytes[target.offset as usize + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!(recovered.finished.iter().copied().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(recovered.truncated_bytes, 0);
    assert_eq!(recovered.scan.damaged.len(), 1);
    assert_eq!((recovered.scan.damaged[0].line, recovered.scan.damaged[0].offset), (3, target.offset));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file is unchanged");
    journal.close_blocking().unwrap();
}

#[test]
fn unfinished_journal_is_not_overwritten() {
    let (_directory, path) = temporary_path();
    write_journal(&path, &[0, 3]);
    let before = std::fs::read(&path).unwrap();
    let error = Journal::create(&path, &run(10)).unwrap_err();
    assert!(
        matches!(&error, JournalError::Unfinished { finished: 2, tasks: 10, path: named } if *named == path)
    );
    assert!(error.to_string().contains("iteration0.checkpoint"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn journal_set_aside_keeps_its_content() {
    let (_directory, path) = temporary_path();
    write_journal(&path, &[0]);
    let renamed = set_aside(&path).unwrap();
    assert!(!path.exists());
    assert_eq!(scan(&renamed).unwrap().finished.len(), 1);
    write_journal(&path, &[1]);
    assert_ne!(set_aside(&path).unwrap(), renamed, "names of the same second do not collide");
}

#[test]
fn journal_without_complete_line_is_overwritten() {
    for content in [&b""[..], b"0badc0de {\"run\":{\"for"] {
        let (_directory, path) = temporary_path();
        std::fs::write(&path, content).unwrap();
        assert!(matches!(Journal::resume(&path), Err(JournalError::NoRun { .. })));
        write_journal(&path, &[1]);
        assert_eq!(scan(&path).unwrap().finished.len(), 1);
    }
}

#[test]
fn journal_of_later_format_is_refused() {
    let (_directory, path) = temporary_path();
    let line = frame::encode(&serde_json::json!({"run": {"format": 99}})).unwrap();
    std::fs::write(&path, &line).unwrap();
    assert!(matches!(Journal::resume(&path), Err(JournalError::NoRun { .. })));
    assert!(matches!(Journal::create(&path, &run(1)), Err(JournalError::Unfinished { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), line);
}

#[test]
fn second_writer_is_refused() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    assert!(matches!(Journal::resume(&path), Err(JournalError::Locked { .. })));
    assert!(matches!(Journal::create(&path, &run(10)), Err(JournalError::Locked { .. })));
    assert!(matches!(set_aside(&path), Err(JournalError::Locked { .. })));
    journal.close_blocking().unwrap();
    Journal::resume(&path).unwrap().0.close_blocking().unwrap();
}

#[test]
fn later_record_replaces_the_first() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(2)).unwrap();
    let mut trajectory = sample::trajectory(1, 2);
    journal.append_finished_blocking(&trajectory).unwrap();
    trajectory.steps[1].reward.reward = 1;
    journal.append_finished_blocking(&trajectory).unwrap();
    journal.close_blocking().unwrap();
    let found = scan(&path).unwrap();
    assert_eq!((found.finished.len(), found.repeated.clone()), (1, vec![1]));
    assert!(!found.is_complete());
    let mut reader = JournalReader::open(&path).unwrap();
    assert_eq!(read_finished(&mut reader, &found.finished[&1]).unwrap(), trajectory);
}

#[tokio::test]
async fn unfinished_episode_is_readable() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let trajectory = sample::trajectory(5, 3);
    journal.append_episode(&trajectory.task, 0, None).await.unwrap();
    journal.append_step(5, 0, 0, &trajectory.steps[0]).await.unwrap();
    journal.append_episode(&trajectory.task, 1, None).await.unwrap();
    for (number, step) in trajectory.steps.iter().enumerate().take(2) {
        journal.append_step(5, 1, number as u32, step).await.unwrap();
    }
    journal.append_finished(&sample::trajectory(6, 1)).await.unwrap();
    journal.close().await.unwrap();
    let found = scan(&path).unwrap();
    assert_eq!(found.unfinished.get(&5), Some(&UnfinishedEpisode { attempt: 1, steps: 2 }));
    let started: Vec<_> = found
        .unfinished_summaries
        .values()
        .map(|summary| (summary.trajectory_index, summary.steps))
        .collect();
    assert_eq!(started, [(5, 2)]);
    assert_eq!(
        (&found.unfinished_summaries[&5].task_name, &found.unfinished_summaries[&5].website),
        (&trajectory.task.task_name, &trajectory.task.website)
    );
    let partial = read_unfinished(&path, 5).unwrap().unwrap();
    assert_eq!((&partial.task, &partial.steps[..]), (&trajectory.task, &trajectory.steps[..2]));
    assert_eq!(read_unfinished(&path, 6).unwrap(), None, "trajectory 6 is finished");
    let records: Vec<Record> =
        JournalReader::open(&path).unwrap().map(|entry| entry.unwrap().record.unwrap()).collect();
    assert!(matches!(&records[5], Record::Step(step) if step.step == trajectory.steps[1]), "{records:?}");
}

/// A disk whose syncs wait for a result from the test.
struct ScriptedDisk {
    content: Arc<Mutex<Vec<u8>>>,
    syncs: Sender<usize>,
    results: Receiver<io::Result<()>>,
    capacity: usize,
}

impl Disk for ScriptedDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.content.lock().unwrap();
        let fits = bytes.len().min(self.capacity - content.len());
        content.extend_from_slice(&bytes[..fits]);
        if fits == bytes.len() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let lines = self.content.lock().unwrap().split(|byte| *byte == b'\n').count() - 1;
        self.syncs.send(lines).unwrap();
        self.results.recv().unwrap()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.content.lock().unwrap().truncate(length as usize);
        Ok(())
    }
}

type ScriptedJournal = (Journal, Arc<Mutex<Vec<u8>>>, Receiver<usize>, Sender<io::Result<()>>);

/// A journal on a [`ScriptedDisk`], its content, the number of lines at each sync, and the sender of sync results.
fn scripted(capacity: usize) -> ScriptedJournal {
    let content = Arc::new(Mutex::new(Vec::new()));
    let (syncs, synced) = channel();
    let (result, results) = channel();
    let disk = ScriptedDisk { content: Arc::clone(&content), syncs, results, capacity };
    (Journal::start(Path::new("scripted"), disk, 0, FORMAT).unwrap(), content, synced, result)
}

#[tokio::test]
async fn waiting_records_share_one_sync() {
    let (journal, _, synced, result) = scripted(usize::MAX);
    let append = |index| {
        let journal = journal.clone();
        tokio::spawn(async move { journal.append_finished(&sample::trajectory(index, 1)).await })
    };
    let first = append(0);
    tokio::task::yield_now().await;
    assert_eq!(synced.recv().unwrap(), 1, "the first record is being synced");
    let others: Vec<_> = (1..101).map(append).collect();
    // Polling each task once puts its record into the queue.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished(), "not durable yet");
    result.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(synced.recv().unwrap(), 101, "the hundred waiting records share one sync");
    assert!(others.iter().all(|other| !other.is_finished()));
    result.send(Ok(())).unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
}

#[test]
fn no_write_succeeds_after_a_failed_sync() {
    let (journal, _, synced, result) = scripted(usize::MAX);
    result.send(Err(io::Error::other("bad disk"))).unwrap();
    let trajectory = sample::trajectory(0, 1);
    let error = journal.append_finished_blocking(&trajectory).unwrap_err();
    assert!(error.to_string().contains("bad disk"), "{error}");
    result.send(Ok(())).unwrap();
    assert!(journal.append_finished_blocking(&trajectory).is_err());
    assert_eq!(synced.try_iter().count(), 1, "the second record was not synced");
}

#[tokio::test]
async fn failed_write_is_truncated_and_a_smaller_one_succeeds() {
    let small = sample::trajectory(0, 1);
    let capacity = 2 * frame::encode(&small).unwrap().len() + 5000;
    let (journal, content, _synced, result) = scripted(capacity);
    (0..3).for_each(|_| result.send(Ok(())).unwrap());
    journal.append_finished(&small).await.unwrap();
    let before = content.lock().unwrap().clone();
    let error = journal.append_finished(&sample::trajectory(1, 60)).await.unwrap_err();
    assert!(error.is_out_of_space(), "{error}");
    assert_eq!(*content.lock().unwrap(), before);
    let step = &small.steps[0];
    assert!(journal.append_step(2, 0, 0, step).await.unwrap_err().is_out_of_space(), "steps fail too");
    journal.append_finished(&small).await.unwrap();
    journal.append_step(2, 0, 0, step).await.unwrap();
}

#[tokio::test]
async fn screenshot_folders_of_interrupted_attempts_are_found() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let (mut finished, interrupted) = (sample::trajectory(1, 2), sample::trajectory(2, 1));
    for step in &mut finished.steps {
        step.observation.image_path = "/runs/first/images/task_0001_b/step_000.png".into();
    }
    for (task, attempt, images) in [
        (&finished.task, 0, "task_0001_a"),
        (&finished.task, 1, "task_0001_b"),
        (&interrupted.task, 0, "task_0002_c"),
        (&interrupted.task, 1, "../elsewhere"),
    ] {
        journal.append_episode(task, attempt, Some(images)).await.unwrap();
        let written = scan(&path).unwrap();
        assert!(written.images.contains(images), "the name is in the file before the folder exists");
    }
    journal.append_finished(&finished).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(scan(&path).unwrap().abandoned_images(), ["task_0001_a", "task_0002_c"]);
}

/// Concurrent writers finish in any order, but positions are reported in the order of the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_positions_are_reported_in_file_order() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let mut reported = journal.follow_finished();
    let write = |index| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let trajectory = sample::trajectory(index, 2);
            journal.append_step(index, 0, 0, &trajectory.steps[0]).await.unwrap();
            journal.append_finished(&trajectory).await.unwrap();
        })
    };
    let writers: Vec<_> = (0..50).map(write).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    journal.append_finished(&sample::trajectory(7, 1)).await.unwrap();
    journal.close().await.unwrap();
    let mut positions = Vec::new();
    while let Some(position) = reported.recv().await {
        positions.push(position);
    }
    assert_eq!(positions, finished_positions(&path).unwrap());
    assert_eq!((positions.len(), positions[50].trajectory_index), (51, 7));
    let mut reader = JournalReader::open(&path).unwrap();
    for position in &positions {
        let trajectory = read_finished_at(&mut reader, position.offset).unwrap();
        assert_eq!(trajectory.task.trajectory_index, position.trajectory_index);
    }
}
