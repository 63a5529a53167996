//! The chat client against a server that violates the protocol on a real socket. Whatever the server sends, the call ends in
//! time, needs bounded memory, and returns a typed error that describes the fault.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

#[path = "support/heap.rs"]
mod heap;

use std::time::{Duration, Instant};

use client::{
    chat::{ChatRequest, Completion, Message, ModelClient, ModelError, ModelOptions, Role},
    http::{Deadline, RetryPolicy},
};
use testkit::rogue::{RogueReply, RogueServer, head};

#[global_allocator]
static HEAP: heap::CountingHeap = heap::CountingHeap;

const JSON: &str = "content-type: application/json";
const CHUNKED: &str = "transfer-encoding: chunked";
/// Generous, because the machine may be loaded.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

fn options() -> ModelOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    ModelOptions { retry, ..ModelOptions::default() }
}

/// Returns the result of a call and the number of requests that the server received.
async fn ask(
    options: ModelOptions,
    time: Duration,
    script: impl Fn(usize, &str) -> RogueReply + Send + Sync + 'static,
) -> (Result<Completion, ModelError>, usize) {
    let server = RogueServer::start(script).await;
    let client = ModelClient::vllm(&server.url(), options).unwrap();
    let request = ChatRequest {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "hi")],
        ..ChatRequest::default()
    };
    let since = Instant::now();
    let got = client.complete(request, Deadline::after(time)).await;
    assert!(since.elapsed() < CALL_TIMEOUT, "{:?}", since.elapsed());
    (got, server.request_count())
}

/// Returns the error of a server that always replies like this, its message, and the number of requests.
async fn always_faulty(options: ModelOptions, reply: RogueReply) -> (ModelError, String, usize) {
    let (got, requests) = ask(options, CALL_TIMEOUT, move |_, _| reply.clone()).await;
    let error = got.unwrap_err();
    let message = error.to_string();
    assert!(error.is_infrastructure(), "{error:?}");
    (error, message, requests)
}

fn completion_of(content: &str) -> String {
    serde_json::json!({"choices": [{"message": {"content": content}}]}).to_string()
}

#[tokio::test]
async fn endless_body_is_rejected_in_bounded_memory() {
    let again = format!("10000\r\n{}\r\n", "[".repeat(0x10000)).into_bytes();
    let endless = RogueReply::Endless(head("200 OK", &[JSON, CHUNKED]), again);
    let limit = ModelOptions::default().max_response_bytes;
    let ((error, message, requests), peak) = heap::peak_of(always_faulty(options(), endless)).await;
    assert!(matches!(error, ModelError::TooLarge { limit: reported } if reported == limit), "{message}");
    assert_eq!(requests, 1, "not retried");
    assert!(peak < 4 * limit, "{peak} bytes");
}

#[tokio::test]
async fn endless_header_is_rejected_in_bounded_memory() {
    let line = format!("x-more: {}\r\n", "y".repeat(4000)).into_bytes();
    let endless = RogueReply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), line);
    let ((error, message, _), peak) = heap::peak_of(always_faulty(options(), endless)).await;
    assert!(matches!(error, ModelError::Unreachable { .. }), "{message}");
    assert!(peak < 8 << 20, "{peak} bytes");
}

#[tokio::test]
async fn response_structure_does_not_multiply_memory() {
    let size = 12 << 20;
    for (filling, end) in [("0,", "0"), ("[],", "0"), ("{},", "0"), ("{\"\":0},", "0"), ("\"\",", "0")] {
        let many = filling.repeat(size / filling.len());
        for body in [
            format!("{{\"junk\":[{many}{end}],\"choices\":[{{\"message\":{{\"content\":\"hi\"}}}}]}}"),
            format!("{{\"choices\":[{{\"message\":{{\"content\":\"hi\"}}}},{many}{end}]}}"),
            format!("{{\"choices\":[{{\"message\":{{\"content\":\"hi\"}},\"logprobs\":[{many}{end}]}}]}}"),
        ] {
            let answer = RogueReply::http("200 OK", &[JSON], &body);
            drop(body);
            let ((got, _), peak) =
                heap::peak_of(ask(options(), CALL_TIMEOUT, move |_, _| answer.clone())).await;
            assert_eq!(got.unwrap().text, "hi", "{filling}");
            // The copy of the server, the copy of the client, and a buffer that grows by doubling.
            assert!(peak < 5 * size, "{filling}: {peak} bytes for {size}");
        }
    }
}

#[tokio::test]
async fn ten_megabyte_completion_is_rejected() {
    let reply = RogueReply::http("200 OK", &[JSON], completion_of(&"so ".repeat(10 << 20 >> 2)));
    let (error, message, requests) = always_faulty(options(), reply).await;
    assert!(matches!(error, ModelError::TooLarge { .. }) && message.contains("larger than"), "{message}");
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn invalid_response_is_described_and_retried() {
    let html = "<html>\u{1b}[2Jplease log in</html>";
    for (reply, expected) in [
        (RogueReply::http("200 OK", &[JSON], ""), "it is empty"),
        (RogueReply::http("200 OK", &[JSON], "{\"choices\":[]}"), "no choices in it"),
        (RogueReply::http("200 OK", &[JSON], "{\"choices\":[{\"message\":{\"content\":\"hal"), "not JSON"),
        (RogueReply::http("200 OK", &[JSON], "[".repeat(100_000)), "not JSON"),
        (RogueReply::http("200 OK", &[JSON], [0xff_u8; 64]), "not JSON"),
        (
            RogueReply::http("200 OK", &["content-type: text/html"], html),
            "(text/html): <html> [2Jplease log in",
        ),
        (RogueReply::http("200 OK", &[], "null"), "(no content type)"),
        (RogueReply::http("204 No Content", &[], ""), "it is empty"),
    ] {
        let (error, message, requests) = always_faulty(options(), reply.clone()).await;
        assert!(
            matches!(error, ModelError::BadResponse { .. }) && message.contains(expected),
            "{reply:?}: {message}"
        );
        assert_eq!(requests, 3, "{expected}");
        let (got, requests) = ask(options(), CALL_TIMEOUT, move |before, _| match before {
            0 => reply.clone(),
            _ => RogueReply::completion("hello"),
        })
        .await;
        assert_eq!((got.unwrap().text.as_str(), requests), ("hello", 2), "{expected}");
    }
}

/// A small compressed body could decompress to a thousand times its size.
#[tokio::test]
async fn compressed_response_is_not_decompressed() {
    let compressed = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".as_slice(), &vec![0xec; 1 << 20]].concat();
    let reply = RogueReply::http("200 OK", &[JSON, "content-encoding: gzip"], compressed);
    let ((error, message, _), peak) = heap::peak_of(always_faulty(options(), reply)).await;
    assert!(
        matches!(error, ModelError::BadResponse { .. }) && message.contains("compressed (gzip)"),
        "{message}"
    );
    assert!(peak < 16 << 20, "{peak} bytes");
}

/// Every byte arrives in time, but the response never ends.
#[tokio::test]
async fn slow_response_ends_at_the_deadline() {
    let drip = || RogueReply::Drip(head("200 OK", &[JSON, CHUNKED]), Duration::from_millis(50));
    for reply in [
        RogueReply::Drip(head("200 OK", &[JSON]), Duration::from_millis(50)),
        RogueReply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), Duration::from_millis(50)),
        drip(),
    ] {
        let quick = ModelOptions { attempt_timeout: Duration::from_millis(300), ..options() };
        let (error, message, requests) = always_faulty(quick, reply).await;
        // Spaces are not a valid chunk, so a strict parser may fail before the timeout.
        let typed = matches!(error, ModelError::Timeout { .. } | ModelError::Unreachable { .. });
        assert!(typed && requests == 3, "{message}");
    }
    let (got, requests) = ask(options(), Duration::from_millis(600), move |_, _| {
        RogueReply::Drip(head("200 OK", &[JSON]), Duration::from_millis(50))
    })
    .await;
    let error = got.unwrap_err();
    assert!(matches!(error, ModelError::Timeout { .. }) && requests == 1, "{error}");
}

#[tokio::test]
async fn broken_connection_is_retried() {
    let half = [head("200 OK", &[JSON, "content-length: 1000"]), b"{\"choices\":".to_vec()].concat();
    for reply in [
        RogueReply::Reset(half.clone()),
        RogueReply::Reset(Vec::new()),
        RogueReply::Bytes(half),
        RogueReply::Bytes(Vec::new()),
        RogueReply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
    ] {
        let (error, message, requests) = always_faulty(options(), reply.clone()).await;
        assert!(matches!(error, ModelError::Unreachable { .. }) && requests == 3, "{reply:?}: {message}");
        let (got, _) = ask(options(), CALL_TIMEOUT, move |before, _| match before {
            0 | 1 => reply.clone(),
            _ => RogueReply::completion("hello"),
        })
        .await;
        assert_eq!(got.unwrap().text, "hello");
    }
}

#[tokio::test]
async fn repeated_server_errors_end_with_the_retries() {
    for status in
        ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "529 Overloaded"]
    {
        let (error, message, requests) =
            always_faulty(options(), RogueReply::http(status, &[], "no GPU")).await;
        assert!(matches!(error, ModelError::Refused { .. }) && requests == 3, "{message}");
        assert!(message.contains(&status[..3]) && message.contains("no GPU"), "{message}");
    }
}

#[tokio::test]
async fn repeated_rate_limiting_ends_at_the_deadline() {
    for reply in [
        RogueReply::http("429 Too Many Requests", &[], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: 0"], ""),
        RogueReply::http("503 Service Unavailable", &["retry-after: 0.01"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: soon"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: -5"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: nan"], ""),
    ] {
        let limited = reply.clone();
        let (got, requests) = ask(options(), Duration::from_millis(400), move |_, _| limited.clone()).await;
        let error = got.unwrap_err();
        assert!(matches!(error, ModelError::RateLimited { .. }), "{reply:?}: {error}");
        assert!(
            error.is_infrastructure() && requests > 3,
            "rate limiting uses up no retry: {requests} of {reply:?}"
        );
    }
}

#[tokio::test]
async fn excessive_retry_after_is_not_waited_for() {
    for delay in ["3600", "1e15", "99999999999999999999", "Thu, 31 Dec 9998 23:59:59 GMT"] {
        let header = format!("retry-after: {delay}");
        let (error, message, requests) =
            always_faulty(options(), RogueReply::http("429 Slow", &[&header], "")).await;
        assert!(matches!(error, ModelError::RateLimited { .. }) && requests == 1, "{delay}: {message}");
        assert!(message.contains("come back in"), "{message}");
    }
}

/// The key and the prompt must not be sent to another server.
#[tokio::test]
async fn redirect_is_reported_and_not_followed() {
    let other_server = RogueServer::start(|_, _| RogueReply::completion("stolen")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let header = format!("location: {}/v1/chat/completions", other_server.url());
        let (error, message, requests) =
            always_faulty(options(), RogueReply::http(status, &[&header], "")).await;
        assert!(matches!(error, ModelError::Redirected { .. }) && requests == 1, "{message}");
        assert!(message.contains(&other_server.url()) && message.contains("not followed"), "{message}");
    }
    assert_eq!(other_server.request_count(), 0);
}

/// Accepts one connection and responds to the first data with these bytes.
fn respond_once(bytes: &'static [u8]) -> (std::net::SocketAddr, std::thread::JoinHandle<()>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _read = stream.read(&mut [0; 4096]);
        stream.write_all(bytes).unwrap();
    });
    (address, server)
}

#[tokio::test]
async fn wrong_scheme_is_named_in_the_error() {
    for (scheme, bytes, expected) in [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "does not use TLS"),
        // A TLS server responds to plain HTTP with an alert.
        ("http", b"\x15\x03\x01\x00\x02\x02\x46", "does not use plain HTTP"),
    ] {
        let (address, server) = respond_once(bytes);
        let client = ModelClient::vllm(&format!("{scheme}://{address}"), options()).unwrap();
        let error = client.choose_model(None, CALL_TIMEOUT).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{scheme}: {error}");
        server.join().unwrap();
    }
}
