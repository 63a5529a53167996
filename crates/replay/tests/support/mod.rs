//! Exchanges of every kind, and helpers that several tests use.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests use a part each"
)]

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use jiff::{Timestamp, ToSpan};
use replay::{
    Archive, ArchiveOptions, Exchange, Headers, Outcome, Recorder, RecorderOptions, Request, Response,
    exchange::{Direction, Frame, FrameData, Timing},
};

pub fn at(milliseconds: i64) -> Timestamp {
    let start: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    start + milliseconds.milliseconds()
}

pub fn response(status: u16, mime: &str, body: impl Into<bytes::Bytes>) -> Response {
    let body = body.into();
    let headers = [("Content-Type", mime.to_owned()), ("Content-Length", body.len().to_string())];
    Response { status, reason: "OK".into(), headers: headers.into_iter().collect(), body }
}

pub fn get(milliseconds: i64, url: &str, mime: &str, body: &str) -> Exchange {
    Exchange::new(
        at(milliseconds),
        Request::get(url),
        Outcome::Response(response(200, mime, body.to_owned())),
    )
}

fn gzipped(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A site with everything that a recorder meets.
pub fn site() -> Vec<Exchange> {
    let long = "The quick brown fox jumps over the lazy dog. ".repeat(50);
    let mut exchanges = vec![
        get(
            0,
            "http://site.test/",
            "text/html",
            "<html><head><title>Home page</title></head><body>Hello archive</body></html>",
        ),
        get(10, "http://site.test/style.css?v=1", "text/css", &long),
        get(20, "http://site.test/copy.css", "text/css", &long),
        get(30, "http://site.test/poll?_=1", "application/json", r#"{"n":1}"#),
        get(40, "http://site.test/poll?_=2", "application/json", r#"{"n":2}"#),
    ];
    let mut compressed = response(200, "application/javascript", gzipped("console.log('compressed')"));
    compressed.headers.push("Content-Encoding", "gzip");
    compressed.headers.push("Transfer-Encoding", "chunked");
    exchanges.push(Exchange::new(
        at(50),
        Request::get("http://site.test/app.js"),
        Outcome::Response(compressed),
    ));
    let mut redirect = response(302, "text/html", "");
    redirect.headers.push("Location", "http://site.test/");
    exchanges.push(Exchange::new(at(60), Request::get("http://site.test/old"), Outcome::Response(redirect)));
    for (offset, operation) in [(70, "User"), (80, "Cart")] {
        let body = format!(r#"{{"operationName":"{operation}","variables":{{"id":1}}}}"#);
        let request = Request::post("http://site.test/graphql", "application/json", body);
        let answer = response(200, "application/json", format!(r#"{{"data":"{operation}"}}"#));
        exchanges.push(Exchange::new(at(offset), request, Outcome::Response(answer)));
    }
    let form =
        Request::post("http://site.test/form", "application/x-www-form-urlencoded", "name=Ada+L&age=36");
    exchanges.push(Exchange::new(at(90), form, Outcome::Response(response(200, "text/plain", "saved"))));
    let refused = Request::get("http://other.test/gone");
    exchanges.push(Exchange::new(at(100), refused, Outcome::Failed("net::ERR_CONNECTION_REFUSED".into())));
    exchanges.push(web_socket());
    exchanges.push(get(120, "http://site.test/image.bin", "application/octet-stream", ""));
    let binary = response(200, "image/x-test", (0..=255_u8).cycle().take(2000).collect::<Vec<u8>>());
    exchanges.push(Exchange::new(at(130), Request::get("http://site.test/image"), Outcome::Response(binary)));
    exchanges
}

fn web_socket() -> Exchange {
    let headers: Headers = [("Upgrade", "websocket"), ("Connection", "Upgrade")].into_iter().collect();
    let upgrade =
        Response { status: 101, reason: "Switching Protocols".into(), headers, ..Response::default() };
    let mut exchange =
        Exchange::new(at(110), Request::get("ws://site.test/socket"), Outcome::Response(upgrade));
    let frame = |at_ms, direction, data| Frame { at_ms, direction, data };
    exchange.frames = vec![
        frame(1.0, Direction::Sent, FrameData::Text("hello".into())),
        frame(2.5, Direction::Received, FrameData::Binary(vec![0, 1, 255])),
        frame(9.0, Direction::Received, FrameData::Close { code: 1000, reason: "bye".into() }),
    ];
    exchange.timing = Some(Timing { wait_ms: 0.5, receive_ms: 8.5 });
    exchange.remote = Some("127.0.0.1".parse().unwrap());
    exchange.protocol = Some("http/1.1".into());
    exchange.session = Some("lease-1".into());
    exchange.resource_type = Some("websocket".into());
    exchange
}

pub fn record(directory: &Path, exchanges: Vec<Exchange>) {
    let recorder = Recorder::open(directory, RecorderOptions::default()).unwrap();
    for exchange in exchanges {
        recorder.append(exchange).unwrap();
    }
    recorder.finish().unwrap();
}

pub fn open(directory: &Path) -> std::sync::Arc<Archive> {
    Archive::open(directory, ArchiveOptions::default()).unwrap()
}

pub fn all(archive: &Archive) -> Vec<Exchange> {
    (0..archive.exchanges().len()).map(|index| archive.exchange(index).unwrap()).collect()
}

pub fn warc(directory: &Path) -> PathBuf {
    replay::layout::warc_files(directory).unwrap().remove(0)
}

pub fn decompressed(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}
