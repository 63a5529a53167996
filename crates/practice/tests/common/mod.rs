//! What the tests share: a server of their own and a client that follows nothing by itself.
#![allow(dead_code, clippy::expect_used, reason = "a helper of tests; each test file uses its part")]

use std::net::{Ipv4Addr, SocketAddr};

use practice::Sites;

pub(crate) fn sites() -> Sites {
    Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free loopback port")
}

/// A visitor without cookies who follows no redirects.
/// Built beside other rooms the client has TLS, and then wants a provider though nobody speaks TLS here.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

pub(crate) fn client() -> reqwest::Client {
    builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().expect("a client")
}

pub(crate) async fn get(sites: &Sites, path: &str) -> String {
    let answer = client().get(sites.url(path)).send().await.expect(path);
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.expect(path)
}

/// A visitor with cookies who follows redirects, as a browser does.
pub(crate) fn visitor() -> reqwest::Client {
    builder().cookie_store(true).no_proxy().build().expect("a client")
}

pub(crate) async fn post(
    visitor: &reqwest::Client,
    sites: &Sites,
    path: &str,
    form: &[(&str, &str)],
) -> reqwest::Response {
    visitor.post(sites.url(path)).form(form).send().await.expect(path)
}

/// The text between two marks, the first time they occur.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).expect(start).1;
    rest.split_once(end).expect(end).0
}
