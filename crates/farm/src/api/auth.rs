//! The key every request carries.

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

use super::reply::Failed;
use crate::{error::FarmError, serve::DEFAULT_KEY};

/// The farm's key. Never printed.
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

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), FarmError> {
        let bearer =
            || headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let given = headers
            .get("x-api-key")
            .map(HeaderValue::as_bytes)
            .or_else(bearer)
            .ok_or(FarmError::MissingKey)?;
        if secrets_equal(given, self.0.as_bytes()) { Ok(()) } else { Err(FarmError::WrongKey) }
    }

    /// Everyone knows the built-in key, also a page in somebody's own browser whose name was made to point at this
    /// machine. Its requests are told by the name they are addressed to.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), FarmError> {
        let named = headers.get(HOST).map(|host| host.to_str().unwrap_or_default()).or(uri.host());
        if &*self.0 == DEFAULT_KEY && !named.is_none_or(is_local_host) {
            return Err(FarmError::ForeignHost);
        }
        Ok(())
    }
}

pub(crate) async fn require(
    State(key): State<Key>,
    request: Request,
    next: Next,
) -> Result<Response, Failed> {
    key.check(request.headers())?;
    key.check_host(request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_opens() {
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
    fn the_built_in_key_opens_only_to_local_names() {
        let check = |key: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            Key::new(key).check_host(&headers, &Uri::from_static("/info")).is_ok()
        };
        for good in [
            "localhost",
            "LOCALHOST:7000",
            "127.0.0.1:7000",
            "[::1]:7000",
            "[::1]",
            "10.0.0.1",
            "a.localhost:1",
        ] {
            assert!(check(DEFAULT_KEY, good), "{good}");
        }
        for bad in ["evil.test", "evil.test:7000", "localhost.evil.test", "127.0.0.1.evil.test:80", "", "a:b"]
        {
            assert!(!check(DEFAULT_KEY, bad), "{bad}");
            assert!(check("a key of one's own", bad), "{bad}");
        }
        assert!(Key::new(DEFAULT_KEY).check_host(&HeaderMap::new(), &Uri::from_static("/info")).is_ok());
    }
}
