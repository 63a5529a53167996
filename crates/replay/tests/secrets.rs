//! Secrets do not reach the disk.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{fs, path::Path};

use replay::{
    Exchange, Outcome, Recorder, RecorderOptions, Redaction, Request,
    exchange::{Direction, Frame, FrameData},
};
use support::{at, contains, decompressed, open, response};

/// Every place in which a secret can be; each has a word of its own.
fn exchanges() -> Vec<Exchange> {
    let mut request = Request::get("https://user:SECRET-userinfo@site.test/a?sid=SECRET-query&x=kept-query");
    for (name, value) in [
        ("Cookie", "id=SECRET-cookie"),
        ("Authorization", "Bearer SECRET-bearer"),
        ("Proxy-Authorization", "Basic SECRET-proxy"),
        ("X-Api-Key", "SECRET-header"),
        ("Referer", "https://site.test/?sid=SECRET-referer"),
        ("X-Kept", "kept-header"),
    ] {
        request.headers.push(name, value);
    }
    let mut answer = response(302, "application/json", r#"{"token":"SECRET-response","a":"kept-response"}"#);
    answer.headers.push("Set-Cookie", "id=SECRET-set-cookie; HttpOnly");
    answer.headers.push("Location", "/next?access_token=SECRET-location#id_token=SECRET-fragment");
    let first = Exchange::new(at(0), request, Outcome::Response(answer));

    let json = Request::post(
        "https://site.test/login",
        "application/json",
        r#"{"user":"kept-user","password":"SECRET-json","deep":[{"token":["SECRET-deep"]}]}"#,
    );
    let form = Request::post(
        "https://site.test/login",
        "application/x-www-form-urlencoded",
        "user=kept-form&password=SECRET-form&user%5Bpassword%5D=SECRET-nested",
    );
    let multipart = Request::post(
        "https://site.test/upload",
        "multipart/form-data; boundary=xyz",
        "--xyz\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nSECRET-multipart\r\n--xyz--\r\n",
    );
    let answered = |offset, request| {
        Exchange::new(at(offset), request, Outcome::Response(response(200, "text/plain", "kept-answer")))
    };
    let mut socket = answered(4, Request::get("wss://site.test/socket?sid=SECRET-socket"));
    socket.frames = vec![Frame {
        at_ms: 0.0,
        direction: Direction::Sent,
        data: FrameData::Text(r#"{"password":"SECRET-frame","b":"kept-frame"}"#.into()),
    }];
    let failed = Request::post("https://site.test/x", "application/json", r#"{"password":"SECRET-failed"}"#);
    let failed = Exchange::new(at(5), failed, Outcome::Failed("net::ERR_FAILED".into()));
    vec![first, answered(1, json), answered(2, form), answered(3, multipart), socket, failed]
}

fn redaction() -> Redaction {
    let mut redaction = Redaction::default();
    redaction.headers.push("x-api-key".into());
    redaction.query.push("sid".into());
    redaction.fields.push("token".into());
    redaction
}

/// All bytes of all files below a directory, decompressed.
fn all_bytes(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(all_bytes(&path));
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            bytes.extend(decompressed(&path));
        } else {
            bytes.extend(fs::read(&path).unwrap());
        }
    }
    bytes
}

fn record_with(redaction: Redaction) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let options = RecorderOptions { redaction, ..RecorderOptions::default() };
    let recorder = Recorder::open(directory.path(), options).unwrap();
    for exchange in exchanges() {
        recorder.append(exchange).unwrap();
    }
    recorder.finish().unwrap();
    directory
}

#[test]
fn no_secret_is_in_the_bytes_of_an_archive() {
    let directory = record_with(redaction());
    let bytes = all_bytes(directory.path());
    let start = bytes.windows(7).position(|window| window == b"SECRET-");
    let place =
        start.map(|start| String::from_utf8_lossy(&bytes[start.saturating_sub(80)..start + 40]).into_owned());
    assert_eq!(place, None);
    for kept in ["query", "header", "response", "user", "form", "answer", "frame"] {
        assert!(contains(&bytes, &format!("kept-{kept}")), "kept-{kept} is missing");
    }
    assert!(replay::check(directory.path()).unwrap().is_intact());
}

#[test]
fn secrets_are_kept_on_request() {
    let directory = record_with(Redaction::none());
    let bytes = all_bytes(directory.path());
    for kept in ["cookie", "bearer", "query", "form", "json", "multipart", "frame", "set-cookie"] {
        assert!(contains(&bytes, &format!("SECRET-{kept}")), "SECRET-{kept} is missing");
    }
}

#[test]
fn requests_with_other_secrets_find_their_recordings() {
    let directory = record_with(redaction());
    let archive = open(directory.path());
    assert_eq!(*archive.redaction(), redaction());
    let mut cursor = replay::Cursor::new(archive);
    for exchange in exchanges() {
        let mut request = exchange.request.clone();
        request.url = request.url.replace("SECRET", "OTHER");
        let body = String::from_utf8(request.body.to_vec()).unwrap().replace("SECRET", "OTHER");
        request.body = body.into();
        match cursor.find(&request) {
            replay::Answer::Found(found) => {
                assert_eq!(found.kind, replay::MatchKind::Exact, "{}", request.url);
            }
            replay::Answer::Miss(miss) => panic!("{}: {miss:?}", request.url),
        }
    }
}
