//! The monitor of a run on another machine: serves the page here and forwards its requests for data to that run's monitor.
//! Forwards only GET requests and stores nothing.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::stream;
use serde_json::json;

use crate::page::{self, Page};

/// Why a relay could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("{0} is not the address of a monitor; expected something like http://HOST:5000")]
    Address(String),
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
}

/// The monitor that requests are forwarded to.
struct Remote {
    client: client::http::Client,
    root: String,
    authorization: Option<String>,
}

/// Returns the routes of a monitor whose run is at `url`. If that monitor requires a token, pass it as `token` or as part of
/// the URL (`…/?token=…`).
pub fn relay(url: &str, token: Option<&str>) -> Result<Router, RelayError> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(RelayError::Address(url.to_owned()));
    }
    let (root, query) = url.split_once('?').unwrap_or((url, ""));
    let token_in_url = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let root = root.trim_end_matches('/').to_owned();
    let remote = Remote {
        client: client::http::client(&root).map_err(RelayError::Client)?,
        authorization: token.or(token_in_url).map(|token| format!("Bearer {token}")),
        root,
    };
    let forwarded = Router::new()
        .route("/api/{*rest}", get(forward))
        .route("/metrics", get(forward))
        .route("/status", get(forward))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .with_state(Arc::new(remote));
    Ok(forwarded.merge(page::router(Page::Monitor)).merge(page::loop_page()))
}

/// Request headers that are forwarded.
const REQUEST_HEADERS: [HeaderName; 2] = [HeaderName::from_static("last-event-id"), header::IF_NONE_MATCH];
/// Response headers that are returned.
const RESPONSE_HEADERS: [HeaderName; 3] = [header::CONTENT_TYPE, header::ETAG, header::CACHE_CONTROL];

async fn forward(State(remote): State<Arc<Remote>>, request: Request) -> Response {
    let target = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Our token must not reach other paths of the remote server than the monitor's own.
    if target.contains("..") || target.to_ascii_lowercase().contains("%2e") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut outgoing = remote.client.get(format!("{}{target}", remote.root));
    if let Some(authorization) = &remote.authorization {
        outgoing = outgoing.header(header::AUTHORIZATION, authorization);
    }
    for name in &REQUEST_HEADERS {
        if let Some(value) = request.headers().get(name) {
            outgoing = outgoing.header(name, value);
        }
    }
    let response = match outgoing.send().await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(%error, "the run's monitor does not respond");
            let body = json!({"status": "error", "detail": format!("{} does not respond", remote.root)});
            return (StatusCode::BAD_GATEWAY, Json(body)).into_response();
        }
    };
    let mut forwarded = Response::new(Body::empty());
    *forwarded.status_mut() = response.status();
    for name in &RESPONSE_HEADERS {
        if let Some(value) = response.headers().get(name) {
            forwarded.headers_mut().insert(name, value.clone());
        }
    }
    let body = stream::try_unfold(response, async |mut response| {
        Ok::<_, client::http::Error>(response.chunk().await?.map(|chunk| (chunk, response)))
    });
    *forwarded.body_mut() = Body::from_stream(body);
    forwarded
}
