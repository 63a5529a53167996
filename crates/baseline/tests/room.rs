//! The policy's room: what it may not depend on and what it may not know.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Plain words of the language that tasks happen to spell with a capital letter.
const PLAIN: &[&str] =
    &["Count", "Digits", "Item", "Press", "Save", "Two", "Type", "Upper", "Which", "Windows"];

fn room() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_policy_depends_on_no_other_room() {
    let answer = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(room().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "webgym-baseline").expect("this package");
    let used: Vec<&str> = package["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    assert!(used.contains(&"axum"), "the list is read wrongly: {used:?}");
    let rooms: Vec<_> = used.iter().filter(|name| name.starts_with("webgym-")).collect();
    assert!(
        rooms.is_empty(),
        "the policy must see neither tasks nor sites nor browsers, but depends on {rooms:?}"
    );
}

#[test]
fn the_policy_knows_no_task_no_site_and_no_answer() {
    let secrets = secrets();
    assert!(secrets.len() > 60, "only {} words to look for", secrets.len());
    let mut found = Vec::new();
    for file in sources(&room().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let words: BTreeSet<&str> = text.split(|sign: char| !sign.is_alphanumeric()).collect();
        let known = |secret: &&String| {
            if secret.contains(|sign: char| !sign.is_alphanumeric()) {
                text.contains(secret.as_str())
            } else {
                words.contains(secret.as_str())
            }
        };
        found.extend(secrets.iter().filter(known).map(|secret| format!("{secret:?} in {}", file.display())));
    }
    assert!(
        found.is_empty(),
        "the policy's source mentions what only the practice tasks know:\n{}",
        found.join("\n")
    );
}

/// The answers, the names that tasks give things, and the names of the sites.
fn secrets() -> BTreeSet<String> {
    let mut secrets: BTreeSet<String> = ["Aldermark", "Tidewater", "localhost"].map(str::to_owned).into();
    for task in practice::tasks("http://127.0.0.1:1") {
        let answer = task.definite_answer.unwrap();
        if answer.len() >= 6 && answer.contains(|sign: char| sign.is_alphabetic()) {
            secrets.insert(answer);
        }
        let words: Vec<&str> = task.task_name.split_whitespace().collect();
        let inside = words.windows(2).filter(|two| !two[0].ends_with(['.', '?', ':'])).map(|two| two[1]);
        let bare = inside.map(|word| word.trim_matches(|sign: char| !sign.is_alphanumeric()));
        let names =
            bare.filter(|word| word.len() >= 4 && word.starts_with(|sign: char| sign.is_ascii_uppercase()));
        secrets.extend(names.filter(|name| !PLAIN.contains(name) && *name != "September").map(str::to_owned));
    }
    secrets
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
