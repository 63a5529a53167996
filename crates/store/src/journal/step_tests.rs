//! How steps and prompts are written and read, in both formats.

use std::time::Duration;

use proto::trajectory::{Step, Trajectory};

use super::tests::{run, temporary_path};
use super::*;
use crate::prompts::Prompts;
use crate::sample;

/// A trajectory whose prompts repeat the ones before them.
fn with_long_prompts(index: i64, steps: usize) -> Trajectory {
    let mut trajectory = sample::trajectory(index, steps);
    let mut prompt = format!("[{{\"role\":\"system\",\"content\":\"{}\"}}", "Be careful. ".repeat(500));
    for (number, step) in trajectory.steps.iter_mut().enumerate() {
        prompt = format!("{prompt},{{\"role\":\"user\",\"content\":\"step {number}\"}}");
        step.response.raw_prompt = format!("{prompt}]");
    }
    trajectory
}

#[test]
fn repeated_prompts_are_written_once() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let trajectory = with_long_prompts(0, 20);
    journal.append_finished_blocking(&trajectory).unwrap();
    journal.close_blocking().unwrap();
    let found = scan(&path).unwrap();
    let read = read_finished(&mut JournalReader::open(&path).unwrap(), &found.finished[&0]).unwrap();
    assert_eq!(read, trajectory);
    assert!(found.file_length < 30_000, "{} bytes", found.file_length);
}

#[tokio::test]
async fn unfinished_episode_has_its_prompts() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let trajectory = with_long_prompts(3, 4);
    journal.append_episode(&trajectory.task, 0, None).await.unwrap();
    let mut prompts = Prompts::default();
    for step in &trajectory.steps {
        let (mut step, known_parts) = (step.clone(), prompts.parts());
        prompts.push(&std::mem::take(&mut step.response.raw_prompt));
        journal.append_step_with(3, 0, &step, &prompts, known_parts).await.unwrap();
    }
    journal.close().await.unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 15_000, "{length} bytes");
    assert_eq!(read_unfinished(&path, 3).unwrap().unwrap().steps, trajectory.steps);
    // Without the first step, whose parts the others repeat, prompts are unknown and the steps are not.
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> =
        text.split_inclusive('\n').filter(|line| !line.contains("\"step_index\":0,")).collect();
    std::fs::write(&path, kept.concat()).unwrap();
    let steps = read_unfinished(&path, 3).unwrap().unwrap().steps;
    assert_eq!(steps.len(), 3);
    assert!(steps.iter().all(|step| step.response.raw_prompt.is_empty()));
}

#[tokio::test]
async fn journal_of_the_first_format_is_continued_in_it() {
    let (_directory, path) = temporary_path();
    let header = serde_json::json!({"run": super::record::RunHeader { format: 1, run: run(10) }});
    let old = serde_json::json!({"finished": {
        "summary": crate::Summary::of(&with_long_prompts(0, 2)), "trajectory": with_long_prompts(0, 2),
    }});
    std::fs::write(&path, [frame::encode(&header).unwrap(), frame::encode(&old).unwrap()].concat()).unwrap();
    let (journal, _) = Journal::resume(&path).unwrap();
    let trajectory = with_long_prompts(1, 2);
    let mut steps = trajectory.steps.clone();
    let prompts = Prompts::take_from(&mut steps);
    journal.append_episode(&with_long_prompts(2, 1).task, 0, None).await.unwrap();
    let mut first = Prompts::default();
    first.push(&with_long_prompts(2, 1).steps[0].response.raw_prompt);
    journal.append_step_with(2, 0, &Step { ..steps[0].clone() }, &first, 0).await.unwrap();
    journal.append_finished_with(&Trajectory { steps, ..trajectory.clone() }, &prompts).await.unwrap();
    journal.close().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("\"prompts\"") && !text.contains("\"prompt\""), "no record of the second format");
    let found = scan(&path).unwrap();
    let mut reader = JournalReader::open(&path).unwrap();
    for index in 0..2 {
        assert_eq!(read_finished(&mut reader, &found.finished[&index]).unwrap(), with_long_prompts(index, 2));
    }
    let unfinished = read_unfinished(&path, 2).unwrap().unwrap();
    assert_eq!(unfinished.steps[0].response.raw_prompt, first.get(0).unwrap());
}

#[tokio::test]
async fn steps_are_written_before_later_records_and_without_them() {
    let (_directory, path) = temporary_path();
    let journal = Journal::create(&path, &run(10)).unwrap();
    let trajectory = sample::trajectory(3, 3);
    let kinds = || {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| line[10..].split(['"', ':']).nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    journal.append_episode(&trajectory.task, 0, None).await.unwrap();
    journal.append_step(3, 0, 0, &trajectory.steps[0]).await.unwrap();
    for _ in 0..1000 {
        if kinds().len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(kinds(), ["run", "episode", "step"], "a step after a pause is written at once");
    journal.append_step(3, 0, 1, &trajectory.steps[1]).await.unwrap();
    journal.append_step(3, 0, 2, &trajectory.steps[2]).await.unwrap();
    let mut finished = journal.follow_finished();
    journal.append_finished(&trajectory).await.unwrap();
    assert_eq!(kinds(), ["run", "episode", "step", "step", "step", "finished"]);
    let position = finished.recv().await.unwrap();
    let mut reader = JournalReader::open(&path).unwrap();
    assert_eq!(read_finished_at(&mut reader, position.offset).unwrap(), trajectory);
}
