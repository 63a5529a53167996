use bytes::Bytes;
use jiff::Timestamp;

use super::*;
use crate::exchange::{Direction, Frame, FrameData};

fn redaction() -> Redaction {
    let mut redaction =
        Redaction { query: vec!["sid".into()], fields: vec!["token".into()], ..Redaction::default() };
    redaction.headers.push("X-Key".into());
    redaction
}

#[test]
fn url_loses_user_password_and_secret_values() {
    for (url, expected) in [
        (
            "https://u:p@h/a?x=1&sid=S#access_token=T",
            "https://h/a?x=1&sid=webgym-redacted#access_token=webgym-redacted",
        ),
        ("/login?PASSWORD=S", "/login?PASSWORD=webgym-redacted"),
        ("https://h/?s%69d=S", "https://h/?s%69d=webgym-redacted"),
    ] {
        assert_eq!(redaction().url(url).as_deref(), Some(expected));
    }
    assert_eq!(redaction().url("https://h/a@b?x=1&sid="), None);
}

#[test]
fn body_without_a_secret_is_not_changed() {
    let body = Bytes::from_static(b"{ \"a\": 1.50 }");
    let mut request = Request::post("https://h/", "application/json", body.clone());
    redaction().request(&mut request);
    assert_eq!(request.body, body);
}

#[test]
fn fields_of_every_kind_of_body_are_removed() {
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nSECRET\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n";
    for (kind, body) in [
        ("application/json", r#"{"a":[{"password":"SECRET"},{"Token":{"x":"SECRET"}}],"b":1}"#),
        ("application/json", r#"{"inner":"{\"password\":\"SECRET\"}","b":1}"#),
        ("application/x-ndjson", "{\"b\":1}\n{\"password\":\"SECRET\"}"),
        ("text/plain;charset=UTF-8", r#"{"password":"SECRET","b":1}"#),
        ("text/plain", "b=1&password=SECRET"),
        ("application/x-www-form-urlencoded", "b=1&user%5Bpassword%5D=SECRET&c=2"),
        ("multipart/form-data; boundary=b", multipart),
    ] {
        let mut request = Request::post("https://h/", kind, body);
        redaction().request(&mut request);
        let text = String::from_utf8(request.body.to_vec()).unwrap();
        assert!(!text.contains("SECRET") && text.contains(MARKER), "{kind}: {text}");
        assert!(text.contains('b') && text.contains('1'), "{kind}: {text}");
    }
}

#[test]
fn redacting_twice_changes_nothing() {
    let mut once = Request::post("https://h/?sid=1", "application/json", r#"{"token":"a"}"#);
    redaction().request(&mut once);
    let mut twice = once.clone();
    redaction().request(&mut twice);
    assert_eq!(once, twice);
}

#[test]
fn compressed_response_is_stored_decoded_when_a_field_is_removed() {
    let body = zstd::encode_all(br#"{"token":"SECRET"}"#.as_slice(), 1).unwrap();
    let headers =
        [("Content-Type", "application/json"), ("Content-Encoding", "zstd"), ("Content-Length", "9")];
    let mut response = Response {
        status: 200,
        headers: headers.into_iter().collect(),
        body: body.into(),
        ..Response::default()
    };
    redaction().response(&mut response);
    assert_eq!(response.body.as_ref(), br#"{"token":"webgym-redacted"}"#);
    assert_eq!(response.headers.text("content-length"), Some("27"));
    assert_eq!(response.headers.text("x-archive-orig-content-encoding"), Some("zstd"));
    assert!(!response.headers.contains("content-encoding"));
}

#[test]
fn label_named_password_in_a_response_is_kept() {
    let headers = [("Content-Type", "application/json")].into_iter().collect();
    let body = Bytes::from_static(br#"{"password":"Enter your password"}"#);
    let mut response = Response { status: 200, headers, body: body.clone(), ..Response::default() };
    redaction().response(&mut response);
    assert_eq!(response.body, body);
}

#[test]
fn chunks_of_a_redacted_stream_still_sum_to_its_body() {
    let (first, second) = ("data: {\"token\":\"a long secret value\"}\n\n", "data: x\n\n");
    let headers = [("Content-Type", "text/event-stream")].into_iter().collect();
    let body = Bytes::from(format!("{first}{second}"));
    let response = Response { status: 200, headers, body, ..Response::default() };
    let mut exchange =
        Exchange::new(Timestamp::UNIX_EPOCH, Request::get("https://h/"), Outcome::Response(response));
    exchange.frames = [first.len(), second.len()]
        .map(|length| Frame {
            at_ms: 1.0,
            direction: Direction::Received,
            data: FrameData::Chunk(length as u64),
        })
        .to_vec();
    redaction().exchange(&mut exchange);
    let body = exchange.response().unwrap().body.clone();
    assert_eq!(body.as_ref(), b"data: {\"token\":\"webgym-redacted\"}\n\ndata: x\n\n");
    let lengths: Vec<_> = exchange.frames.iter().map(|frame| frame.data.clone()).collect();
    assert_eq!(lengths, [FrameData::Chunk(body.len() as u64 - 9), FrameData::Chunk(9)]);
}
