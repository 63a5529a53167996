//! Access to the pages. On loopback every user of this machine has access. On other addresses a token is required: in the
//! printed link, as `Authorization: Bearer`, or in the cookie that the link sets.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use net::{host::is_local_host, secret::secrets_equal};

use crate::page::set_security_headers;

/// Decides which requests are allowed. Its `Debug` output does not contain the token.
#[derive(Clone)]
pub struct Access {
    token: Arc<Option<String>>,
    /// The user chose the token, so it need not be printed.
    is_chosen: bool,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.token.is_some() { "Access(token)" } else { "Access(open)" })
    }
}

impl Access {
    /// Creates the access rules of a server bound to `address`: with the given token, or with a generated one if the address
    /// requires a token.
    pub fn new(address: IpAddr, token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        let generate = || (!address.is_loopback()).then(|| uuid::Uuid::new_v4().simple().to_string());
        let is_chosen = token.is_some();
        Self { token: Arc::new(token.or_else(generate)), is_chosen }
    }

    /// Returns the query that a link needs: `?token=…`, or nothing.
    pub fn query(&self) -> String {
        self.token.as_ref().as_ref().map_or_else(String::new, |token| format!("?token={token}"))
    }

    /// Returns the query for logs: a token that the user chose is replaced by a placeholder.
    pub fn shown_query(&self) -> String {
        if self.is_chosen { "?token=YOURS".to_owned() } else { self.query() }
    }

    /// Checks every request to `routes` and adds the security headers to every response.
    pub fn protect(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), check))
    }

    /// Returns the name of the cookie. Servers on one machine share cookies regardless of their ports, so each token has a
    /// name of its own.
    fn cookie_name(token: &str) -> String {
        let mut hasher = DefaultHasher::new();
        ("webgym", token).hash(&mut hasher);
        format!("webgym_{:016x}", hasher.finish())
    }
}

async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let mut response = match decide(access.token.as_deref(), &request) {
        Decision::Allow => next.run(request).await,
        Decision::Redirect { location, cookie } => {
            let headers = [(header::LOCATION, location), (header::SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Decision::Deny(status, reason) => {
            (status, axum::Json(serde_json::json!({"status": "error", "detail": reason}))).into_response()
        }
    };
    set_security_headers(&mut response);
    response
}

enum Decision {
    Allow,
    /// The link contained the token: set the cookie and load the same URL without the token, so that it is neither shown in
    /// the address bar nor stored in the history.
    Redirect {
        location: String,
        cookie: String,
    },
    Deny(StatusCode, &'static str),
}

fn decide(token: Option<&str>, request: &Request) -> Decision {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Decision::Deny(StatusCode::METHOD_NOT_ALLOWED, "this server is read-only; use GET");
    }
    if request.uri().path() == "/healthz" {
        return Decision::Allow;
    }
    let Some(token) = token else {
        // Against DNS rebinding: a foreign site whose name resolves to this machine sends that name as Host.
        return if has_local_host(request.headers()) {
            Decision::Allow
        } else {
            Decision::Deny(
                StatusCode::FORBIDDEN,
                "without a token, this server accepts only localhost and IP addresses as Host; \
                 configure the reverse proxy to send 'Host: localhost', or start the server with a token",
            )
        };
    };
    if let Some(given) = token_in_query(request.uri()) {
        if secrets_equal(given.as_bytes(), token.as_bytes()) {
            // Without a Path attribute the browser uses the folder of the URL, including the prefix of a reverse proxy.
            let cookie = format!("{}={token}; HttpOnly; SameSite=Strict", Access::cookie_name(token));
            return Decision::Redirect { location: without_token(request.uri()), cookie };
        }
    } else if has_token(request.headers(), token) {
        return Decision::Allow;
    }
    Decision::Deny(StatusCode::UNAUTHORIZED, "open the link with ?token=… that was printed at startup")
}

/// Checks for the token in the `Authorization` header and in the cookie.
fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let name = Access::cookie_name(token);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    bearer.is_some_and(|given| secrets_equal(given, token.as_bytes()))
        || pairs.any(|(key, value)| key == name && secrets_equal(value.as_bytes(), token.as_bytes()))
}

fn token_in_query(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Returns the URL without the token, relative to itself, so that the prefix of a reverse proxy is kept.
fn without_token(uri: &Uri) -> String {
    let file = uri.path().rsplit_once('/').map_or("", |(_, last)| last);
    let rest = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("token="));
    let rest = rest.collect::<Vec<_>>().join("&");
    let separator = if rest.is_empty() { "" } else { "?" };
    format!("./{file}{separator}{rest}")
}

/// Returns true also without a `Host` header, because browsers always send one.
fn has_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    host.is_none_or(is_local_host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    /// Returns the redirect target of an allowed request, if any, or the status of a denied one.
    fn request(token: Option<&str>, uri: &str, headers: &[(&str, &str)]) -> Result<Option<String>, u16> {
        let request = headers
            .iter()
            .fold(Request::builder().uri(uri), |request, (name, value)| request.header(*name, *value));
        match decide(token, &request.body(Body::empty()).unwrap()) {
            Decision::Allow => Ok(None),
            Decision::Redirect { location, .. } => Ok(Some(location)),
            Decision::Deny(status, _) => Err(status.as_u16()),
        }
    }

    #[test]
    fn only_complete_token_gives_access() {
        assert_eq!(request(Some("abc"), "/", &[]), Err(401));
        assert_eq!(request(Some("abc"), "/?token=ab", &[]), Err(401));
        assert_eq!(request(Some("abc"), "/?token=abcd", &[]), Err(401));
        assert_eq!(request(Some("abc"), "/?token=", &[]), Err(401));
        assert_eq!(request(Some("abc"), "/api/x?a=1&token=abc&b=2", &[]), Ok(Some("./x?a=1&b=2".into())));
        assert_eq!(request(Some("abc"), "/?token=abc", &[]), Ok(Some("./".into())));
        assert_eq!(request(Some("abc"), "/", &[("authorization", "Bearer abc")]), Ok(None));
        let cookie = format!("other=1; {}=abc", Access::cookie_name("abc"));
        assert_eq!(request(Some("abc"), "/", &[("cookie", &cookie)]), Ok(None));
        assert_eq!(request(Some("abc"), "/", &[("cookie", &cookie.replace("abc", "abd"))]), Err(401));
        assert_eq!(request(Some("abc"), "/healthz", &[]), Ok(None));
    }

    #[test]
    fn foreign_host_is_refused_without_token() {
        for local in
            ["localhost", "localhost:5000", "127.0.0.1:5000", "[::1]:5000", "10.0.0.1", "a.localhost:1"]
        {
            assert_eq!(request(None, "/", &[("host", local)]), Ok(None), "{local}");
        }
        for foreign in
            ["evil.example", "evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example:80"]
        {
            assert_eq!(request(None, "/", &[("host", foreign)]), Err(403), "{foreign}");
        }
    }

    #[test]
    fn token_is_generated_only_outside_loopback() {
        assert_eq!(Access::new([127, 0, 0, 1].into(), None).query(), "");
        assert!(Access::new([0, 0, 0, 0].into(), None).query().len() > 30);
        let chosen = Access::new([127, 0, 0, 1].into(), Some("t".into()));
        assert_eq!((chosen.query().as_str(), chosen.shown_query().as_str()), ("?token=t", "?token=YOURS"));
        assert!(!format!("{:?}", Access::new([0, 0, 0, 0].into(), Some("secret".into()))).contains("secret"));
    }
}
