//! Who may use the server. On loopback every user of this machine may; on other addresses a token is required. Web pages in a
//! browser on this machine may not.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use net::{host::is_local_host, secret::secrets_equal};

use crate::error::RequestError;

/// The rules of access. Its `Debug` output does not contain the token.
#[derive(Clone)]
pub(crate) struct Access {
    token: Option<Arc<str>>,
    is_generated: bool,
}

impl Access {
    /// Creates the rules of a server at `address`: with the given token, or a generated one if the address requires one.
    pub(crate) fn new(address: IpAddr, token: Option<String>) -> Self {
        let given = token.filter(|token| !token.is_empty());
        let is_generated = given.is_none() && !address.is_loopback();
        let token = given.or_else(|| is_generated.then(|| uuid::Uuid::new_v4().simple().to_string()));
        Self { token: token.map(Into::into), is_generated }
    }

    /// Returns the token if it was generated, so that the consumer must be told.
    pub(crate) fn generated_token(&self) -> Option<&str> {
        self.token.as_deref().filter(|_| self.is_generated)
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), RequestError> {
        if headers.contains_key(header::ORIGIN) {
            return Err(RequestError::Origin);
        }
        let Some(token) = &self.token else { return check_host(headers) };
        let sent =
            headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        match sent {
            Some(sent) if secrets_equal(sent, token.as_bytes()) => Ok(()),
            _ => Err(RequestError::Unauthorized),
        }
    }
}

/// Refuses the names of foreign websites, which may resolve to this machine.
fn check_host(headers: &HeaderMap) -> Result<(), RequestError> {
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if host.is_none_or(is_local_host) { Ok(()) } else { Err(RequestError::Host) }
}

/// Middleware that refuses requests without access. Health checks need none.
pub(crate) async fn require(
    State(access): State<Access>,
    request: Request,
    next: Next,
) -> Result<Response, RequestError> {
    if request.uri().path() != "/healthz" {
        access.check(request.headers())?;
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn status(access: &Access, headers: &[(&'static str, &'static str)]) -> Result<(), u16> {
        use axum::response::IntoResponse;
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        access.check(&headers).map_err(|error| error.into_response().status().as_u16())
    }

    #[test]
    fn token_is_required_outside_loopback() {
        let open = Access::new([127, 0, 0, 1].into(), None);
        assert_eq!(status(&open, &[("host", "127.0.0.1:5100")]), Ok(()));
        assert_eq!(open.generated_token(), None);
        let everywhere = Access::new([0, 0, 0, 0].into(), None);
        assert!(everywhere.generated_token().is_some_and(|token| token.len() == 32));
        assert_eq!(status(&everywhere, &[("host", "127.0.0.1:5100")]), Err(401));
        let chosen = Access::new([0, 0, 0, 0].into(), Some("secret".into()));
        assert_eq!(chosen.generated_token(), None, "a chosen token is not printed");
        assert_eq!(status(&chosen, &[("authorization", "Bearer secret"), ("host", "far.test")]), Ok(()));
        assert_eq!(status(&chosen, &[("authorization", "Bearer secre")]), Err(401));
        assert_eq!(status(&chosen, &[("authorization", "secret")]), Err(401));
    }

    #[test]
    fn web_pages_are_refused() {
        let open = Access::new([127, 0, 0, 1].into(), None);
        assert_eq!(status(&open, &[("host", "evil.test")]), Err(403));
        assert_eq!(status(&open, &[("host", "localhost:1"), ("origin", "http://localhost:3000")]), Err(403));
    }
}
