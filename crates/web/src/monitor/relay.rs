//! The monitor of a collector elsewhere: our page here, its data passed through. Reads only, keeps nothing.

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

use crate::page::{self, Entry};

#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("{0} is no address of a monitor; it looks like http://HOST:5000")]
    Address(String),
    #[error("cannot speak HTTP: {0}")]
    Client(String),
}

struct Remote {
    client: Client,
    root: String,
    authorization: Option<String>,
}

/// Named by what it is here, so that this crate need not name the one it comes from.
type Client = client::http::Client;

/// The routes of a monitor whose run is at `url`, with the token it wants, if any. The url may carry it: `…/?token=…`.
pub fn relay(url: &str, token: Option<&str>) -> Result<Router, RelayError> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(RelayError::Address(url.to_owned()));
    }
    let (root, query) = url.split_once('?').unwrap_or((url, ""));
    let inside = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let root = root.trim_end_matches('/').to_owned();
    let remote = Remote {
        client: client::http::client(&root).map_err(RelayError::Client)?,
        authorization: token.or(inside).map(|token| format!("Bearer {token}")),
        root,
    };
    let passing = Router::new()
        .route("/api/{*rest}", get(pass))
        .route("/metrics", get(pass))
        .route("/status", get(pass))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .with_state(Arc::new(remote));
    Ok(passing.merge(page::router(Entry::Monitor)))
}

const SENT: [HeaderName; 2] = [HeaderName::from_static("last-event-id"), header::IF_NONE_MATCH];
const BROUGHT: [HeaderName; 3] = [header::CONTENT_TYPE, header::ETAG, header::CACHE_CONTROL];

async fn pass(State(remote): State<Arc<Remote>>, request: Request) -> Response {
    let target = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Nobody climbs out of the monitor's own folder with our token in hand.
    if target.contains("..") || target.to_ascii_lowercase().contains("%2e") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut asking = remote.client.get(format!("{}{target}", remote.root));
    if let Some(authorization) = &remote.authorization {
        asking = asking.header(header::AUTHORIZATION, authorization);
    }
    for name in &SENT {
        if let Some(value) = request.headers().get(name) {
            asking = asking.header(name, value);
        }
    }
    let answer = match asking.send().await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(%error, "the collector's monitor does not answer");
            let words = json!({"status": "error", "detail": format!("{} does not answer", remote.root)});
            return (StatusCode::BAD_GATEWAY, Json(words)).into_response();
        }
    };
    let mut passed = Response::new(Body::empty());
    *passed.status_mut() = answer.status();
    for name in &BROUGHT {
        if let Some(value) = answer.headers().get(name) {
            passed.headers_mut().insert(name, value.clone());
        }
    }
    let body = stream::try_unfold(answer, async |mut answer| {
        Ok::<_, client::http::Error>(answer.chunk().await?.map(|chunk| (chunk, answer)))
    });
    *passed.body_mut() = Body::from_stream(body);
    passed
}
