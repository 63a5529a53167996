//! The address of this farm as the client of a request sees it.

use axum::http::{HeaderMap, header::HOST};

use crate::access::Endpoint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicAddress {
    host: String,
    is_tls: bool,
}

impl PublicAddress {
    /// Takes the address from the request. Reverse proxies and masters pass on what the client used.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text("x-forwarded-host").or_else(|| text(HOST.as_str()))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        let is_tls =
            text("x-forwarded-proto").is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"));
        (!host.is_empty() && host.chars().all(is_plain)).then(|| Self { host: host.to_owned(), is_tls })
    }

    /// The URL of an endpoint of a lease.
    pub(crate) fn url(&self, endpoint: Endpoint, segment: &str) -> String {
        format!("{}://{}/{}/{segment}", self.scheme(), self.host, endpoint.as_str())
    }

    /// The URL of a WebSocket of the CDP endpoint of a lease.
    pub(crate) fn socket_url(&self, segment: &str, path: &str) -> String {
        format!("{}://{}/cdp/{segment}/{path}", if self.is_tls { "wss" } else { "ws" }, self.host)
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_the_one_the_client_used() {
        let url = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            PublicAddress::of(&headers).map(|address| address.url(Endpoint::Cdp, "x"))
        };
        assert_eq!(url(&[("host", "a:7000")]).as_deref(), Some("http://a:7000/cdp/x"));
        assert_eq!(url(&[("host", "a"), ("x-forwarded-proto", "https")]).as_deref(), Some("https://a/cdp/x"));
        assert_eq!(url(&[("host", "a"), ("x-forwarded-host", "b:1")]).as_deref(), Some("http://b:1/cdp/x"));
        assert_eq!(url(&[("host", "a/evil?")]), None);
        assert_eq!(url(&[]), None);
    }
}
