//! A small HTTP client for tests that exposes status, headers and body unchanged.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use url::form_urlencoded;

/// No response of a farm takes longer than this unless it hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(3);

/// A client of one server, with one API key.
#[derive(Clone)]
pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    base: String,
    key: Option<String>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Http {
    pub fn new(base: &str, key: Option<&str>) -> Self {
        // A server may close a connection after refusing a body, so connections are not reused.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Self { client, base: base.trim_end_matches('/').to_owned(), key: key.map(str::to_owned) }
    }

    /// Returns a client of the same server with another key, or none.
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self.clone() }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Reply {
        self.send(Method::GET, path, query, Bytes::new(), &[]).await
    }

    pub async fn post(&self, path: &str, query: &[(&str, &str)]) -> Reply {
        self.send(Method::POST, path, query, Bytes::new(), &[]).await
    }

    pub async fn post_json(&self, path: &str, query: &[(&str, &str)], body: &Value) -> Reply {
        let json = [("content-type", "application/json")];
        self.send(Method::POST, path, query, body.to_string(), &json).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let what = format!("{method} {}{path}", self.base);
        match self.try_send(method, path, query, body, headers).await {
            Ok(reply) => reply,
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// Like [`Http::send`], for servers that may be down.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Result<Reply, String> {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let mut request = Request::builder().method(method).uri(format!("{}{path}?{query}", self.base));
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).map_err(|error| error.to_string())?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| format!("{error:?}"))?;
            let (head, body) = answer.into_parts();
            let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::time::timeout(REQUEST_TIMEOUT, exchange)
            .await
            .unwrap_or_else(|_| Err(format!("no response within {REQUEST_TIMEOUT:?}")))
    }
}

impl Reply {
    pub fn json(&self) -> Value {
        let text = || String::from_utf8_lossy(&self.body[..self.body.len().min(400)]).into_owned();
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: not JSON ({error}): {:?}", self.status, text()))
    }

    pub fn content_type(&self) -> &str {
        self.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the `code` of an error response, or an empty string.
    pub fn code(&self) -> String {
        serde_json::from_slice::<Value>(&self.body)
            .ok()
            .and_then(|body| body["code"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the JSON of a 200 response; panics on any other status.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Checks the status and code of an error response, and that its `detail` contains this text.
    #[track_caller]
    pub fn assert_error(&self, status: u16, code: &str, text: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        assert!(self.detail().contains(text), "{text:?} not in {:?}", self.detail());
    }
}
