//! The journal against a real full file system limit and a real `kill -9`: the test program starts itself again as
//! the process that suffers.

#![allow(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

#[path = "support/sample.rs"]
mod sample;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use store::journal::{self, Journal};
use store::{RunMetadata, RunRecord, Split};

const JOURNAL: &str = "WEBGYM_TEST_JOURNAL";

fn run() -> RunRecord {
    RunRecord {
        split: Split::Train,
        iteration: 0,
        rank: None,
        seed: 1,
        config_digest: String::new(),
        tasks: 100_000,
        metadata: RunMetadata::default(),
    }
}

/// Appends trajectories until it is stopped, telling on standard output which ones it was told are durable.
#[test]
fn child_appends_until_stopped() {
    let Ok(path) = std::env::var(JOURNAL) else { return };
    let path = PathBuf::from(path);
    let (journal, done) = if path.exists() {
        let (journal, recovered) = Journal::resume(&path).unwrap();
        (journal, recovered.finished)
    } else {
        (Journal::create(&path, &run()).unwrap(), BTreeSet::new())
    };
    let mut out = std::io::stdout();
    for index in (0..100_000).filter(|index| !done.contains(index)) {
        match journal.append_finished_blocking(&sample::trajectory(index, 5)) {
            Ok(()) => writeln!(out, "durable {index}").unwrap(),
            Err(error) => {
                writeln!(out, "stopped {} {error}", error.is_out_of_space()).unwrap();
                return;
            }
        }
        out.flush().unwrap();
    }
}

fn child(path: &Path, prelude: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{prelude} exec \"$0\" --exact child_appends_until_stopped --nocapture");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env(JOURNAL, path);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn durable(line: &str) -> Option<i64> {
    let (_, number) = line.split_once("durable ")?;
    number.trim().parse().ok()
}

#[test]
fn a_full_disk_is_said_and_leaves_a_journal_that_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    // With the signal ignored, writing past the limit fails half-way, just as a full disk does.
    let output = child(&path, "trap '' XFSZ; ulimit -f 256;").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told: BTreeSet<i64> = text.lines().filter_map(durable).collect();
    assert!(text.contains("stopped true no space left to write"), "{text}");
    assert!(!told.is_empty());

    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!(recovered.finished, told, "all that were durable, and no other");
    assert_eq!(recovered.cut, 0, "the piece that did not fit was taken back at once");
    journal.append_finished_blocking(&sample::trajectory(99_999, 5)).unwrap();
    journal.close_blocking().unwrap();
}

#[test]
fn killed_at_any_moment_everything_durable_is_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut told = BTreeSet::new();
    for round in 0..20 {
        let mut process = child(&path, "").spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            let line = line.unwrap();
            if let Some(index) = durable(&line) {
                assert!(told.insert(index), "{index} was collected twice");
                seen += 1;
            }
            if seen == 1 + round % 7 {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        let found = journal::scan(&path).unwrap();
        let finished: BTreeSet<i64> = found.finished.keys().copied().collect();
        assert!(told.is_subset(&finished), "round {round}: a durable trajectory is gone");
        assert!(found.repeated.is_empty() && found.damaged.is_empty(), "round {round}: {found:?}");
        // What was durable but not told yet need not be collected again.
        told = finished;
    }
}
