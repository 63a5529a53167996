//! The key every request carries.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header::AUTHORIZATION},
    middleware::Next,
    response::Response,
};

use super::reply::Failed;
use crate::error::FarmError;

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
        if same(given, self.0.as_bytes()) { Ok(()) } else { Err(FarmError::WrongKey) }
    }
}

/// Compares in a time that does not tell where they differ.
fn same(given: &[u8], key: &[u8]) -> bool {
    let mut different = given.len() ^ key.len();
    for (index, byte) in given.iter().enumerate() {
        different |= usize::from(byte ^ key.get(index % key.len().max(1)).copied().unwrap_or_default());
    }
    std::hint::black_box(different) == 0
}

pub(crate) async fn require(
    State(key): State<Key>,
    request: Request,
    next: Next,
) -> Result<Response, Failed> {
    key.check(request.headers())?;
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
}
