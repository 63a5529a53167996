//! A recorder that is killed: everything that it had confirmed is in the archive.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use replay::{Recorder, RecorderOptions};
use support::{get, open};

const DIRECTORY: &str = "WEBGYM_TEST_RECORD_TO";
const LINE: &str = "recorded ";

/// Not a test by itself: the process that is killed. It says after each exchange that this was recorded.
#[test]
fn recorder_process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let recorder = Recorder::open(Path::new(&directory), RecorderOptions::default()).unwrap();
    for index in 0_u32.. {
        let body = format!("{index} ").repeat(2000);
        recorder
            .append(get(i64::from(index), &format!("http://a.test/{index}"), "text/plain", &body))
            .unwrap();
        // Not println, which the test harness captures.
        writeln!(std::io::stdout(), "\n{LINE}{index}").unwrap();
    }
}

#[test]
fn killed_recorder_loses_nothing_that_it_confirmed() {
    for round in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "recorder_process", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut confirmed = 0;
        while confirmed < 20 + round * 7 {
            let line = lines.next().expect("the process records until it is killed").unwrap();
            confirmed = line.strip_prefix(LINE).map_or(confirmed, |number| number.parse().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            confirmed = line.strip_prefix(LINE).and_then(|number| number.parse().ok()).unwrap_or(confirmed);
        }
        let recorder = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
        recorder.append(get(1 << 40, "http://a.test/after", "text/plain", "after")).unwrap();
        recorder.finish().unwrap();
        let archive = open(directory.path());
        assert!(archive.problems().is_empty(), "{:?}", archive.problems());
        let urls: Vec<&str> = archive.exchanges().iter().map(|stored| stored.request.url.as_str()).collect();
        for (index, url) in urls[..=confirmed].iter().enumerate() {
            assert_eq!(*url, format!("http://a.test/{index}"));
        }
        assert_eq!(urls.last(), Some(&"http://a.test/after"));
        // At most the one that was being written beside those that were confirmed.
        assert!(urls.len() <= confirmed + 3, "{} of {confirmed}", urls.len());
    }
}
