//! `webgym view` and `webgym plot`: error messages, and that the viewer serves and stops.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Output, Stdio},
};

fn webgym(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_webgym")).args(arguments).output().expect("webgym runs")
}

fn assert_fails_with(arguments: &[&str], message: &str) {
    let output = webgym(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(message), "{arguments:?}: {stderr}");
}

#[test]
fn invalid_paths_and_options_are_explained() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let empty = directory.path().to_str().expect("a plain path");
    let missing = format!("{empty}/nowhere");
    let file = format!("{empty}/file");
    std::fs::write(&file, "").expect("a file");
    assert_fails_with(&["plot", empty], "nothing to plot: there are no trajectories under");
    assert_fails_with(&["plot", empty, "--out", "curves.jpg"], "must end in .png, .svg or .json");
    assert_fails_with(&["plot", empty, "--ema", "1.5"], "above 0 and at most 1");
    assert_fails_with(&["plot", empty, "--x", "time"], "it must be iterations or trajectories");
    assert_fails_with(&["plot", empty, "--ood"], "without test tasks whose distribution is not ood");
    assert_fails_with(&["view", &missing], "cannot read");
    assert_fails_with(&["view", &file], "is a file; pass the save path");
    assert_fails_with(&["view", empty, "--port", "0", "--token", "a b"], "a token may contain only letters");
}

#[test]
fn viewer_prints_url_serves_and_stops() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut viewer = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["view", directory.path().to_str().expect("a plain path"), "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("webgym runs");
    let mut lines = BufReader::new(viewer.stdout.take().expect("piped output")).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("open http://"));
    let line = line.expect("a line with the URL");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    let mut socket = std::net::TcpStream::connect(address).expect("the viewer listens");
    socket
        .write_all(b"GET /api/iterations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("the request is sent");
    let mut response = String::new();
    socket.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("\"iterations\":[]}"), "{response}");
    let pid = rustix::process::Pid::from_child(&viewer);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the signal is sent");
    assert!(viewer.wait().expect("the viewer exits").success());
}
