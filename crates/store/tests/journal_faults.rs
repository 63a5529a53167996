//! The journal under a real file size limit and a real `kill -9`. The test program starts itself as the process that
//! hits the limit or is killed.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/sample.rs"]
mod sample;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use store::journal::{self, Journal};
use store::{RunMetadata, RunRecord, Split};

const JOURNAL_VARIABLE: &str = "WEBGYM_TEST_JOURNAL";

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

/// The child process: appends trajectories until it is stopped and prints the indices of the durable ones.
#[test]
fn child_appends_until_stopped() {
    let Ok(path) = std::env::var(JOURNAL_VARIABLE) else { return };
    let path = PathBuf::from(path);
    let (journal, finished) = if path.exists() {
        let (journal, recovered) = Journal::resume(&path).unwrap();
        (journal, recovered.finished)
    } else {
        (Journal::create(&path, &run()).unwrap(), BTreeSet::new())
    };
    let mut out = std::io::stdout();
    for index in (0..100_000).filter(|index| !finished.contains(index)) {
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
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env(JOURNAL_VARIABLE, path);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The index in a line of the child's output.
fn durable_index(line: &str) -> Option<i64> {
    let (_, number) = line.split_once("durable ")?;
    number.trim().parse().ok()
}

#[test]
fn full_disk_is_reported_and_journal_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    // With SIGXFSZ ignored, a write beyond the limit fails in the middle, as on a full disk.
    let output = child(&path, "trap '' XFSZ; ulimit -f 256;").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let reported: BTreeSet<i64> = text.lines().filter_map(durable_index).collect();
    assert!(text.contains("stopped true no space left to write"), "{text}");
    assert!(!reported.is_empty());

    let (journal, recovered) = Journal::resume(&path).unwrap();
    assert_eq!(recovered.finished, reported, "exactly the durable trajectories");
    assert_eq!(recovered.truncated_bytes, 0, "the partial write was undone immediately");
    journal.append_finished_blocking(&sample::trajectory(99_999, 5)).unwrap();
    journal.close_blocking().unwrap();
}

#[test]
fn durable_trajectories_survive_kills() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut reported = BTreeSet::new();
    for round in 0..20 {
        let mut process = child(&path, "").spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            let line = line.unwrap();
            if let Some(index) = durable_index(&line) {
                assert!(reported.insert(index), "{index} was collected twice");
                seen += 1;
            }
            if seen == 1 + round % 7 {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        let found = journal::scan(&path).unwrap();
        let finished: BTreeSet<i64> = found.finished.keys().copied().collect();
        assert!(reported.is_subset(&finished), "round {round}: a durable trajectory is missing");
        assert!(found.repeated.is_empty() && found.damaged.is_empty(), "round {round}: {found:?}");
        // Trajectories that were durable but not yet reported are not collected again.
        reported = finished;
    }
}
