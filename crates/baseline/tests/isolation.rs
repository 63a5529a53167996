//! The isolation of the policy: what its crate must not depend on, and what its source must not mention.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Ordinary words that occur capitalised in tasks.
const ORDINARY_WORDS: &[&str] =
    &["Count", "Digits", "Item", "Press", "Save", "Two", "Type", "Upper", "Which", "Windows"];

fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn policy_depends_on_no_workspace_crate() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(crate_dir().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "webgym-baseline").expect("this package");
    let dependencies: Vec<&str> = package["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    assert!(dependencies.contains(&"axum"), "unexpected list of dependencies: {dependencies:?}");
    let crates: Vec<_> = dependencies.iter().filter(|name| name.starts_with("webgym-")).collect();
    assert!(
        crates.is_empty(),
        "the policy must not depend on tasks, sites or browsers, but depends on {crates:?}"
    );
}

#[test]
fn policy_source_mentions_no_task_or_answer() {
    let secrets = secrets();
    assert!(secrets.len() > 60, "only {} texts to search for", secrets.len());
    let mut found = Vec::new();
    for file in sources(&crate_dir().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let is_mentioned = |secret: &&String| {
            if secret.contains(|c: char| !c.is_alphanumeric()) {
                text.contains(secret.as_str())
            } else {
                words.contains(secret.as_str())
            }
        };
        found.extend(
            secrets.iter().filter(is_mentioned).map(|secret| format!("{secret:?} in {}", file.display())),
        );
    }
    assert!(
        found.is_empty(),
        "the policy's source mentions names or answers of practice tasks:\n{}",
        found.join("\n")
    );
}

/// Returns the answers, the capitalised names in tasks, and the names of the sites.
fn secrets() -> BTreeSet<String> {
    let mut secrets: BTreeSet<String> = ["Aldermark", "Tidewater", "localhost"].map(str::to_owned).into();
    for task in practice::tasks("http://127.0.0.1:1") {
        let answer = task.definite_answer.unwrap();
        if answer.len() >= 6 && answer.contains(|c: char| c.is_alphabetic()) {
            secrets.insert(answer);
        }
        let words: Vec<&str> = task.task_name.split_whitespace().collect();
        let within_sentence =
            words.windows(2).filter(|two| !two[0].ends_with(['.', '?', ':'])).map(|two| two[1]);
        let trimmed = within_sentence.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let names =
            trimmed.filter(|word| word.len() >= 4 && word.starts_with(|c: char| c.is_ascii_uppercase()));
        secrets.extend(
            names.filter(|name| !ORDINARY_WORDS.contains(name) && *name != "September").map(str::to_owned),
        );
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
