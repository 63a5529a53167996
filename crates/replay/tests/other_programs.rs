//! warcio and wacz accept our files. `make test-archive` also checks pywb, cdxj-indexer and Playwright.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use support::{record, site, warc};

fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("WEBGYM_PYTHON") {
        return path.into();
    }
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if local.exists() { local } else { "python3".into() }
}

/// Runs a program's `main` with arguments and returns whether it succeeded, with its output.
fn run(module: &str, arguments: &[&str]) -> (bool, String) {
    let code = format!("import sys; from {module} import main; sys.exit(main(sys.argv[1:]))");
    let output = Command::new(python()).args(["-c", &code]).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn warcio_finds_every_digest_right() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), site());
    let file = warc(directory.path());
    let (_, text) = run("warcio.cli", &["check", "-v", file.to_str().unwrap()]);
    let passed = text.matches("digest pass").count();
    assert_eq!(passed, 29, "all 30 records but the revisit: {text}");
    assert!(!text.contains("failed") && !text.contains("Error"), "{text}");
}

#[test]
fn wacz_accepts_a_packed_archive() {
    let directory = tempfile::tempdir().unwrap();
    record(&directory.path().join("site"), site());
    let file = directory.path().join("site.wacz");
    replay::wacz::pack(&directory.path().join("site"), &file).unwrap();
    let (is_valid, text) = run("wacz.main", &["validate", "-f", file.to_str().unwrap()]);
    assert!(is_valid && text.contains("Validation succeeded, the passed WACZ is valid"), "{text}");
}
