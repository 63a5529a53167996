use std::{path::Path, sync::Arc};

use jiff::{Timestamp, ToSpan};

use super::*;
use crate::{Archive, ArchiveOptions, Exchange, Outcome, Recorder, RecorderOptions, Request, Response};

fn record(directory: &Path, exchanges: Vec<(Request, u16, &str)>) -> Arc<Archive> {
    let recorder = Recorder::open(directory, RecorderOptions::default()).unwrap();
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    for (index, (request, status, body)) in exchanges.into_iter().enumerate() {
        let response = Response { status, body: body.to_owned().into(), ..Response::default() };
        let started = start + i64::try_from(index).unwrap().milliseconds();
        recorder.append(Exchange::new(started, request, Outcome::Response(response))).unwrap();
    }
    recorder.finish().unwrap();
    Archive::open(directory, ArchiveOptions::default()).unwrap()
}

/// Returns the kind of match and the body, or `None` for a miss.
fn find(cursor: &mut Cursor, request: &Request) -> Option<(MatchKind, String)> {
    match cursor.find(request) {
        Answer::Found(found) => {
            let body = found.response().unwrap().unwrap().body;
            Some((found.kind, String::from_utf8(body.to_vec()).unwrap()))
        }
        Answer::Miss(_) => None,
    }
}

fn graphql(body: &str) -> Request {
    Request::post("https://h/graphql", "application/json", body.to_owned())
}

#[test]
fn exact_wins_over_normalised_and_normalised_over_scored() {
    let directory = tempfile::tempdir().unwrap();
    let archive = record(
        directory.path(),
        vec![
            (Request::get("https://h/a?x=1&y=2&_=5"), 200, "first"),
            (Request::get("https://h/a?y=2&x=1"), 200, "second"),
        ],
    );
    let mut cursor = Cursor::new(Arc::clone(&archive));
    let mut check = |url: &str| find(&mut cursor, &Request::get(url));
    assert_eq!(check("https://H:443/a?y=2&x=1#top"), Some((MatchKind::Exact, "second".into())));
    assert_eq!(check("https://h/a?x=1&y=2&_=99"), Some((MatchKind::Normalised, "second".into())));
    assert!(matches!(check("https://h/a?x=1&y=2&z=3&_=1"), None | Some((MatchKind::Scored(_), _))));
    assert_eq!(check("https://h/b?x=1&y=2"), None);
    let fresh = find(&mut Cursor::new(archive), &Request::get("https://h/a?x=1&y=2&_=99"));
    assert_eq!(
        fresh,
        Some((MatchKind::Normalised, "first".into())),
        "another cursor starts at the beginning"
    );
}

#[test]
fn recordings_of_one_request_come_in_order_and_the_last_repeats() {
    let directory = tempfile::tempdir().unwrap();
    let poll = || Request::get("https://h/poll");
    let archive = record(directory.path(), vec![(poll(), 200, "1"), (poll(), 200, "2"), (poll(), 200, "3")]);
    for mut cursor in [Cursor::new(Arc::clone(&archive)), Cursor::new(archive)] {
        let bodies: Vec<String> = (0..5).map(|_| find(&mut cursor, &poll()).unwrap().1).collect();
        assert_eq!(bodies, ["1", "2", "3", "3", "3"]);
    }
}

#[test]
fn polls_with_cache_busters_come_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let poll = |time: u64| Request::get(format!("https://h/poll?ts={time}&q=0.{time}123"));
    let archive = record(
        directory.path(),
        vec![(poll(1_767_323_045_001), 200, "1"), (poll(1_767_323_046_002), 200, "2")],
    );
    let mut cursor = Cursor::new(archive);
    let bodies: Vec<_> = (3..6).map(|n| find(&mut cursor, &poll(1_767_999_999_000 + n)).unwrap()).collect();
    assert_eq!(bodies.iter().map(|(_, body)| body.as_str()).collect::<Vec<_>>(), ["1", "2", "2"]);
    assert!(bodies.iter().all(|(kind, _)| *kind == MatchKind::Normalised));
}

#[test]
fn graphql_operations_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let archive = record(
        directory.path(),
        vec![
            (
                graphql(
                    r#"{"operationName":"User","query":"query User{a}","variables":{"id":1,"n":2,"m":3}}"#,
                ),
                200,
                "user",
            ),
            (
                graphql(r#"{"operationName":"Cart","query":"query Cart{b}","variables":{"id":1}}"#),
                200,
                "cart",
            ),
        ],
    );
    let mut cursor = Cursor::new(archive);
    let mut check = |body: &str| find(&mut cursor, &graphql(body));
    let reordered = r#"{ "variables": {"id": 1}, "operationName": "Cart", "query": "query Cart{b}" }"#;
    assert_eq!(check(reordered), Some((MatchKind::Normalised, "cart".into())));
    let similar = r#"{"operationName":"User","query":"query User{a}","variables":{"id":1,"n":2,"m":4}}"#;
    let (kind, body) = check(similar).unwrap();
    assert!(matches!(kind, MatchKind::Scored(score) if score > 0.8) && body == "user", "{kind:?} {body}");
    assert_eq!(check(r#"{"operationName":"Other","query":"query Other{c}","variables":{"id":1}}"#), None);
}

#[test]
fn single_different_value_is_a_miss() {
    let directory = tempfile::tempdir().unwrap();
    let archive = record(directory.path(), vec![(Request::get("https://h/list?page=1"), 200, "one")]);
    match Cursor::new(archive).find(&Request::get("https://h/list?page=2")) {
        Answer::Miss(miss) => assert_eq!(miss, Miss { candidates: 1, best_score: Some(0.25) }),
        Answer::Found(found) => panic!("{:?}", found.kind),
    }
}

#[test]
fn redacted_fields_match_every_value() {
    let directory = tempfile::tempdir().unwrap();
    let login = |password: &str| {
        Request::post(
            "https://h/login",
            "application/json",
            format!(r#"{{"user":"a","password":"{password}"}}"#),
        )
    };
    let archive = record(directory.path(), vec![(login("recorded"), 200, "welcome")]);
    assert_eq!(
        find(&mut Cursor::new(archive), &login("another")),
        Some((MatchKind::Exact, "welcome".into()))
    );
}

#[test]
fn range_and_not_modified_recordings_answer_only_such_requests() {
    let directory = tempfile::tempdir().unwrap();
    let with = |name: &str, value: &str| {
        let mut request = Request::get("https://h/video");
        request.headers.push(name, value);
        request
    };
    let archive = record(
        directory.path(),
        vec![
            (with("Range", "bytes=0-9"), 206, "first ten"),
            (with("Range", "bytes=10-19"), 206, "next ten"),
            (with("If-None-Match", "\"x\""), 304, ""),
        ],
    );
    let mut cursor = Cursor::new(archive);
    assert_eq!(find(&mut cursor, &with("Range", "bytes=10-19")).unwrap().1, "next ten");
    assert_eq!(find(&mut cursor, &with("Range", "bytes=20-29")), None);
    assert!(find(&mut cursor, &with("If-None-Match", "\"x\"")).is_some());
    assert_eq!(find(&mut cursor, &Request::get("https://h/video")), None);
}

#[test]
fn web_socket_is_found_by_its_upgrade_request() {
    let directory = tempfile::tempdir().unwrap();
    let archive = record(directory.path(), vec![(Request::get("wss://h/socket"), 101, "")]);
    assert!(find(&mut Cursor::new(archive), &Request::get("https://h/socket")).is_some());
}

#[test]
fn session_prefers_its_own_recordings_then_those_of_its_task() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let recordings = [("a#0", "first of a#0"), ("b#0", "b#0"), ("a#1", "a#1"), ("a#0", "second of a#0")];
    for (index, (session, body)) in recordings.into_iter().enumerate() {
        let response = Response { status: 200, body: body.into(), ..Response::default() };
        let started = start + i64::try_from(index).unwrap().seconds();
        let mut exchange =
            Exchange::new(started, Request::get("https://h/cart"), Outcome::Response(response));
        exchange.session = Some(session.into());
        recorder.append(exchange).unwrap();
    }
    recorder.finish().unwrap();
    let archive = Archive::open(directory.path(), ArchiveOptions::default()).unwrap();
    let bodies = |session: &str| {
        let mut cursor = Cursor::for_session(Arc::clone(&archive), session);
        let mut next = || find(&mut cursor, &Request::get("https://h/cart")).unwrap().1;
        [next(), next(), next()]
    };
    assert_eq!(bodies("a#0"), ["first of a#0", "second of a#0", "second of a#0"]);
    assert_eq!(bodies("b#0"), ["b#0", "b#0", "b#0"]);
    assert_eq!(bodies("a#7"), ["first of a#0", "a#1", "second of a#0"], "an attempt that was not recorded");
    assert_eq!(bodies("c#0"), ["first of a#0", "b#0", "a#1"], "a task that was not recorded");
    assert_eq!(archive.started(Some("a#1")), Some(start + 2.seconds()));
    assert_eq!(archive.started(Some("c#0")), Some(start));
}
