//! Checks the API key of every request.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Uri,
        header::{AUTHORIZATION, HOST},
    },
    middleware::Next,
    response::Response,
};
use net::{host::is_local_host, secret::secrets_equal};

use super::response::ErrorResponse;
use crate::{error::ApiError, serve::DEFAULT_KEY};

/// The farm's API key. Never printed.
#[derive(Clone)]
pub(crate) struct Key(Arc<str>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    pub(crate) fn new(key: &str) -> Self {
        Self(key.into())
    }

    /// Returns the key as a header value, unless it contains characters that a header cannot have.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let bearer =
            || headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let sent = headers
            .get("x-api-key")
            .map(HeaderValue::as_bytes)
            .or_else(bearer)
            .ok_or(ApiError::MissingKey)?;
        if secrets_equal(sent, self.0.as_bytes()) { Ok(()) } else { Err(ApiError::WrongKey) }
    }

    /// Protects the built-in key, which everyone knows, against DNS rebinding: a web page in a local browser could send
    /// it to a host name that resolves to this machine. Such requests have that name in their `Host` header.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default()).or(uri.host());
        if &*self.0 == DEFAULT_KEY && !host.is_none_or(is_local_host) {
            return Err(ApiError::ForeignHost);
        }
        Ok(())
    }
}

/// Middleware that refuses requests without the right key.
pub(crate) async fn require(
    State(key): State<Key>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorResponse> {
    key.check(request.headers())?;
    key.check_host(request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_key_is_accepted() {
        let key = Key::new("secret");
        let check = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            key.check(&headers).map_err(|error| error.to_string())
        };
        assert_eq!(check("x-api-key", "secret"), Ok(()));
        assert_eq!(check("authorization", "Bearer secret"), Ok(()));
        for wrong in ["", "s", "secre", "secrets", "secretsecret", "Secret"] {
            assert_eq!(check("x-api-key", wrong), Err("Invalid API Key.".to_owned()), "{wrong}");
        }
        assert_eq!(key.check(&HeaderMap::new()).unwrap_err().to_string(), "API Key is missing");
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn built_in_key_is_accepted_only_for_local_hosts() {
        let check = |key: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            Key::new(key).check_host(&headers, &Uri::from_static("/info")).is_ok()
        };
        for local in [
            "localhost",
            "LOCALHOST:7000",
            "127.0.0.1:7000",
            "[::1]:7000",
            "[::1]",
            "10.0.0.1",
            "a.localhost:1",
        ] {
            assert!(check(DEFAULT_KEY, local), "{local}");
        }
        for foreign in
            ["evil.test", "evil.test:7000", "localhost.evil.test", "127.0.0.1.evil.test:80", "", "a:b"]
        {
            assert!(!check(DEFAULT_KEY, foreign), "{foreign}");
            assert!(check("another key", foreign), "{foreign}");
        }
        assert!(Key::new(DEFAULT_KEY).check_host(&HeaderMap::new(), &Uri::from_static("/info")).is_ok());
    }
}
