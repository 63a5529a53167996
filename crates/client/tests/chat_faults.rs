//! The model client against a server that breaks every rule over a real socket. Whatever it sends: the call ends in
//! time, takes memory in proportion to what may be sent, and says by its type and in words what was wrong.

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
/// Tens of seconds would be a hang; a loaded machine needs some.
const NO_HANG: Duration = Duration::from_secs(30);

fn options() -> ModelOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    ModelOptions { retry, ..ModelOptions::default() }
}

/// What a call came to, and how often the server was asked.
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
    assert!(since.elapsed() < NO_HANG, "{:?}", since.elapsed());
    (got, server.request_count())
}

/// The error of a server that always does this, in its words, and how often it was asked.
async fn always(options: ModelOptions, wrong: RogueReply) -> (ModelError, String, usize) {
    let (got, asked) = ask(options, NO_HANG, move |_, _| wrong.clone()).await;
    let problem = got.unwrap_err();
    let words = problem.to_string();
    assert!(problem.is_infrastructure(), "{problem:?}");
    (problem, words, asked)
}

fn completion_of(content: &str) -> String {
    serde_json::json!({"choices": [{"message": {"content": content}}]}).to_string()
}

#[tokio::test]
async fn endless_body_is_rejected_in_bounded_memory() {
    let again = format!("10000\r\n{}\r\n", "[".repeat(0x10000)).into_bytes();
    let endless = RogueReply::Endless(head("200 OK", &[JSON, CHUNKED]), again);
    let limit = ModelOptions::default().max_response_bytes;
    let ((problem, words, asked), peak) = heap::peak_of(always(options(), endless)).await;
    assert!(matches!(problem, ModelError::TooLarge { limit: told } if told == limit), "{words}");
    assert_eq!(asked, 1, "another one of its kind is not asked for");
    assert!(peak < 4 * limit, "{peak} bytes");
}

#[tokio::test]
async fn endless_header_is_rejected_in_bounded_memory() {
    let line = format!("x-more: {}\r\n", "y".repeat(4000)).into_bytes();
    let endless = RogueReply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), line);
    let ((problem, words, _), peak) = heap::peak_of(always(options(), endless)).await;
    assert!(matches!(problem, ModelError::Unreachable { .. }), "{words}");
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
            let ((got, _), peak) = heap::peak_of(ask(options(), NO_HANG, move |_, _| answer.clone())).await;
            assert_eq!(got.unwrap().text, "hi", "{filling}");
            // The server's own copy, ours, and a buffer that grows by doubling.
            assert!(peak < 5 * size, "{filling}: {peak} bytes for {size}");
        }
    }
}

#[tokio::test]
async fn ten_megabyte_completion_is_rejected() {
    let wrong = RogueReply::http("200 OK", &[JSON], completion_of(&"so ".repeat(10 << 20 >> 2)));
    let (problem, words, asked) = always(options(), wrong).await;
    assert!(matches!(problem, ModelError::TooLarge { .. }) && words.contains("larger than"), "{words}");
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn invalid_response_is_described_and_retried() {
    let html = "<html>\u{1b}[2Jplease log in</html>";
    for (wrong, named) in [
        (RogueReply::http("200 OK", &[JSON], ""), "it is empty"),
        (RogueReply::http("200 OK", &[JSON], "{\"choices\":[]}"), "no choices in it"),
        (RogueReply::http("200 OK", &[JSON], "{\"choices\":[{\"message\":{\"content\":\"hal"), "not JSON"),
        (RogueReply::http("200 OK", &[JSON], "[".repeat(100_000)), "not JSON"),
        (RogueReply::http("200 OK", &[JSON], [0xff_u8; 64]), "not JSON"),
        (
            RogueReply::http("200 OK", &["content-type: text/html"], html),
            "(text/html): <html> [2Jplease log in",
        ),
        (RogueReply::http("200 OK", &[], "null"), "(of no content type)"),
        (RogueReply::http("204 No Content", &[], ""), "it is empty"),
    ] {
        let (problem, words, asked) = always(options(), wrong.clone()).await;
        assert!(
            matches!(problem, ModelError::BadAnswer { .. }) && words.contains(named),
            "{wrong:?}: {words}"
        );
        assert_eq!(asked, 3, "{named}");
        let (got, asked) = ask(options(), NO_HANG, move |before, _| match before {
            0 => wrong.clone(),
            _ => RogueReply::completion("hello"),
        })
        .await;
        assert_eq!((got.unwrap().text.as_str(), asked), ("hello", 2), "{named}");
    }
}

/// A small parcel that would unpack to a thousand times its size stays shut.
#[tokio::test]
async fn compressed_response_is_not_decompressed() {
    let parcel = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".as_slice(), &vec![0xec; 1 << 20]].concat();
    let wrong = RogueReply::http("200 OK", &[JSON, "content-encoding: gzip"], parcel);
    let ((problem, words, _), peak) = heap::peak_of(always(options(), wrong)).await;
    assert!(matches!(problem, ModelError::BadAnswer { .. }) && words.contains("packed (gzip)"), "{words}");
    assert!(peak < 16 << 20, "{peak} bytes");
}

/// Every byte comes in time, the answer never does.
#[tokio::test]
async fn slow_response_ends_at_the_deadline() {
    let drip = || RogueReply::Drip(head("200 OK", &[JSON, CHUNKED]), Duration::from_millis(50));
    for wrong in [
        RogueReply::Drip(head("200 OK", &[JSON]), Duration::from_millis(50)),
        RogueReply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), Duration::from_millis(50)),
        drip(),
    ] {
        let quick = ModelOptions { attempt_timeout: Duration::from_millis(300), ..options() };
        let (problem, words, asked) = always(quick, wrong).await;
        // Blanks are no chunk: a strict reader may say so before the time is over.
        let typed = matches!(problem, ModelError::Timeout { .. } | ModelError::Unreachable { .. });
        assert!(typed && asked == 3, "{words}");
    }
    let (got, asked) = ask(options(), Duration::from_millis(600), move |_, _| {
        RogueReply::Drip(head("200 OK", &[JSON]), Duration::from_millis(50))
    })
    .await;
    let problem = got.unwrap_err();
    assert!(matches!(problem, ModelError::Timeout { .. }) && asked == 1, "{problem}");
}

#[tokio::test]
async fn broken_connection_is_retried() {
    let half = [head("200 OK", &[JSON, "content-length: 1000"]), b"{\"choices\":".to_vec()].concat();
    for wrong in [
        RogueReply::Reset(half.clone()),
        RogueReply::Reset(Vec::new()),
        RogueReply::Bytes(half),
        RogueReply::Bytes(Vec::new()),
        RogueReply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
    ] {
        let (problem, words, asked) = always(options(), wrong.clone()).await;
        assert!(matches!(problem, ModelError::Unreachable { .. }) && asked == 3, "{wrong:?}: {words}");
        let (got, _) = ask(options(), NO_HANG, move |before, _| match before {
            0 | 1 => wrong.clone(),
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
        let (problem, words, asked) = always(options(), RogueReply::http(status, &[], "no GPU")).await;
        assert!(matches!(problem, ModelError::Refused { .. }) && asked == 3, "{words}");
        assert!(words.contains(&status[..3]) && words.contains("no GPU"), "{words}");
    }
}

#[tokio::test]
async fn repeated_rate_limiting_ends_at_the_deadline() {
    for wrong in [
        RogueReply::http("429 Too Many Requests", &[], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: 0"], ""),
        RogueReply::http("503 Service Unavailable", &["retry-after: 0.01"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: soon"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: -5"], ""),
        RogueReply::http("429 Too Many Requests", &["retry-after: nan"], ""),
    ] {
        let storm = wrong.clone();
        let (got, asked) = ask(options(), Duration::from_millis(400), move |_, _| storm.clone()).await;
        let problem = got.unwrap_err();
        assert!(matches!(problem, ModelError::RateLimited { .. }), "{wrong:?}: {problem}");
        assert!(problem.is_infrastructure() && asked > 3, "patience costs no retry: {asked} of {wrong:?}");
    }
}

#[tokio::test]
async fn excessive_retry_after_is_not_waited_for() {
    for asked_for in ["3600", "1e15", "99999999999999999999", "Thu, 31 Dec 9998 23:59:59 GMT"] {
        let header = format!("retry-after: {asked_for}");
        let (problem, words, asked) = always(options(), RogueReply::http("429 Slow", &[&header], "")).await;
        assert!(matches!(problem, ModelError::RateLimited { .. }) && asked == 1, "{asked_for}: {words}");
        assert!(words.contains("come back in"), "{words}");
    }
}

/// The key and the prompt go to nobody but whom they were meant for.
#[tokio::test]
async fn redirect_is_reported_and_not_followed() {
    let elsewhere = RogueServer::start(|_, _| RogueReply::completion("stolen")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let header = format!("location: {}/v1/chat/completions", elsewhere.url());
        let (problem, words, asked) = always(options(), RogueReply::http(status, &[&header], "")).await;
        assert!(matches!(problem, ModelError::Redirected { .. }) && asked == 1, "{words}");
        assert!(words.contains(&elsewhere.url()) && words.contains("not followed"), "{words}");
    }
    assert_eq!(elsewhere.request_count(), 0);
}

/// Takes one connection, and answers whatever comes first with these bytes.
fn says_once(bytes: &'static [u8]) -> (std::net::SocketAddr, std::thread::JoinHandle<()>) {
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
    for (scheme, bytes, named) in [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "does not speak TLS"),
        // An alert is what a TLS server says to plain HTTP.
        ("http", b"\x15\x03\x01\x00\x02\x02\x46", "does not speak HTTP"),
    ] {
        let (address, server) = says_once(bytes);
        let client = ModelClient::vllm(&format!("{scheme}://{address}"), options()).unwrap();
        let problem = client.choose_model(None, NO_HANG).await.unwrap_err();
        assert!(problem.to_string().contains(named), "{scheme}: {problem}");
        server.join().unwrap();
    }
}
