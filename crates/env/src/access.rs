//! Who may use the server: the API key, and protection against web pages in a browser on this machine.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode, Uri,
        header::{AUTHORIZATION, HOST, ORIGIN},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use net::{host::is_local_host, secret::secrets_equal};
use serde_json::json;

use crate::server::Shared;

/// The rules of access to a server.
pub(crate) struct Access {
    /// Without a key, only requests that are addressed to this machine are accepted.
    key: Option<String>,
    /// Origins of web pages that may use the server, besides those of this machine.
    origins: Vec<String>,
}

impl Access {
    pub(crate) const fn new(key: Option<String>, origins: Vec<String>) -> Self {
        Self { key, origins }
    }

    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Denied> {
        self.check_origin(headers)?;
        let Some(key) = &self.key else { return check_host(headers, uri) };
        let bearer =
            || headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let sent = headers.get("x-api-key").map(HeaderValue::as_bytes).or_else(bearer);
        match sent {
            None => Err(Denied::MissingKey),
            Some(sent) if secrets_equal(sent, key.as_bytes()) => Ok(()),
            Some(_) => Err(Denied::WrongKey),
        }
    }

    /// Refuses web pages of other origins: a browser sends their origin, other clients send none.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.split_once("://").map(|(_, host)| host);
        let is_local = host.is_some_and(is_local_host);
        if is_local || self.origins.iter().any(|allowed| allowed == origin) {
            Ok(())
        } else {
            Err(Denied::Origin)
        }
    }
}

fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), Denied> {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default()).or(uri.host());
    if host.is_none_or(is_local_host) { Ok(()) } else { Err(Denied::Host) }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("the API key is missing; send it as x-api-key or as Authorization: Bearer KEY")]
    MissingKey,
    #[error("the API key is wrong")]
    WrongKey,
    #[error("web pages of this origin may not use the server; allow it with --allow-origin")]
    Origin,
    #[error("a server without a key accepts only requests to localhost or an IP address; set --api-key")]
    Host,
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let status = match self {
            Self::MissingKey | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::Origin | Self::Host => StatusCode::FORBIDDEN,
        };
        (status, Json(json!({"detail": self.to_string()}))).into_response()
    }
}

/// Middleware that refuses requests without access.
pub(crate) async fn require(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Result<Response, Denied> {
    shared.access.check(request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(access: &Access, headers: &[(&'static str, &str)]) -> Result<(), Denied> {
        let headers = headers.iter().map(|(name, value)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        access.check(&headers.collect(), &Uri::from_static("/ws"))
    }

    #[test]
    fn only_the_exact_key_is_accepted() {
        let access = Access::new(Some("secret".into()), Vec::new());
        assert_eq!(check(&access, &[("x-api-key", "secret")]), Ok(()));
        assert_eq!(check(&access, &[("authorization", "Bearer secret"), ("host", "far.test")]), Ok(()));
        assert_eq!(check(&access, &[]), Err(Denied::MissingKey));
        assert_eq!(check(&access, &[("x-api-key", "secre")]), Err(Denied::WrongKey));
    }

    #[test]
    fn foreign_web_pages_are_refused() {
        let access = Access::new(None, vec!["https://app.test".into()]);
        assert_eq!(check(&access, &[("host", "127.0.0.1:1")]), Ok(()));
        assert_eq!(check(&access, &[("host", "evil.test")]), Err(Denied::Host));
        let with_origin = |origin: &str| check(&access, &[("host", "localhost:1"), ("origin", origin)]);
        assert_eq!(with_origin("http://localhost:3000"), Ok(()));
        assert_eq!(with_origin("https://app.test"), Ok(()));
        for foreign in ["https://evil.test", "null", "https://app.test.evil.test"] {
            assert_eq!(with_origin(foreign), Err(Denied::Origin), "{foreign}");
        }
    }
}
