//! The words of `webgym view` and `webgym plot`, and that plots need nothing but the files.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Output, Stdio},
};

fn webgym(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_webgym")).args(arguments).output().expect("webgym runs")
}

fn fails_with(arguments: &[&str], words: &str) {
    let output = webgym(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
}

#[test]
fn what_cannot_be_drawn_or_looked_at_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let empty = directory.path().to_str().expect("a plain path");
    let missing = format!("{empty}/nowhere");
    let file = format!("{empty}/file");
    std::fs::write(&file, "").expect("a file");
    fails_with(&["plot", empty], "nothing to plot: there are no trajectories under");
    fails_with(&["plot", empty, "--out", "curves.jpg"], "must end in .png or .svg");
    fails_with(&["plot", empty, "--ema", "1.5"], "at least 0 and less than 1");
    fails_with(&["view", &missing], "cannot read");
    fails_with(&["view", &file], "is a file; pass the save path");
    fails_with(&["view", empty, "--port", "0", "--token", "a b"], "a token may contain only letters");
}

#[test]
fn the_viewer_says_where_it_is_answers_there_and_ends_when_asked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut viewer = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["view", directory.path().to_str().expect("a plain path"), "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("webgym runs");
    let mut lines = BufReader::new(viewer.stdout.take().expect("its words")).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("open http://"));
    let line = line.expect("it says where");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    let mut socket = std::net::TcpStream::connect(address).expect("it listens");
    socket
        .write_all(b"GET /api/iterations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\"iterations\":[]}"), "{answer}");
    let pid = rustix::process::Pid::from_child(&viewer);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be asked to end");
    assert!(viewer.wait().expect("it ends").success());
}
