//! Who may look. On loopback everyone on this machine; beyond it only who has the token: in the link that is printed at
//! the start, as `Authorization: Bearer`, or in the cookie that the link leaves behind.

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

use super::set_security_headers;

/// Decides who may look. Never prints its token but in [`Guard::query`].
#[derive(Clone)]
pub struct Guard {
    token: Arc<Option<String>>,
    /// Chosen by whoever started the server, who knows it.
    own: bool,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.token.is_some() { "Guard(token)" } else { "Guard(open)" })
    }
}

impl Guard {
    /// For a server bound to `address`: the given token, or a fresh one where one is needed.
    pub fn new(address: IpAddr, token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        let fresh = || (!address.is_loopback()).then(|| uuid::Uuid::new_v4().simple().to_string());
        let own = token.is_some();
        Self { token: Arc::new(token.or_else(fresh)), own }
    }

    /// What a link must carry to be let in: `?token=…`, or nothing.
    pub fn query(&self) -> String {
        self.token.as_ref().as_ref().map_or_else(String::new, |token| format!("?token={token}"))
    }

    /// The same for logs: a token that was chosen is known to who chose it, and not to be told to others.
    pub fn shown_query(&self) -> String {
        if self.own { "?token=YOURS".to_owned() } else { self.query() }
    }

    /// Puts the guard, and the headers that all answers carry, around everything in `routes`.
    pub fn around(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), check))
    }

    /// Two servers of one machine share its cookies, whatever their ports: each has a name of its own.
    fn cookie(token: &str) -> String {
        let mut hasher = DefaultHasher::new();
        ("webgym", token).hash(&mut hasher);
        format!("webgym_{:016x}", hasher.finish())
    }
}

async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut answer = match admit(guard.token.as_deref(), &request) {
        Admission::Welcome => next.run(request).await,
        Admission::WelcomeVia(link, cookie) => {
            let headers = [(header::LOCATION, link), (header::SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Admission::No(status, why) => {
            (status, axum::Json(serde_json::json!({"status": "error", "detail": why}))).into_response()
        }
    };
    set_security_headers(&mut answer);
    answer
}

enum Admission {
    Welcome,
    /// Once more without the token in the address, which browsers remember and show.
    WelcomeVia(String, String),
    No(StatusCode, &'static str),
}

fn admit(token: Option<&str>, request: &Request) -> Admission {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Admission::No(StatusCode::METHOD_NOT_ALLOWED, "this server only shows; it takes no orders");
    }
    if request.uri().path() == "/healthz" {
        return Admission::Welcome;
    }
    let Some(token) = token else {
        // A name that is not ours is a page elsewhere that had its name point here, to read what it may not.
        return if is_local(request.headers()) {
            Admission::Welcome
        } else {
            Admission::No(
                StatusCode::FORBIDDEN,
                "without a token this server answers only to localhost and plain addresses; \
                 a reverse proxy should send 'Host: localhost', or start it with a token",
            )
        };
    };
    if let Some(given) = query_token(request.uri()) {
        if secrets_equal(given.as_bytes(), token.as_bytes()) {
            // No Path: it then is the folder of this address as the browser sees it, prefix and all.
            let cookie = format!("{}={token}; HttpOnly; SameSite=Strict", Guard::cookie(token));
            return Admission::WelcomeVia(without_token(request.uri()), cookie);
        }
    } else if carries(request.headers(), token) {
        return Admission::Welcome;
    }
    Admission::No(StatusCode::UNAUTHORIZED, "open the link with ?token=… that was printed at the start")
}

fn carries(headers: &HeaderMap, token: &str) -> bool {
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let name = Guard::cookie(token);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    bearer.is_some_and(|given| secrets_equal(given, token.as_bytes()))
        || pairs.any(|(key, value)| key == name && secrets_equal(value.as_bytes(), token.as_bytes()))
}

fn query_token(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// The same address without the token, relative to itself: what a proxy put in front of it stays.
fn without_token(uri: &Uri) -> String {
    let place = uri.path().rsplit_once('/').map_or("", |(_, last)| last);
    let rest = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("token="));
    let rest = rest.collect::<Vec<_>>().join("&");
    let mark = if rest.is_empty() { "" } else { "?" };
    format!("./{place}{mark}{rest}")
}

/// A request without a `Host` header does not come from a browser.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    host.is_none_or(is_local_host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn ask(token: Option<&str>, uri: &str, headers: &[(&str, &str)]) -> Result<Option<String>, u16> {
        let request = headers
            .iter()
            .fold(Request::builder().uri(uri), |request, (name, value)| request.header(*name, *value));
        match admit(token, &request.body(Body::empty()).unwrap()) {
            Admission::Welcome => Ok(None),
            Admission::WelcomeVia(link, _) => Ok(Some(link)),
            Admission::No(status, _) => Err(status.as_u16()),
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
        assert_eq!(ask(Some("abc"), "/", &[]), Err(401));
        assert_eq!(ask(Some("abc"), "/?token=ab", &[]), Err(401));
        assert_eq!(ask(Some("abc"), "/?token=abcd", &[]), Err(401));
        assert_eq!(ask(Some("abc"), "/?token=", &[]), Err(401));
        assert_eq!(ask(Some("abc"), "/api/x?a=1&token=abc&b=2", &[]), Ok(Some("./x?a=1&b=2".into())));
        assert_eq!(ask(Some("abc"), "/?token=abc", &[]), Ok(Some("./".into())));
        assert_eq!(ask(Some("abc"), "/", &[("authorization", "Bearer abc")]), Ok(None));
        let cookie = format!("other=1; {}=abc", Guard::cookie("abc"));
        assert_eq!(ask(Some("abc"), "/", &[("cookie", &cookie)]), Ok(None));
        assert_eq!(ask(Some("abc"), "/", &[("cookie", &cookie.replace("abc", "abd"))]), Err(401));
        assert_eq!(ask(Some("abc"), "/healthz", &[]), Ok(None));
    }

    #[test]
    fn a_foreign_name_that_points_here_learns_nothing() {
        for good in
            ["localhost", "localhost:5000", "127.0.0.1:5000", "[::1]:5000", "10.0.0.1", "a.localhost:1"]
        {
            assert_eq!(ask(None, "/", &[("host", good)]), Ok(None), "{good}");
        }
        for bad in
            ["evil.example", "evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example:80"]
        {
            assert_eq!(ask(None, "/", &[("host", bad)]), Err(403), "{bad}");
        }
    }

    #[test]
    fn a_token_is_made_only_beyond_loopback() {
        assert_eq!(Guard::new([127, 0, 0, 1].into(), None).query(), "");
        assert!(Guard::new([0, 0, 0, 0].into(), None).query().len() > 30);
        let own = Guard::new([127, 0, 0, 1].into(), Some("t".into()));
        assert_eq!((own.query().as_str(), own.shown_query().as_str()), ("?token=t", "?token=YOURS"));
        assert!(!format!("{:?}", Guard::new([0, 0, 0, 0].into(), Some("secret".into()))).contains("secret"));
    }
}
