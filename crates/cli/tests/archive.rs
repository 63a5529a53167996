//! `webgym archive` from the command line: what it prints and how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{fs, path::Path, process::Command};

/// Runs `webgym archive` in a folder and returns whether it succeeded, with standard output and error.
fn archive(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webgym"));
    let output = command.arg("archive").args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn har(folder: &Path, name: &str, page: &str, more: &str) {
    let entry = |url: &str, mime: &str, text: &str| {
        serde_json::json!({
            "startedDateTime": "2026-01-02T03:04:05.000Z",
            "request": {"method": "GET", "url": url, "headers": [{"name": "Cookie", "value": "id=SECRET"}]},
            "response": {"status": 200, "headers": [{"name": "Content-Type", "value": mime}], "content": {"text": text}},
        })
    };
    let entries = [
        entry("http://shop.test/?sid=HIDDEN", "text/html", page),
        entry(&format!("http://shop.test/{more}"), "text/css", "p {}"),
    ];
    fs::write(folder.join(name), serde_json::json!({"log": {"entries": entries}}).to_string()).unwrap();
}

#[test]
fn har_becomes_an_archive_that_is_listed_compared_packed_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    har(folder, "old.har", "<title>Old</title>", "a.css");
    har(folder, "new.har", "<title>New</title>", "b.css");
    for name in ["old", "new"] {
        let (is_ok, output, error) =
            archive(folder, &["import", &format!("{name}.har"), "-o", name, "--redact-query", "sid"]);
        assert!(is_ok && output == format!("Imported 2 exchanges into {name}.\n"), "{output}{error}");
    }
    let (_, output, _) = archive(folder, &["ls", "old"]);
    assert!(
        output.contains(
            "GET         200 text/html                            18  http://shop.test/?sid=webgym-redacted"
        ),
        "{output}"
    );
    let (_, output, _) = archive(folder, &["ls", "old", "--json"]);
    let rows: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), &rows[1]["mime"], &rows[1]["size"]), (2, &"text/css".into(), &4.into()));
    let (is_ok, output, _) = archive(folder, &["diff", "old", "new"]);
    assert!(is_ok && output.ends_with("1 only left, 1 only right, 1 changed, 0 the same\n"), "{output}");
    assert!(output.contains("- <title>Old</title>") && output.contains("+ <title>New</title>"), "{output}");
    let (_, output, _) = archive(folder, &["diff", "old", "new", "--json"]);
    let differences: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(differences["only_right"][0], "GET http://shop.test/b.css");
    let (is_ok, output, error) = archive(folder, &["pack", "old", "-o", "old.wacz"]);
    assert!(is_ok && output == "Wrote old.wacz with 1 page.\n", "{output}{error}");
    let (is_ok, _, error) = archive(folder, &["import", "old.wacz", "-o", "again"]);
    assert!(is_ok, "{error}");
    let (is_ok, _, error) = archive(folder, &["export", "again", "--to", "har", "-o", "again.har"]);
    assert!(is_ok, "{error}");
    let exported = fs::read_to_string(folder.join("again.har")).unwrap();
    assert!(
        exported.contains("<title>Old</title>")
            && !exported.contains("SECRET")
            && !exported.contains("HIDDEN")
    );
    let (is_ok, output, _) = archive(folder, &["check", "again"]);
    assert!(is_ok && output == "1 WARC files, 5 records, 2 exchanges: no problems\n", "{output}");
}

#[test]
fn damaged_archive_fails_the_check_with_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    har(folder, "a.har", "page", "a.css");
    assert!(archive(folder, &["import", "a.har", "-o", "a"]).0);
    let file = fs::read_dir(folder.join("a/archive")).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    let (is_ok, output, _) = archive(folder, &["check", "a"]);
    assert!(
        !is_ok && output.contains(".warc.gz, offset ") && output.contains("the file ends inside it"),
        "{output}"
    );
    let (is_ok, output, error) = archive(folder, &["ls", "a"]);
    assert!(is_ok && output.lines().count() == 2 && error.starts_with("warning: "), "{output}{error}");
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.har"), "{\"log\":{\"entries\":[{\"startedDateTime\":\"2026-01-02T03:04:05Z\",\"request\":{\"method\":\"GET\",\"url\":\"http://a.test/\"},\"response\":{\"status\":200,\"content\":{\"size\":9}}}]}}").unwrap();
    for (arguments, expected) in [
        (&["ls", "nothing"][..], "not an archive: it has no folder archive/"),
        (&["import", "nothing.har", "-o", "x"], "cannot read nothing.har"),
        (&["import", "a.txt", "-o", "x"], ".har, .warc, .warc.gz and .wacz can be imported"),
        (
            &["import", "a.har", "-o", "x"],
            "not imported: http://a.test/: the HAR file does not have the body",
        ),
        (&["import", "a.har", "-o", "."], "it is not empty"),
        (&["import", "a.har", "-o", "y", "--keep-secrets", "--redact-query", "a"], "cannot be used with"),
    ] {
        let (is_ok, _, error) = archive(folder, arguments);
        assert!(!is_ok && error.contains(expected), "{arguments:?}: {error}");
    }
}
