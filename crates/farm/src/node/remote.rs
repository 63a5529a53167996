//! A node elsewhere, ours or the Python system's, over HTTP. Answers are passed through as streams; errors are
//! read, so that they mean the same from either system.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, BodyStream, Full, Limited};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use proto::{ErrorCode, InstanceId};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use super::{Call, GetRequest, Node, NodeInfo};
use crate::{
    error::FarmError,
    observe::Encoding,
    pool::{Drained, Granted},
};

/// A pooled HTTP client, shared by all remote nodes of a master.
#[derive(Clone)]
pub(crate) struct HttpClient(Client<HttpConnector, Full<Bytes>>);

impl HttpClient {
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(Duration::from_secs(3)));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        Self(client)
    }
}

#[derive(Clone)]
pub(crate) struct RemoteNode {
    pub(crate) url: String,
    pub(crate) key: HeaderValue,
    pub(crate) client: HttpClient,
    pub(crate) request_limit: Duration,
    pub(crate) info_limit: Duration,
}

/// More of an error body than this nobody reads.
const ERROR_BODY: usize = 64 << 10;
/// How much longer than its own wait we give a node to answer `/get`.
const GET_MARGIN: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Got {
    instance_id: InstanceId,
}

#[derive(Deserialize, Default)]
struct Failure {
    detail: Option<Value>,
    message: Option<String>,
    code: Option<String>,
}

impl RemoteNode {
    fn unreachable(&self, why: impl ToString) -> FarmError {
        FarmError::NodeUnreachable { node: self.url.clone(), why: why.to_string() }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
        accept: Option<&'static str>,
        limit: Duration,
    ) -> Result<hyper::Response<Incoming>, FarmError> {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let uri = format!("{}{path}?{query}", self.url.trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(uri).header("x-api-key", self.key.clone());
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = request.body(Full::new(bytes)).map_err(|error| self.unreachable(error))?;
        let answered = tokio::time::timeout(limit, self.client.0.request(request)).await;
        let response = match answered {
            Err(_) => return Err(self.unreachable(format!("no answer within {} s", limit.as_secs()))),
            Ok(Err(error)) => return Err(self.unreachable(source_chain(&error))),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() { Ok(response) } else { Err(self.failure(response).await) }
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        response: hyper::Response<Incoming>,
    ) -> Result<T, FarmError> {
        let body = Limited::new(response.into_body(), 16 << 20).collect();
        let body = tokio::time::timeout(self.request_limit, body).await;
        let body = body
            .map_err(|_| self.unreachable("its answer never ended"))?
            .map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&body.to_bytes())
            .map_err(|error| self.unreachable(format!("it answered oddly: {error}")))
    }

    async fn failure(&self, response: hyper::Response<Incoming>) -> FarmError {
        let status = response.status();
        let body = Limited::new(response.into_body(), ERROR_BODY).collect();
        let body = match tokio::time::timeout(Duration::from_secs(5), body).await {
            Ok(Ok(body)) => body.to_bytes(),
            _ => Bytes::new(),
        };
        let failure: Failure = serde_json::from_slice(&body).unwrap_or_default();
        let detail = match (failure.detail, failure.message) {
            (Some(Value::String(detail)), _) => detail,
            (Some(other), _) => other.to_string(),
            (None, Some(message)) => message,
            (None, None) => format!("node {} answered {status}", self.url),
        };
        read_failure(status, failure.code.as_deref(), detail)
    }

    async fn passed(&self, response: hyper::Response<Incoming>, image: bool) -> Result<Response, FarmError> {
        let kind = response.headers().get(header::CONTENT_TYPE).cloned();
        let length = response.headers().get(header::CONTENT_LENGTH).cloned();
        let mut body = BodyStream::new(response.into_body());
        let first = if image { body.next().await } else { None };
        if image {
            // The Python node answers 200, image/png, "Internal Server Error" when its browser is dead.
            let start =
                first.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(|frame| frame.data_ref());
            if !start.is_some_and(|bytes| is_image(bytes)) {
                return Err(FarmError::Passed {
                    status: 500,
                    code: ErrorCode::InstanceLost,
                    detail: format!(
                        "node {} answered with something that is not an image; its browser is probably dead",
                        self.url
                    ),
                });
            }
        }
        let frames = stream::iter(first).chain(body).filter_map(async |frame| match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(error)),
        });
        let mut passed = Response::new(Body::from_stream(frames));
        let headers: &mut HeaderMap = passed.headers_mut();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, kind);
        }
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length);
        }
        Ok(passed)
    }
}

impl Node for RemoteNode {
    async fn get(&self, request: &GetRequest) -> Result<Granted, FarmError> {
        let patience = request.wait.unwrap_or_default();
        let (lifetime, wait) = (request.lifetime_mins.to_string(), patience.as_secs_f64().to_string());
        let mut query = vec![("lifetime_mins", lifetime.as_str()), ("wait_secs", &wait)];
        if let Some(key) = &request.key {
            query.push(("idempotency_key", key));
        }
        let limit = patience + GET_MARGIN;
        let response = self.ask(Method::POST, "/get", &query, None, None, limit).await?;
        let Got { instance_id } = self.json(response).await?;
        let node = self.clone();
        Ok(Granted::new(instance_id, move |id| {
            tokio::spawn(async move {
                if let Err(error) = node.reset(&id).await {
                    tracing::debug!(%error, "an unclaimed instance could not be given back");
                }
            });
        }))
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), FarmError> {
        let id = id.to_string();
        self.ask(Method::POST, "/reset", &[("instance_id", &id)], None, None, self.request_limit)
            .await
            .map(drop)
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, FarmError> {
        let id = id.to_string();
        let id = ("instance_id", id.as_str());
        let limit = self.request_limit;
        let (get, post) = (Method::GET, Method::POST);
        let response = match &call {
            Call::Screenshot { mode, format } => {
                let mut query = vec![id, ("interaction_mode", mode.as_str())];
                if *format != proto::ImageFormat::Png {
                    query.push(("format", format.as_str()));
                }
                self.ask(get, "/screenshot", &query, None, None, limit).await?
            }
            Call::Execute(command) => {
                self.ask(post, "/execute", &[id], Some(command.to_json().into()), None, limit).await?
            }
            Call::Metadata => self.ask(get, "/metadata", &[id], None, None, limit).await?,
            Call::Probe => self.ask(get, "/probe", &[id], None, None, limit).await?,
            Call::Observe { call, encoding } => {
                let path = if call.command.is_some() { "/step" } else { "/observe" };
                let accept = (*encoding == Encoding::Msgpack).then_some(Encoding::MSGPACK);
                self.ask(post, path, &[id], Some(call.to_json()), accept, limit).await?
            }
        };
        self.passed(response, matches!(call, Call::Screenshot { .. })).await
    }

    async fn info(&self) -> Result<NodeInfo, FarmError> {
        let response = self.ask(Method::GET, "/info", &[], None, None, self.info_limit).await?;
        self.json(response).await
    }

    async fn drain(&self, on: bool) -> Result<Drained, FarmError> {
        let path = if on { "/drain" } else { "/undrain" };
        match self.ask(Method::POST, path, &[], None, None, self.info_limit).await {
            Ok(response) => self.json(response).await,
            Err(FarmError::Passed { status: 404 | 405, .. }) => Err(FarmError::BadRequest(format!(
                "node {} cannot be drained: it knows no {path}; it is of the Python system or of an older version",
                self.url
            ))),
            Err(error) => Err(error),
        }
    }
}

fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"RIFF")
}

/// What a node's error means. Ours say it in a code; for the Python system this is the one place that must go by
/// status and words.
fn read_failure(status: StatusCode, code: Option<&str>, detail: String) -> FarmError {
    if let Some(code) = code.and_then(ErrorCode::from_wire) {
        return match code {
            ErrorCode::NoCapacity => FarmError::NoCapacity(None),
            ErrorCode::ShuttingDown => FarmError::ShuttingDown,
            _ => FarmError::Passed { status: status.as_u16(), code, detail },
        };
    }
    let code = match status.as_u16() {
        503 => return FarmError::NoCapacity(None),
        400 if detail.contains("Invalid instance UUID") => ErrorCode::InvalidInstance,
        400 if detail.contains("not in use") => ErrorCode::NotInUse,
        401 | 403 => ErrorCode::WrongKey,
        400..500 => ErrorCode::BadRequest,
        _ => ErrorCode::Internal,
    };
    FarmError::Passed { status: status.as_u16(), code, detail }
}

fn source_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(source) = at {
        text = format!("{text}: {source}");
        at = source.source();
    }
    text
}
