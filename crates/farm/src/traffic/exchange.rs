//! Requests and responses of the proxy as the archive has them, and back.

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode, Uri, Version,
    header::{HeaderName, HeaderValue},
    http::{request, response},
    upgrade::OnUpgrade,
};
use replay::Headers;

use crate::egress::{BodyError, ProxyResponse};

/// The site for which the proxy answers.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) scheme: &'static str,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    /// The absolute URL of a request to this site.
    pub(super) fn url(&self, uri: &Uri) -> String {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.scheme, self.port) {
            ("http", 80) | ("https", 443) => format!("{}://{host}{path}", self.scheme),
            (scheme, port) => format!("{scheme}://{host}:{port}{path}"),
        }
    }
}

/// A request of a page, complete with its body.
pub(super) struct Asked {
    pub(super) request: replay::Request,
    pub(super) parts: request::Parts,
    /// Set if the page opens a WebSocket.
    pub(super) websocket: Option<OnUpgrade>,
}

/// The request is dropped without a response, so that the page sees a network error.
#[derive(Debug, thiserror::Error)]
#[error("the request fails on purpose")]
pub(crate) struct Dropped;

impl Asked {
    pub(super) fn new(mut parts: request::Parts, body: Bytes, origin: &Origin) -> Self {
        let url = origin.url(&parts.uri);
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let is_websocket = parts
            .headers
            .get(hyper::header::UPGRADE)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
        let request =
            replay::Request { method: parts.method.to_string(), url, headers: headers(&parts.headers), body };
        Self { request, parts, websocket: upgrade.filter(|_| is_websocket) }
    }

    /// CDP's name of the kind of resource.
    pub(super) fn resource_type(&self) -> Option<&'static str> {
        if self.websocket.is_some() {
            return Some("websocket");
        }
        Some(match self.request.headers.text("sec-fetch-dest")? {
            "document" | "iframe" | "frame" | "embed" | "object" => "document",
            "script" | "worker" | "sharedworker" | "serviceworker" => "script",
            "style" => "stylesheet",
            "image" => "image",
            "font" => "font",
            "audio" | "video" | "track" => "media",
            "manifest" => "manifest",
            "empty" => "fetch",
            _ => "other",
        })
    }

    /// Whether a failure can be reported as a network error by dropping the request. A page gets a response instead, whose header
    /// says which error it was.
    fn can_be_dropped(&self) -> bool {
        self.resource_type().is_some_and(|kind| kind != "document")
    }

    /// Fails the request: `response` tells a visit the reason.
    pub(super) fn fail(&self, response: ProxyResponse) -> Result<ProxyResponse, Dropped> {
        if self.can_be_dropped() { Err(Dropped) } else { Ok(response) }
    }
}

fn headers(map: &HeaderMap) -> Headers {
    map.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// The head of a response, without its body.
pub(super) fn head(parts: &response::Parts) -> replay::Response {
    let reason = parts.status.canonical_reason().unwrap_or_default().to_owned();
    replay::Response {
        status: parts.status.as_u16(),
        reason,
        headers: headers(&parts.headers),
        body: Bytes::new(),
    }
}

pub(super) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "h2",
        Version::HTTP_10 => "http/1.0",
        _ => "http/1.1",
    }
}

/// Converts a recorded response to an HTTP response. Headers that are invalid in HTTP are left out.
pub(super) fn to_http<B>(response: &replay::Response, body: B) -> Response<B> {
    let mut sent = Response::new(body);
    *sent.status_mut() = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in response.headers.iter() {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        {
            sent.headers_mut().append(name, value);
        }
    }
    sent
}

/// Chromium's reason for a recorded network error, as the header for our browser has it.
pub(super) fn reason(net_error: &str) -> &'static str {
    match net_error {
        "net::ERR_NAME_NOT_RESOLVED" => "NameNotResolved",
        "net::ERR_CONNECTION_REFUSED" => "ConnectionRefused",
        "net::ERR_CONNECTION_RESET" => "ConnectionReset",
        "net::ERR_CONNECTION_FAILED" => "ConnectionFailed",
        "net::ERR_TIMED_OUT" | "net::ERR_CONNECTION_TIMED_OUT" => "TimedOut",
        "net::ERR_ADDRESS_UNREACHABLE" => "AddressUnreachable",
        "net::ERR_INTERNET_DISCONNECTED" => "InternetDisconnected",
        "net::ERR_BLOCKED_BY_CLIENT" => "BlockedByClient",
        "net::ERR_PROXY_CONNECTION_FAILED" => "ProxyConnectionFailed",
        "net::ERR_CERT_DATE_INVALID" => "CertDateInvalid",
        "net::ERR_CERT_COMMON_NAME_INVALID" => "CertCommonNameInvalid",
        "net::ERR_CERT_AUTHORITY_INVALID" => "CertAuthorityInvalid",
        "net::ERR_SSL_PROTOCOL_ERROR" => "SslProtocolError",
        _ => "ConnectionClosed",
    }
}

/// The error of a body that ends too early.
pub(super) fn broken(message: &str) -> BodyError {
    message.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_omits_the_default_port() {
        let url = |scheme, host: &str, port, uri: &str| {
            Origin { scheme, host: host.into(), port }.url(&uri.parse().unwrap())
        };
        assert_eq!(url("https", "a.test", 443, "/x?y=1"), "https://a.test/x?y=1");
        assert_eq!(url("https", "a.test", 8443, "https://a.test:8443/x"), "https://a.test:8443/x");
        assert_eq!(url("http", "::1", 80, "/"), "http://[::1]/");
    }
}
