//! What both remotes (the model, the farm) need of HTTP: a pooled client with our TLS, answers of bounded size, one
//! deadline, and retries that ask the error whether they make sense.

mod deadline;
mod retry;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use net::escape::is_terminal_control;
pub use reqwest::{Client, Error};
use reqwest::{
    RequestBuilder, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER},
};

pub use deadline::Deadline;
pub use retry::{RetryPolicy, Verdict};
pub(crate) use retry::{Transient, retrying};

/// A client for one remote. Connections are kept and shared by everyone who clones it.
pub fn client(base: &str) -> Result<Client, String> {
    client_trusting(base, tls::roots(base.starts_with("https://"))?)
}

fn client_trusting(base: &str, roots: rustls::RootCertStore) -> Result<Client, String> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls::config(roots)?)
        .connect_timeout(Duration::from_secs(10))
        // A connection keeps the largest buffer that it ever needed: those left from a rush must not stay.
        .pool_idle_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("webgym/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base) {
        // A proxy set for the world must not swallow calls to this very machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|problem| problem.to_string())
}

pub(crate) fn is_loopback(address: &str) -> bool {
    let address = reqwest::Url::parse(address).ok();
    let host = address.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

/// Why there is no answer, before anyone has looked at one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Nothing was sent.
    Unreachable(String),
    /// The connection ended after the request was on its way.
    Lost(String),
    Timeout,
    TooLarge {
        limit: usize,
    },
}

/// An answer, whatever it says.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    /// Nothing is unpacked: we never ask for it, and a small parcel may hold a large one.
    pub(crate) encoding: String,
    /// Where a redirect points. Never followed: keys and prompts go to whom they were meant for.
    pub(crate) location: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Received {
    /// The body's first words, for an error message.
    pub(crate) fn excerpt(&self) -> String {
        excerpt(&String::from_utf8_lossy(&self.body[..self.body.len().min(2048)]))
    }
}

/// A stranger's first words on one line, without anything that a terminal would obey.
pub fn excerpt(text: &str) -> String {
    let is_gap = |letter: char| letter.is_whitespace() || is_terminal_control(letter);
    let line = text.split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Sends a request and takes in the answer, in at most `within` and at most `limit` bytes.
pub(crate) async fn exchange(
    request: RequestBuilder,
    within: Duration,
    limit: usize,
) -> Result<Received, Broken> {
    match tokio::time::timeout(within, receive(request, limit)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(Broken::Timeout),
    }
}

async fn receive(request: RequestBuilder, limit: usize) -> Result<Received, Broken> {
    let mut response = request.send().await.map_err(|problem| broken(&problem))?;
    let status = response.status();
    let content_type = header(response.headers(), &CONTENT_TYPE);
    let encoding = header(response.headers(), &CONTENT_ENCODING);
    let location = header(response.headers(), &LOCATION);
    let retry_after = retry_after(&header(response.headers(), &RETRY_AFTER));
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(Broken::TooLarge { limit });
    }
    let expected = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(expected.unwrap_or(0).min(1 << 20));
    while let Some(chunk) = response.chunk().await.map_err(|problem| broken(&problem))? {
        if body.len() + chunk.len() > limit {
            return Err(Broken::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Received { status, content_type, encoding, location, retry_after, body: body.into() })
}

fn header(headers: &HeaderMap, name: &reqwest::header::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn broken(problem: &reqwest::Error) -> Broken {
    let reason = reason(problem);
    if problem.is_connect() || problem.is_builder() {
        Broken::Unreachable(reason)
    } else if problem.is_timeout() {
        Broken::Timeout
    } else {
        Broken::Lost(reason)
    }
}

/// The innermost cause says what happened; the outer ones only repeat the address.
fn reason(problem: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = problem;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let words = excerpt(&cause.to_string());
    // What the libraries say about a wrong scheme helps nobody to mend it.
    match words.as_str() {
        "received corrupt message of type InvalidContentType" => {
            "what answers there does not speak TLS; is it http:// instead of https://?".to_owned()
        }
        "invalid HTTP version parsed" => {
            "what answers there does not speak HTTP; is it https:// instead of http://?".to_owned()
        }
        _ => words,
    }
}

/// `Retry-After` in seconds or as a date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        // More seconds than a duration holds are as good as for ever.
        return (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    let wait = date.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_comes_as_seconds_or_as_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("-1"), None);
        assert_eq!(retry_after("nan"), None);
        assert_eq!(retry_after("1e300"), Some(Duration::MAX));
    }

    #[test]
    fn an_excerpt_is_one_short_line_that_no_terminal_obeys() {
        assert_eq!(excerpt(" a\n\u{1b}[31mb\u{7} c\u{202e}d "), "a [31mb c d");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 301);
    }

    #[test]
    fn loopback_is_told_from_the_world() {
        for (address, wanted) in [
            ("http://localhost:80", true),
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1", true),
            ("https://api.example", false),
        ] {
            assert_eq!(is_loopback(address), wanted, "{address}");
        }
    }
}
