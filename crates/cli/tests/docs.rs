//! Checks that docs/reliability.md and the Markdown links of all pages refer to things that exist.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files below `folder` with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != "node_modules" {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// Names of functions, of tests that are registered by a string, and of the files and folders that hold them.
fn names_in_code() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&root().join("crates"), "rs") {
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        let folder = path.parent().and_then(Path::file_name);
        names.extend(folder.map(|folder| folder.to_string_lossy().into_owned()));
        let code = fs::read_to_string(&path).expect("the file is readable");
        for after in code.split("fn ").skip(1).chain(code.split('"').skip(1)) {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            names.insert(after[..end].to_owned());
        }
        // Rows of a table of cases: `name: "/path" => […]`.
        names.extend(code.lines().filter_map(|line| Some(line.trim().split_once(": \"/")?.0.to_owned())));
    }
    names.insert("tests".to_owned());
    names
}

/// Returns the quoted names with a path, such as `faults::nodes::dead_node_is_skipped` or `faults::masters::*`.
fn quoted_paths(markdown: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        text.contains("::")
            && text.split("::").all(|part| {
                part == "*"
                    || part.starts_with(|c: char| c.is_ascii_lowercase())
                        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            })
    };
    markdown.split('`').skip(1).step_by(2).filter(is_path).collect()
}

/// Checks the names of tests on a page, of which there must be at least `min`.
fn check_test_names(page: &str, min: usize) {
    let text = fs::read_to_string(root().join(page)).expect("the page is readable");
    let (names, quoted) = (names_in_code(), quoted_paths(&text));
    assert!(quoted.len() >= min, "only {} names were found", quoted.len());
    let missing: Vec<&&str> = quoted
        .iter()
        .filter(|path| path.split("::").any(|part| part != "*" && !names.contains(part)))
        .collect();
    assert!(missing.is_empty(), "{page}: not in the code: {missing:#?}");
}

#[test]
fn tests_named_in_reliability_md_exist() {
    check_test_names("docs/reliability.md", 80);
}

#[test]
fn tests_named_in_security_md_exist() {
    check_test_names("SECURITY.md", 20);
}

#[test]
fn relative_links_of_all_pages_lead_to_files() {
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(files(&root().join("examples"), "md"));
    let top = fs::read_dir(root()).expect("the root is readable").flatten().map(|entry| entry.path());
    pages.extend(top.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    assert!(pages.len() >= 10, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page).expect("the page is readable");
        for after in text.split("](").skip(1) {
            let target = after.split(')').next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || target.contains("://") {
                continue;
            }
            let path = page.parent().expect("pages are in a folder").join(file);
            assert!(path.exists(), "{} links to {target}", page.display());
        }
    }
}
