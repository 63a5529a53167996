//! The words of `webgym view` and `webgym plot`, and that plots need nothing but the files.

use std::process::{Command, Output};

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
    fails_with(&["plot", empty, "--out", "curves.jpg"], "neither .png nor .svg");
    fails_with(&["plot", empty, "--ema", "1.5"], "at least 0 and less than 1");
    fails_with(&["view", &missing], "cannot look at");
    fails_with(&["view", &file], "is a file; name the save path");
    fails_with(&["view", empty, "--port", "0", "--token", "a b"], "a token may have letters");
}
