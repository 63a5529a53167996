//! What the clients of farm and chat servers share: a pooled HTTP client with TLS, responses of bounded size, deadlines, and
//! retries that depend on the kind of error.

mod deadline;
mod retry;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use net::escape::is_terminal_control;
pub use reqwest::{Client, Error};
use reqwest::{
    RequestBuilder, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER},
};

pub use deadline::Deadline;
pub use retry::{RetryAdvice, RetryPolicy};
pub(crate) use retry::{Retryable, retry};

/// Whether connections stay open for the next request. An open connection keeps the largest buffer it ever needed, which for
/// screenshots is about 300 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// They are closed after a few seconds without a request: fast for steady traffic.
    #[default]
    Short,
    /// Each request has its own: small, for many sessions that wait most of the time.
    Never,
}

/// Creates a client for the server at `base`. Clones share its connections.
pub fn client(base: &str) -> Result<Client, String> {
    client_keeping(base, KeepAlive::Short)
}

pub(crate) fn client_keeping(base: &str, keep_alive: KeepAlive) -> Result<Client, String> {
    client_trusting(base, tls::roots(base.starts_with("https://"))?, keep_alive)
}

fn client_trusting(
    base: &str,
    roots: rustls::RootCertStore,
    keep_alive: KeepAlive,
) -> Result<Client, String> {
    let max_idle = match keep_alive {
        KeepAlive::Short => usize::MAX,
        KeepAlive::Never => 0,
    };
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls::config(roots)?)
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(max_idle)
        .pool_idle_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("webgym/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base) {
        // A proxy configured in the environment cannot reach our loopback addresses.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn is_loopback(address: &str) -> bool {
    let address = reqwest::Url::parse(address).ok();
    let host = address.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// Nothing was sent.
    Unreachable(String),
    /// The connection broke after the request was sent.
    Lost(String),
    Timeout,
    TooLarge {
        limit: usize,
    },
}

/// The longest version of a policy that is recorded.
const MAX_VERSION_BYTES: usize = 500;
const POLICY_VERSION: HeaderName = HeaderName::from_static("x-policy-version");

/// A response with any status.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    /// The `Content-Encoding`. Bodies are never decompressed: we do not ask for it, and a small body may expand to a huge one.
    pub(crate) encoding: String,
    /// The target of a redirect. Redirects are not followed, so that keys and prompts stay with the configured server.
    pub(crate) location: String,
    pub(crate) retry_after: Option<Duration>,
    /// The header `x-policy-version` of a chat server.
    pub(crate) policy_version: Option<String>,
    pub(crate) body: Bytes,
}

impl HttpResponse {
    /// Returns the start of the body for an error message.
    pub(crate) fn excerpt(&self) -> String {
        excerpt(&String::from_utf8_lossy(&self.body[..self.body.len().min(2048)]))
    }
}

/// Returns the start of a foreign text as one line without terminal control characters.
pub fn excerpt(text: &str) -> String {
    let is_gap = |letter: char| letter.is_whitespace() || is_terminal_control(letter);
    let line = text.split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Sends a request and reads the response, within the time `within` and up to `limit` bytes.
pub(crate) async fn send_request(
    request: RequestBuilder,
    within: Duration,
    limit: usize,
) -> Result<HttpResponse, TransportError> {
    match tokio::time::timeout(within, receive(request, limit)).await {
        Ok(result) => result,
        Err(_elapsed) => Err(TransportError::Timeout),
    }
}

async fn receive(request: RequestBuilder, limit: usize) -> Result<HttpResponse, TransportError> {
    let mut response = request.send().await.map_err(|error| transport_error(&error))?;
    let status = response.status();
    let content_type = header(response.headers(), &CONTENT_TYPE);
    let encoding = header(response.headers(), &CONTENT_ENCODING);
    let location = header(response.headers(), &LOCATION);
    let retry_after = retry_after(&header(response.headers(), &RETRY_AFTER));
    let policy_version =
        Some(header(response.headers(), &POLICY_VERSION)).filter(|version| is_version(version));
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(TransportError::TooLarge { limit });
    }
    let expected = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(expected.unwrap_or(0).min(1 << 20));
    while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(TransportError::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    let body = body.into();
    Ok(HttpResponse { status, content_type, encoding, location, retry_after, policy_version, body })
}

/// Whether a text can be recorded as a version: not empty, short, and without control characters.
pub(crate) fn is_version(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_VERSION_BYTES && !text.chars().any(char::is_control)
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn transport_error(error: &reqwest::Error) -> TransportError {
    let reason = reason(error);
    if error.is_connect() || error.is_builder() {
        TransportError::Unreachable(reason)
    } else if error.is_timeout() {
        TransportError::Timeout
    } else {
        TransportError::Lost(reason)
    }
}

/// Returns the innermost cause, because the outer ones only repeat the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = excerpt(&cause.to_string());
    // The messages of the libraries about a wrong scheme do not say how to fix it.
    match text.as_str() {
        "received corrupt message of type InvalidContentType" => {
            "the server does not use TLS; should the URL start with http:// instead of https://?".to_owned()
        }
        "invalid HTTP version parsed" => {
            "the server does not use plain HTTP; should the URL start with https:// instead of http://?"
                .to_owned()
        }
        _ => text,
    }
}

/// Parses `Retry-After`, which is a number of seconds or a date.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        // More seconds than a `Duration` can hold become the maximum.
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
    fn retry_after_accepts_seconds_and_dates() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("-1"), None);
        assert_eq!(retry_after("nan"), None);
        assert_eq!(retry_after("1e300"), Some(Duration::MAX));
    }

    #[test]
    fn excerpt_is_one_short_line_without_control_characters() {
        assert_eq!(excerpt(" a\n\u{1b}[31mb\u{7} c\u{202e}d "), "a [31mb c d");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 301);
    }

    #[test]
    fn loopback_urls_are_recognized() {
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
