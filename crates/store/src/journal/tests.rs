use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::commit::Disk;
use super::*;
use crate::layout::Split;
use crate::run::{RunMetadata, RunRecord};
use crate::sample;

fn run(tasks: u64) -> RunRecord {
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

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train_trajectories.pt.iteration0.checkpoint");
    (directory, path)
}

fn write_some(path: &Path, indices: &[i64]) {
    let journal = Journal::create(path, &run(10)).unwrap();
    for index in indices {
        journal.append_finished_blocking(&sample::trajectory(*index, 3)).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn finished_trajectories_come_back_whole() {
    let (_guard, path) = fresh();
    write_some(&path, &[4, 1]);
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
fn a_cut_at_every_byte_keeps_everything_before_it_and_resumes() {
    let (guard, path) = fresh();
    write_some(&path, &[0, 1]);
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    let cut_path = guard.path().join("cut");
    for length in (ends[0]..whole.len()).step_by(97).chain(ends.clone()) {
        std::fs::write(&cut_path, &whole[..length]).unwrap();
        let (journal, recovered) = Journal::resume(&cut_path).unwrap();
        let expected: Vec<i64> = (0..2).filter(|i| ends[*i as usize + 1] <= length).collect();
        assert_eq!(recovered.finished.iter().copied().collect::<Vec<_>>(), expected, "cut at {length}");
        journal.append_finished_blocking(&sample::trajectory(9, 1)).unwrap();
        journal.close_blocking().unwrap();
        let again = scan(&cut_path).unwrap();
        assert!(again.damaged.is_empty() && again.torn_tail.is_none(), "cut at {length}: {again:?}");
        assert_eq!(again.finished.len(), expected.len() + 1);
    }
}

#[test]
fn zeros_after_a_power_cut_are_a_torn_tail() {
    let (_guard, path) = fresh();
    write_some(&path, &[0]);
    File::options().append(true).open(&path).unwrap().write_all(&[0; 5000]).unwrap();
    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!((recovered.cut, recovered.finished.len()), (5000, 1));
    journal.close_blocking().unwrap();
}

#[test]
fn a_damaged_line_in_the_middle_is_reported_and_hides_nothing_after_it() {
    let (_guard, path) = fresh();
    write_some(&path, &[0, 1, 2]);
    let mut bytes = std::fs::read(&path).unwrap();
    let target = scan(&path).unwrap().finished[&1].clone();
    bytes[target.offset as usize + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!(recovered.finished.iter().copied().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(recovered.cut, 0);
    assert_eq!(recovered.scan.damaged.len(), 1);
    assert_eq!((recovered.scan.damaged[0].line, recovered.scan.damaged[0].offset), (3, target.offset));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing is taken away");
    journal.close_blocking().unwrap();
}

#[test]
fn starting_afresh_over_an_unfinished_journal_is_refused_by_name_and_deletes_nothing() {
    let (_guard, path) = fresh();
    write_some(&path, &[0, 3]);
    let before = std::fs::read(&path).unwrap();
    let error = Journal::create(&path, &run(10)).unwrap_err();
    assert!(
        matches!(&error, JournalError::Unfinished { finished: 2, tasks: 10, path: named } if *named == path)
    );
    assert!(error.to_string().contains("iteration0.checkpoint"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_journal_set_aside_keeps_its_content_under_another_name() {
    let (_guard, path) = fresh();
    write_some(&path, &[0]);
    let aside = set_aside(&path).unwrap();
    assert!(!path.exists());
    assert_eq!(scan(&aside).unwrap().finished.len(), 1);
    write_some(&path, &[1]);
    assert_ne!(set_aside(&path).unwrap(), aside, "two in the same second do not collide");
}

#[test]
fn a_run_killed_before_its_first_line_was_whole_leaves_nothing_in_the_way() {
    for content in [&b""[..], b"0badc0de {\"run\":{\"for"] {
        let (_guard, path) = fresh();
        std::fs::write(&path, content).unwrap();
        assert!(matches!(Journal::resume(&path), Err(JournalError::NoRun { .. })));
        write_some(&path, &[1]);
        assert_eq!(scan(&path).unwrap().finished.len(), 1);
    }
}

#[test]
fn a_stranger_s_file_is_neither_resumed_nor_overwritten() {
    let (_guard, path) = fresh();
    let line = frame::encode(&serde_json::json!({"run": {"format": 99}})).unwrap();
    std::fs::write(&path, &line).unwrap();
    assert!(matches!(Journal::resume(&path), Err(JournalError::NoRun { .. })));
    assert!(matches!(Journal::create(&path, &run(1)), Err(JournalError::Unfinished { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), line);
}

#[test]
fn two_writers_of_one_journal_are_refused() {
    let (_guard, path) = fresh();
    let journal = Journal::create(&path, &run(10)).unwrap();
    assert!(matches!(Journal::resume(&path), Err(JournalError::Locked { .. })));
    assert!(matches!(Journal::create(&path, &run(10)), Err(JournalError::Locked { .. })));
    assert!(matches!(set_aside(&path), Err(JournalError::Locked { .. })));
    journal.close_blocking().unwrap();
    Journal::resume(&path).unwrap().0.close_blocking().unwrap();
}

#[test]
fn the_second_judgement_of_a_trajectory_replaces_the_first() {
    let (_guard, path) = fresh();
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
async fn steps_of_running_episodes_survive_for_inspection() {
    let (_guard, path) = fresh();
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
    let begun: Vec<_> = found.begun.values().map(|one| (one.trajectory_index, one.steps)).collect();
    assert_eq!(begun, [(5, 2)]);
    assert_eq!(
        (&found.begun[&5].task_name, &found.begun[&5].website),
        (&trajectory.task.task_name, &trajectory.task.website)
    );
    let partial = read_unfinished(&path, 5).unwrap().unwrap();
    assert_eq!((&partial.task, &partial.steps[..]), (&trajectory.task, &trajectory.steps[..2]));
    assert_eq!(read_unfinished(&path, 6).unwrap(), None, "that one is finished");
    let records: Vec<Record> =
        JournalReader::open(&path).unwrap().map(|entry| entry.unwrap().record.unwrap()).collect();
    assert!(matches!(&records[5], Record::Step(step) if step.step == trajectory.steps[1]), "{records:?}");
}

/// A disk whose syncs wait for the test and can be told to fail.
struct ScriptedDisk {
    content: Arc<Mutex<Vec<u8>>>,
    started: Sender<usize>,
    answers: Receiver<io::Result<()>>,
    room: usize,
}

impl Disk for ScriptedDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.content.lock().unwrap();
        let fits = bytes.len().min(self.room - content.len());
        content.extend_from_slice(&bytes[..fits]);
        if fits == bytes.len() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let lines = self.content.lock().unwrap().split(|byte| *byte == b'\n').count() - 1;
        self.started.send(lines).unwrap();
        self.answers.recv().unwrap()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.content.lock().unwrap().truncate(length as usize);
        Ok(())
    }
}

type Script = (Journal, Arc<Mutex<Vec<u8>>>, Receiver<usize>, Sender<io::Result<()>>);

fn scripted(room: usize) -> Script {
    let content = Arc::new(Mutex::new(Vec::new()));
    let (started, syncs) = channel();
    let (answer, answers) = channel();
    let disk = ScriptedDisk { content: Arc::clone(&content), started, answers, room };
    (Journal::start(Path::new("scripted"), disk, 0).unwrap(), content, syncs, answer)
}

#[tokio::test]
async fn a_finish_resolves_only_after_its_sync_and_one_sync_serves_all_who_wait() {
    let (journal, _, syncs, answer) = scripted(usize::MAX);
    let append = |index| {
        let journal = journal.clone();
        tokio::spawn(async move { journal.append_finished(&sample::trajectory(index, 1)).await })
    };
    let first = append(0);
    tokio::task::yield_now().await;
    assert_eq!(syncs.recv().unwrap(), 1, "the first one is being synced");
    let others: Vec<_> = (1..101).map(append).collect();
    // Every one of them is polled once, which puts its record into the queue.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished(), "not durable yet");
    answer.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(syncs.recv().unwrap(), 101, "a hundred waited and share one sync");
    assert!(others.iter().all(|other| !other.is_finished()));
    answer.send(Ok(())).unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
}

#[test]
fn a_failed_sync_is_never_followed_by_a_success() {
    let (journal, _, syncs, answer) = scripted(usize::MAX);
    answer.send(Err(io::Error::other("bad disk"))).unwrap();
    let trajectory = sample::trajectory(0, 1);
    let error = journal.append_finished_blocking(&trajectory).unwrap_err();
    assert!(error.to_string().contains("bad disk"), "{error}");
    answer.send(Ok(())).unwrap();
    assert!(journal.append_finished_blocking(&trajectory).is_err());
    assert_eq!(syncs.try_iter().count(), 1, "the second did not even try");
}

#[tokio::test]
async fn a_write_that_does_not_fit_is_cut_away_and_a_smaller_one_goes_on() {
    let small = sample::trajectory(0, 1);
    let room = 2 * frame::encode(&small).unwrap().len() + 5000;
    let (journal, content, _syncs, answer) = scripted(room);
    (0..3).for_each(|_| answer.send(Ok(())).unwrap());
    journal.append_finished(&small).await.unwrap();
    let good = content.lock().unwrap().clone();
    let error = journal.append_finished(&sample::trajectory(1, 60)).await.unwrap_err();
    assert!(error.is_out_of_space(), "{error}");
    assert_eq!(*content.lock().unwrap(), good);
    let step = &small.steps[0];
    assert!(journal.append_step(2, 0, 0, step).await.unwrap_err().is_out_of_space(), "steps learn of it too");
    journal.append_finished(&small).await.unwrap();
    journal.append_step(2, 0, 0, step).await.unwrap();
}

#[tokio::test]
async fn pictures_of_attempts_that_were_cut_short_are_told_from_those_of_finished_ones() {
    let (_guard, path) = fresh();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let (mut finished, lost) = (sample::trajectory(1, 2), sample::trajectory(2, 1));
    for step in &mut finished.steps {
        step.observation.image_path = "/runs/first/images/task_0001_b/step_000.png".into();
    }
    for (task, attempt, images) in [
        (&finished.task, 0, "task_0001_a"),
        (&finished.task, 1, "task_0001_b"),
        (&lost.task, 0, "task_0002_c"),
        (&lost.task, 1, "../elsewhere"),
    ] {
        journal.append_episode(task, attempt, Some(images)).await.unwrap();
        let written = scan(&path).unwrap();
        assert!(written.images.contains(images), "it is in the file before its folder can be made");
    }
    journal.append_finished(&finished).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(scan(&path).unwrap().abandoned_images(), ["task_0001_a", "task_0002_c"]);
}
