//! HAR, WACZ and comparisons.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::fs;

use replay::{Exchange, Outcome, RecorderOptions, encoding};
use support::{all, get, open, record, site};

/// What HAR and WACZ must keep of an exchange.
fn essence(exchange: &Exchange) -> String {
    let outcome = match &exchange.outcome {
        Outcome::Response(response) => {
            let body = encoding::decode(&response.headers, &response.body).unwrap();
            format!("{} {:?} {:?}", response.status, response.headers.media_type(), body)
        }
        Outcome::Failed(error) => error.clone(),
    };
    let request = &exchange.request;
    format!("{} {} {} {:?} {outcome}", exchange.started, request.method, request.url, request.body)
}

#[test]
fn har_export_can_be_imported_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    record(&first, site());
    let mut har = Vec::new();
    assert_eq!(replay::har::export(&open(&first), &mut har).unwrap(), site().len());
    let path = directory.path().join("site.har");
    fs::write(&path, har).unwrap();
    let report = replay::import(&path, &second, RecorderOptions::default()).unwrap();
    assert_eq!((report.exchanges, report.problems.len()), (site().len(), 0), "{:?}", report.problems);
    let (before, after) = (all(&open(&first)), all(&open(&second)));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(essence(before), essence(after));
    }
    let frames = |all: &[Exchange]| all.iter().map(|exchange| exchange.frames.len()).sum::<usize>();
    assert_eq!((frames(&before), frames(&after)), (3, 2), "HAR has no form for the end of a WebSocket");
}

#[test]
fn har_entries_without_body_or_time_are_reported_and_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.har");
    let entry = |url: &str, time: &str, content: &str| {
        format!(
            r#"{{"startedDateTime":"{time}","request":{{"method":"GET","url":"{url}"}},"response":{{"status":200,"content":{content}}}}}"#
        )
    };
    let time = "2026-01-02T03:04:05.000+01:00";
    let entries = [
        entry("http://a.test/missing", time, r#"{"size":7}"#),
        entry("http://a.test/empty", time, r#"{"size":0}"#),
        entry("http://a.test/base64", time, r#"{"size":2,"text":"aGk=","encoding":"base64"}"#),
        entry("http://a.test/bad64", time, r#"{"size":2,"text":"%%%","encoding":"base64"}"#),
        entry("http://a.test/when", "yesterday", r#"{"text":"x"}"#),
        entry("http://a.test/file", time, r#"{"size":3,"_file":"body.txt"}"#),
        entry("http://a.test/trick", time, r#"{"size":3,"_file":"../../etc/passwd"}"#),
        entry("data:text/plain,x", time, r#"{"text":"x"}"#),
    ];
    fs::write(directory.path().join("body.txt"), "abc").unwrap();
    fs::write(&path, format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))).unwrap();
    let target = directory.path().join("archive");
    let report = replay::import(&path, &target, RecorderOptions::default()).unwrap();
    assert_eq!(report.exchanges, 3);
    let text = report.problems.join("\n");
    for expected in [
        "missing: the HAR file does not have the body",
        "not Base64",
        "\"yesterday\", not a time",
        "not a file name",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let bodies: Vec<_> =
        all(&open(&target)).iter().map(|exchange| exchange.response().unwrap().body.clone()).collect();
    assert_eq!(bodies, ["", "hi", "abc"]);
}

#[test]
fn wacz_can_be_imported_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    record(&first, site());
    let path = directory.path().join("site.wacz");
    assert_eq!(replay::wacz::pack(&first, &path).unwrap(), 1, "one page");
    let report = replay::import(&path, &second, RecorderOptions::default()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let (before, after) = (all(&open(&first)), all(&open(&second)));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(essence(before), essence(after));
        assert_eq!((&before.frames, before.timing), (&after.frames, after.timing));
    }
    assert!(replay::check(&second).unwrap().is_intact());
}

#[test]
fn differences_are_found_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let (left, right) = (directory.path().join("left"), directory.path().join("right"));
    let long = |word: &str| format!("{}{word}{}", "a".repeat(500), "b".repeat(500));
    record(
        &left,
        vec![
            get(0, "http://a.test/same?_=1", "text/plain", "same"),
            get(1, "http://a.test/text", "text/html", "one\ntwo\nthree"),
            get(2, "http://a.test/long", "text/html", &long("OLD")),
            get(3, "http://a.test/gone", "text/plain", "x"),
            get(4, "http://a.test/kind", "text/plain", "x"),
        ],
    );
    record(
        &right,
        vec![
            get(0, "http://a.test/same?_=2", "text/plain", "same"),
            get(1, "http://a.test/text", "text/html", "one\n2\nthree"),
            get(2, "http://a.test/long", "text/html", &long("NEW")),
            get(3, "http://a.test/new", "text/plain", "x"),
            get(4, "http://a.test/kind", "text/html", "x"),
        ],
    );
    let differences = replay::diff(&open(&left), &open(&right)).unwrap();
    let text = differences.to_string();
    for expected in [
        "only left   GET http://a.test/gone\n",
        "only right  GET http://a.test/new\n",
        "changed     GET http://a.test/text: body of 13 → 11 bytes\n              - two\n              + 2\n",
        "aaaaOLDbbb",
        "aaaaNEWbbb",
        "GET http://a.test/kind: mime text/plain → text/html\n",
        "1 only left, 1 only right, 3 changed, 1 the same\n",
    ] {
        assert!(text.contains(expected), "{expected:?}: {text}");
    }
    assert!(replay::diff(&open(&left), &open(&left)).unwrap().is_empty());
    assert!(text.lines().all(|line| line.chars().count() < 130), "{text}");
}

#[test]
fn index_that_disagrees_with_the_archive_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), site());
    let path = directory.path().join("indexes/index.cdxj");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"offset\":\"", "\"offset\":\"1", 1)).unwrap();
    let report = replay::check(directory.path()).unwrap();
    assert!(report.problems[0].contains("index.cdxj, line 1: differs"), "{report}");
    fs::remove_file(&path).unwrap();
    let report = replay::check(directory.path()).unwrap();
    assert!(report.is_intact() && report.notes[0].contains("is missing"), "{report}");
}

#[test]
fn archive_with_problems_is_not_packed() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    record(&source, site());
    let file = support::warc(&source);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 10]).unwrap();
    let output = directory.path().join("a.wacz");
    let error = replay::wacz::pack(&source, &output).unwrap_err().to_string();
    assert!(error.contains("not packed") && error.contains("webgym archive check"), "{error}");
    assert!(!output.exists());
}
