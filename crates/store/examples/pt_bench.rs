//! Measures time and peak memory for writing a journal, converting it to a `.pt` file and reading that file:
//! `cargo run --release -p webgym-store --example pt_bench [trajectories] [steps] [prompt bytes]`.

#![allow(clippy::unwrap_used, reason = "a failure in a benchmark should panic")]

#[path = "../tests/support/sample.rs"]
mod sample;

use std::path::Path;
use std::time::Instant;

use proto::trajectory::Trajectory;
use store::durable::Existing;
use store::pt::{self, PtFile};
use store::{Journal, RunMetadata, RunRecord, Split};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let trajectories = arguments.next().unwrap_or(10_000);
    let steps = arguments.next().unwrap_or(13);
    let prompt = arguments.next().unwrap_or(12_000);
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("train_trajectories.pt.iteration0.checkpoint");
    let file = directory.path().join("train_trajectories.pt.iteration0");
    println!("{trajectories} trajectories of {steps} steps with prompts of {prompt} bytes");

    let start = Instant::now();
    write_journal(&journal, trajectories, steps, prompt);
    report("journal, 64 writers, each record synced", start, &journal);
    println!("  peak memory {} MiB", peak_memory());
    reset_peak_memory();

    let start = Instant::now();
    pt::write_from_journal(&journal, &file, Existing::Refuse).unwrap();
    report("journal to .pt", start, &file);
    println!("  peak memory {} MiB", peak_memory());
    reset_peak_memory();

    let start = Instant::now();
    let count = PtFile::open(&file).unwrap().trajectories().unwrap().map(Result::unwrap).count();
    assert_eq!(count, trajectories);
    report(".pt read in order", start, &file);
    println!("  peak memory {} MiB", peak_memory());

    let start = Instant::now();
    let opened = PtFile::open(&file).unwrap();
    let middle = opened.read(trajectories / 2).unwrap();
    println!(
        "open, list {} trajectories and read one of {} steps: {:?}",
        trajectories,
        middle.steps.len(),
        start.elapsed()
    );
}

fn write_journal(path: &Path, trajectories: usize, steps: usize, prompt: usize) {
    let run = RunRecord {
        split: Split::Train,
        iteration: 0,
        rank: None,
        seed: 0,
        config_digest: String::new(),
        tasks: trajectories as u64,
        metadata: RunMetadata::default(),
    };
    let journal = Journal::create(path, &run).unwrap();
    let writers = 64;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let journal = &journal;
            scope.spawn(move || {
                for index in (writer..trajectories).step_by(writers) {
                    journal.append_finished_blocking(&large_trajectory(index, steps, prompt)).unwrap();
                }
            });
        }
    });
    journal.close_blocking().unwrap();
}

fn large_trajectory(index: usize, steps: usize, prompt: usize) -> Trajectory {
    let mut trajectory = sample::trajectory(i64::try_from(index).unwrap(), steps);
    for step in &mut trajectory.steps {
        let text = &mut step.response.raw_prompt;
        while text.len() < prompt {
            text.push_str("\"quoted\" words of a page, 価格 12.99 €, and more of them\n");
        }
    }
    trajectory
}

fn report(label: &str, start: Instant, path: &Path) {
    let (time, size) = (start.elapsed(), path.metadata().unwrap().len());
    let rate = size as f64 / 1e6 / time.as_secs_f64();
    println!("{label}: {:.2} s, {} MB, {rate:.0} MB/s", time.as_secs_f64(), size / 1_000_000);
}

/// Peak resident memory of this process in MiB, from `/proc`.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn reset_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
