//! Messages of the command line: wrong arguments, unreachable servers, terminal and pipe output.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

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
const TIMEOUT: Duration = Duration::from_secs(60);

fn webgym(arguments: &[&str]) -> Command {
    let mut command = Command::new(WEBGYM);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn run_and_fail(arguments: &[&str]) -> String {
    let output =
        tokio::time::timeout(TIMEOUT, webgym(arguments).output()).await.expect("it exits in time").unwrap();
    assert!(!output.status.success(), "{arguments:?} was accepted");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    for (arguments, expected) in [
        (&["serve", "two"][..], "give a whole number, for example 8"),
        (&["node", "1.5"], "give a whole number"),
        (
            &["rollout", "save_path=a", "data_path=b", "env_config.server_size=two"],
            "a whole number, 0 or more, is expected",
        ),
        (&["rollout", "--config-name", "nope"], "available: default, rollout, rollout_train, rollout_test"),
        (&["monitor", "--url", "127.0.0.1:5000"], "expected something like http://HOST:5000"),
        (&["trajectories", "ls", WEBGYM], "is a file; give the save path"),
        (&["nginx-config", "--master", "a b"], "write HOST:PORT"),
    ] {
        let output = run_and_fail(arguments).await;
        assert!(output.contains(expected), "{arguments:?}: {output}");
    }
}

#[tokio::test]
async fn unreachable_monitor_is_reported() {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let unreachable = format!("http://127.0.0.1:{}", probe.local_addr().unwrap().port());
    drop(probe);
    let mut child = webgym(&["monitor", "--url", &unreachable, "--port", "0"]).spawn().unwrap();
    let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
    let line =
        tokio::time::timeout(TIMEOUT, output.next_line()).await.expect("a warning in time").unwrap().unwrap();
    assert_eq!(
        line,
        format!("warning: cannot reach {unreachable}: nothing listens there. The page keeps trying")
    );
    assert!(child.try_wait().unwrap().is_none(), "it keeps running");
    child.kill().await.unwrap();
}

/// `script` provides the terminal.
#[tokio::test]
async fn terminal_output_has_no_machine_readable_lines() {
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{WEBGYM} master --port 0"), "/dev/null"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = Vec::new();
    while !output.iter().any(|line: &String| line.contains("ready: a master in")) {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("it becomes ready").unwrap();
        output.push(line.unwrap_or_else(|| panic!("it exited: {output:?}")));
    }
    assert!(!output.iter().any(|line| line.contains("\"event\"") || line.contains("0/0")), "{output:?}");
    // Killing `script` would leave its child running.
    let started = descendants(child.id().unwrap());
    assert!(!started.is_empty());
    for process in &started {
        signal(process.pid, Signal::TERM);
    }
    tokio::time::timeout(TIMEOUT, child.wait()).await.expect("it exits with its child").unwrap();
}

#[tokio::test]
async fn doctor_output_has_no_timestamps() {
    let output =
        tokio::time::timeout(TIMEOUT, webgym(&["doctor"]).output()).await.expect("it exits in time").unwrap();
    let output =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("ok    Chromium"), "{output}");
    let stamped = |line: &&str| line.starts_with("20") && line.contains('T');
    assert_eq!(output.lines().find(stamped), None, "{output}");
}
