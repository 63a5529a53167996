//! The responses of the proxy itself.

use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};

use super::ConnectError;

pub(crate) type BodyError = Box<dyn Error + Send + Sync>;
pub(crate) type ProxyResponse = Response<UnsyncBoxBody<Bytes, BodyError>>;

/// The response body for a forbidden address.
const REFUSED_MESSAGE: &str =
    "webgym: pages may not reach this address (see --allow-host and --allow-private-network)";

pub(crate) fn full_body(content: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, BodyError> {
    Full::new(content.into()).map_err(|never| match never {}).boxed_unsync()
}

impl ConnectError {
    /// Chromium's name of the error, without its prefix.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Refused(_) => "BlockedByClient",
            Self::Unresolved(_) => "NameNotResolved",
            Self::Failed(_) => "ConnectionFailed",
            Self::Proxy(_) => "ProxyConnectionFailed",
        }
    }
}

/// The header tells our own browsers that the response is not the site's.
pub(crate) fn error_response(error: &ConnectError) -> ProxyResponse {
    let (status, text) = match error {
        ConnectError::Refused(reason) => {
            tracing::debug!(%reason, "refused a connection of a page");
            // The page may read this response, so it must not reveal what internal names resolve to.
            (StatusCode::FORBIDDEN, REFUSED_MESSAGE.to_owned())
        }
        ConnectError::Unresolved(reason) => (StatusCode::BAD_GATEWAY, reason.clone()),
        ConnectError::Failed(reason) => {
            (StatusCode::BAD_GATEWAY, format!("webgym: the site cannot be reached: {reason}"))
        }
        ConnectError::Proxy(reason) => {
            (StatusCode::BAD_GATEWAY, format!("webgym: the proxy of the lease does not work: {reason}"))
        }
    };
    failure(status, &text, error.reason())
}

/// A response in place of the site's, with the error that a visit reports.
pub(crate) fn failure(status: StatusCode, text: &str, reason: &'static str) -> ProxyResponse {
    let mut response = text_response(status, text);
    response.headers_mut().insert(browser::PROXY_ERROR_HEADER, HeaderValue::from_static(reason));
    response
}

pub(crate) fn text_response(status: StatusCode, text: &str) -> ProxyResponse {
    let mut response = Response::new(full_body(format!("{text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
