//! Shared test helpers: a server for each test, and HTTP clients.
#![allow(dead_code, clippy::expect_used, reason = "each test file uses some of the helpers")]

use std::net::{Ipv4Addr, SocketAddr};

use practice::Sites;

pub(crate) fn sites() -> Sites {
    Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free loopback port")
}

/// In a workspace build other crates enable TLS in reqwest, which then needs a crypto provider.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// A client without cookies that follows no redirects.
pub(crate) fn client() -> reqwest::Client {
    builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().expect("a client")
}

pub(crate) async fn get(sites: &Sites, path: &str) -> String {
    let response = client().get(sites.url(path)).send().await.expect(path);
    assert_eq!(response.status(), 200, "{path}");
    response.text().await.expect(path)
}

/// A client with cookies that follows redirects, as a browser does.
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

/// Returns the text between the first occurrences of two delimiters.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).expect(start).1;
    rest.split_once(end).expect(end).0
}
