//! What the command says to people who got something slightly wrong, or who only look.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
    time::Duration,
};

use rustix::process::Signal;
use testkit::{descendants, signal};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");
const SECONDS: Duration = Duration::from_secs(60);

fn webgym(words: &[&str]) -> Command {
    let mut command = Command::new(WEBGYM);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn refused(words: &[&str]) -> String {
    let output = tokio::time::timeout(SECONDS, webgym(words).output()).await.expect("it ends").unwrap();
    assert!(!output.status.success(), "{words:?} was taken");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_wrong_argument_is_answered_with_what_is_wanted() {
    for (words, wanted) in [
        (&["serve", "two"][..], "give a whole number, for example 8"),
        (&["node", "1.5"], "give a whole number"),
        (
            &["rollout", "save_path=a", "data_path=b", "env_config.server_size=two"],
            "a whole number, 0 or more, is wanted",
        ),
        (&["rollout", "--config-name", "nope"], "there are default, rollout, rollout_train, rollout_test"),
        (&["monitor", "--url", "127.0.0.1:5000"], "expected something like http://HOST:5000"),
        (&["trajectories", "ls", WEBGYM], "is a file; give the save path"),
        (&["nginx-config", "--master", "a b"], "write HOST:PORT"),
    ] {
        let said = refused(words).await;
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn a_monitor_that_nobody_serves_is_told_at_once() {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = format!("http://127.0.0.1:{}", probe.local_addr().unwrap().port());
    drop(probe);
    let mut child = webgym(&["monitor", "--url", &nobody, "--port", "0"]).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(SECONDS, said.next_line()).await.expect("it says so").unwrap().unwrap();
    assert_eq!(line, format!("warning: cannot reach {nobody}: nothing listens there. The page keeps trying"));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    child.kill().await.unwrap();
}

/// With a terminal in front of it, which `script` makes.
#[tokio::test]
async fn at_a_terminal_a_farm_speaks_in_sentences_only() {
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{WEBGYM} master --port 0"), "/dev/null"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains("ready: a master in")) {
        let line = tokio::time::timeout(SECONDS, lines.next_line()).await.expect("it gets ready").unwrap();
        said.push(line.unwrap_or_else(|| panic!("it ended: {said:?}")));
    }
    assert!(!said.iter().any(|line| line.contains("\"event\"") || line.contains("0/0")), "{said:?}");
    // Ending `script` would leave what it started.
    let started = descendants(child.id().unwrap());
    assert!(!started.is_empty());
    started.iter().for_each(|process| signal(process.pid, Signal::TERM));
    tokio::time::timeout(SECONDS, child.wait()).await.expect("it ends with what it started").unwrap();
}

#[tokio::test]
async fn the_doctor_speaks_in_sentences_also_into_a_pipe() {
    let output = tokio::time::timeout(SECONDS, webgym(&["doctor"]).output()).await.expect("it ends").unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("ok    Chromium"), "{said}");
    let stamped = |line: &&str| line.starts_with("20") && line.contains('T');
    assert_eq!(said.lines().find(stamped), None, "{said}");
}
