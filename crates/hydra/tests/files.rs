//! Errors about configuration files that are missing or use unsupported features of Hydra.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use hydra::SearchPath;

#[test]
fn missing_or_unsupported_file_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("defaults:\n  - db: mysql\n", "x.yaml:2: defaults: \"db\" names a config group"),
        ("defaults:\n  - sub/name\n", "not the name of a file in the same folder"),
        ("defaults: default\n", "expected a list of file names"),
        ("# @package foo.bar\na: 1\n", "x.yaml:1: `@package foo.bar` is not supported"),
        ("defaults: [gone]\n", "there is no configuration \"gone\", included by"),
    ] {
        std::fs::write(folder.path().join("x.yaml"), text).unwrap();
        let error = hydra::compose("x", &SearchPath::folder(folder.path()), &[], &|_| None).unwrap_err();
        assert!(error.to_string().contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn folder_precedes_embedded_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.yaml"), "defaults: [base]\na: 2\n").unwrap();
    let search =
        SearchPath::new(Some(folder.path().to_owned()), &[("base", "a: 1\nb: 1\n"), ("mine", "a: 3\n")]);
    let composed = hydra::compose("mine", &search, &[], &|_| None).unwrap();
    assert_eq!(composed, serde_json::json!({"a": 2, "b": 1}));
}
