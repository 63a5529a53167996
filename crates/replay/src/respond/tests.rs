use std::io::Write;

use super::*;
use crate::Headers;

fn request(headers: &[(&str, &str)]) -> Request {
    Request { headers: headers.iter().copied().collect(), ..Request::get("https://h/") }
}

fn recorded(status: u16, headers: &[(&str, &str)], body: &'static str) -> Response {
    Response { status, reason: String::new(), headers: headers.iter().copied().collect(), body: body.into() }
}

#[test]
fn ranges_of_a_complete_recording_are_served() {
    for (range, status, content_range, body) in [
        ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
        ("bytes=7-", 206, Some("bytes 7-9/10"), "789"),
        ("bytes=-3", 206, Some("bytes 7-9/10"), "789"),
        ("bytes=0-99", 206, Some("bytes 0-9/10"), "0123456789"),
        ("bytes=10-", 416, Some("bytes */10"), ""),
        ("bytes=4-2", 200, None, "0123456789"),
        ("bytes=0-1,4-5", 200, None, "0123456789"),
        ("lines=1-2", 200, None, "0123456789"),
    ] {
        let response = respond(&request(&[("Range", range)]), &recorded(200, &[], "0123456789"));
        assert_eq!(
            (response.status, response.headers.text("content-range")),
            (status, content_range),
            "{range}"
        );
        assert_eq!(response.body, body, "{range}");
        assert_eq!(response.headers.text("content-length"), Some(body.len().to_string().as_str()), "{range}");
    }
}

#[test]
fn if_range_of_another_version_gives_everything() {
    let response = recorded(200, &[("ETag", "\"a\"")], "0123456789");
    let with = |tag: &str| request(&[("Range", "bytes=0-1"), ("If-Range", tag)]);
    assert_eq!(respond(&with("\"a\""), &response).status, 206);
    assert_eq!(respond(&with("\"b\""), &response).status, 200);
}

#[test]
fn part_that_is_the_whole_answers_a_plain_request() {
    let part = recorded(206, &[("Content-Range", "bytes 0-9/10")], "0123456789");
    let response = respond(&request(&[]), &part);
    assert_eq!((response.status, response.headers.contains("content-range")), (200, false));
    assert_eq!(respond(&request(&[("Range", "bytes=1-2")]), &part).body, "12");
}

#[test]
fn known_version_is_not_sent_again() {
    let headers = [("ETag", "W/\"a\""), ("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT"), ("X", "1")];
    let response = recorded(200, &headers, "body");
    for (name, value, status) in [
        ("If-None-Match", "\"b\", \"a\"", 304),
        ("If-None-Match", "*", 304),
        ("If-None-Match", "\"b\"", 200),
        ("If-Modified-Since", "Fri, 02 Jan 2026 03:04:05 GMT", 304),
        ("If-Modified-Since", "Thu, 01 Jan 2026 03:04:05 GMT", 200),
        ("If-Modified-Since", "nonsense", 200),
    ] {
        let sent = respond(&request(&[(name, value)]), &response);
        assert_eq!(sent.status, status, "{name}: {value}");
        assert_eq!(sent.body.is_empty(), status == 304);
        assert_eq!(sent.headers.contains("x"), status == 200);
    }
}

#[test]
fn allowed_origin_becomes_the_one_that_asks() {
    let ask = request(&[("Origin", "https://now")]);
    for (recorded_origin, expected) in [("https://then", "https://now"), ("*", "*")] {
        let response = recorded(200, &[("Access-Control-Allow-Origin", recorded_origin)], "");
        assert_eq!(respond(&ask, &response).headers.text("access-control-allow-origin"), Some(expected));
    }
    assert!(!respond(&ask, &recorded(200, &[], "")).headers.contains("access-control-allow-origin"));
}

#[test]
fn preflight_permits_what_is_asked() {
    let mut ask = request(&[
        ("Origin", "https://a"),
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "x-a,x-b"),
    ]);
    assert!(preflight(&ask).is_none(), "a GET request is no preflight");
    ask.method = "OPTIONS".into();
    let response = preflight(&ask).unwrap();
    assert_eq!(response.headers.text("access-control-allow-methods"), Some("PUT"));
    assert_eq!(response.headers.text("access-control-allow-headers"), Some("x-a,x-b"));
    assert_eq!(response.headers.text("access-control-allow-origin"), Some("https://a"));
}

#[test]
fn encoding_that_the_client_does_not_accept_is_removed() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"hello").unwrap();
    let mut response = recorded(200, &[("Content-Encoding", "gzip"), ("Alt-Svc", "h3=\":443\"")], "");
    response.body = encoder.finish().unwrap().into();
    let plain = respond(&request(&[]), &response);
    assert_eq!(
        (plain.body.as_ref(), plain.headers.contains("content-encoding")),
        (b"hello".as_slice(), false)
    );
    let same = respond(&request(&[("Accept-Encoding", "gzip")]), &response);
    assert_eq!(same.body, response.body);
    assert!(!same.headers.contains("alt-svc"));
}

#[test]
fn dates_move_with_the_clock() {
    let mut headers: Headers = [
        ("Date", "Fri, 02 Jan 2026 03:04:05 GMT"),
        ("Expires", "Fri, 02 Jan 2026 04:04:05 GMT"),
        ("Age", "7"),
    ]
    .into_iter()
    .collect();
    shift_dates(
        &mut headers,
        "2026-01-02T03:04:05Z".parse().unwrap(),
        "2027-01-02T03:04:05Z".parse().unwrap(),
    );
    assert_eq!(headers.text("date"), Some("Sat, 02 Jan 2027 03:04:05 GMT"));
    assert_eq!(headers.text("expires"), Some("Sat, 02 Jan 2027 04:04:05 GMT"));
    assert!(!headers.contains("age"));
}
