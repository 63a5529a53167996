//! A remote node, ours or the Python system's, over HTTP. Successful responses are streamed through; errors are parsed,
//! so that they have the same meaning for both systems.

use std::{fmt::Write, time::Duration};

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
    access::LeaseAccess,
    error::ApiError,
    observe::Encoding,
    pool::{DrainStatus, PendingLease},
};

/// An HTTP client with a connection pool, shared by all remote nodes of a master.
#[derive(Clone)]
pub(crate) struct HttpClient(pub(super) Client<HttpConnector, Full<Bytes>>);

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
    pub(crate) request_timeout: Duration,
    pub(crate) info_timeout: Duration,
}

const MAX_JSON_BYTES: usize = 16 << 20;
const MAX_ERROR_BYTES: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// How much longer than its own wait a node may take to answer `/get`.
const GET_MARGIN: Duration = Duration::from_secs(5);
/// The same for a lease with session options, for which the node creates an instance.
const CONFIGURE_MARGIN: Duration = Duration::from_mins(1);
/// How much longer it takes if the lease is a fork, whose original may have had many steps.
const FORK_MARGIN: Duration = Duration::from_mins(10);

/// The body of a request to a node.
enum RequestBody {
    Json(Value),
    Bytes(Bytes),
}

impl RequestBody {
    const fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json",
            Self::Bytes(_) => "application/octet-stream",
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Json(value) => value.to_string().into(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<Value> for RequestBody {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

#[derive(Deserialize)]
struct GetResponse {
    instance_id: InstanceId,
    #[serde(default)]
    cdp_url: Option<String>,
    #[serde(default)]
    live_url: Option<String>,
    #[serde(default)]
    live_control_url: Option<String>,
}

impl GetResponse {
    fn access(&self) -> Option<LeaseAccess> {
        LeaseAccess::from_urls(
            self.cdp_url.as_deref(),
            self.live_url.as_deref(),
            self.live_control_url.as_deref(),
        )
    }
}

/// An error body: `detail` and `code` of ours, or `detail` or `message` of the Python system.
#[derive(Deserialize, Default)]
struct ErrorBody {
    detail: Option<Value>,
    message: Option<String>,
    code: Option<String>,
}

impl RemoteNode {
    pub(super) fn unreachable(&self, reason: &(impl ToString + ?Sized)) -> ApiError {
        ApiError::NodeUnreachable { node: self.url.clone(), reason: reason.to_string() }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<RequestBody>,
        accept: Option<&'static str>,
        timeout: Duration,
    ) -> Result<hyper::Response<Incoming>, ApiError> {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let uri = format!("{}{path}?{query}", self.url.trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(uri).header("x-api-key", self.key.clone());
        if let Some(body) = &body {
            request = request.header(header::CONTENT_TYPE, body.content_type());
        }
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        let bytes = body.map(RequestBody::into_bytes).unwrap_or_default();
        let request = request.body(Full::new(bytes)).map_err(|error| self.unreachable(&error))?;
        let sent = tokio::time::timeout(timeout, self.client.0.request(request)).await;
        let response = match sent {
            Err(_) => return Err(self.unreachable(&format!("no response within {} s", timeout.as_secs()))),
            Ok(Err(error)) => return Err(self.unreachable(&source_chain(&error))),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() { Ok(response) } else { Err(self.read_error(response).await) }
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        response: hyper::Response<Incoming>,
    ) -> Result<T, ApiError> {
        let body = Limited::new(response.into_body(), MAX_JSON_BYTES).collect();
        let body = tokio::time::timeout(self.request_timeout, body).await;
        let body = body
            .map_err(|_| self.unreachable("its response was not completed in time"))?
            .map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body.to_bytes())
            .map_err(|error| self.unreachable(&format!("its response is not valid: {error}")))
    }

    async fn read_error(&self, response: hyper::Response<Incoming>) -> ApiError {
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ERROR_BYTES).collect();
        let body = match tokio::time::timeout(ERROR_BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            _ => Bytes::new(),
        };
        let body: ErrorBody = serde_json::from_slice(&body).unwrap_or_default();
        let detail = match (body.detail, body.message) {
            (Some(Value::String(detail)), _) => detail,
            (Some(other), _) => other.to_string(),
            (None, Some(message)) => message,
            (None, None) => format!("node {} answered {status}", self.url),
        };
        classify_error(status, body.code.as_deref(), detail)
    }

    /// Streams a response through. If an image is expected, checks that it starts like one.
    async fn pass_through(
        &self,
        response: hyper::Response<Incoming>,
        is_image_expected: bool,
    ) -> Result<Response, ApiError> {
        let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
        let length = response.headers().get(header::CONTENT_LENGTH).cloned();
        let mut body = BodyStream::new(response.into_body());
        let first = if is_image_expected { body.next().await } else { None };
        if is_image_expected {
            // The Python node responds with 200, image/png and "Internal Server Error" when its browser is dead.
            let start =
                first.as_ref().and_then(|frame| frame.as_ref().ok()).and_then(|frame| frame.data_ref());
            if !start.is_some_and(|bytes| is_image(bytes)) {
                return Err(ApiError::Passed {
                    status: 500,
                    code: ErrorCode::InstanceLost,
                    detail: format!(
                        "the response of node {} is not an image; its browser is probably dead",
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
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length);
        }
        Ok(passed)
    }
}

impl Node for RemoteNode {
    async fn get(&self, request: &GetRequest) -> Result<PendingLease, ApiError> {
        let wait = request.wait.unwrap_or_default();
        let (lifetime, wait_secs) = (request.lifetime_mins.to_string(), wait.as_secs_f64().to_string());
        let mut query = vec![("lifetime_mins", lifetime.as_str()), ("wait_secs", &wait_secs)];
        if let Some(key) = &request.key {
            query.push(("idempotency_key", key));
        }
        let (options, margin) = if request.options.is_default() {
            (None, GET_MARGIN)
        } else {
            (Some(request.options.to_json().into()), CONFIGURE_MARGIN)
        };
        let fork =
            request.fork.map(|fork| (fork.from.to_string(), fork.steps.map(|steps| steps.to_string())));
        let (path, margin) = if let Some((from, steps)) = &fork {
            query.push(("instance_id", from));
            query.extend(steps.as_ref().map(|steps| ("steps", steps.as_str())));
            ("/fork", FORK_MARGIN)
        } else {
            ("/get", margin)
        };
        let response = self.request(Method::POST, path, &query, options, None, wait + margin).await?;
        let response: GetResponse = self.json(response).await?;
        let node = self.clone();
        let access = response.access();
        let lease = PendingLease::new(response.instance_id, move |id| {
            tokio::spawn(async move {
                if let Err(error) = node.reset(&id).await {
                    tracing::debug!(%id, %error, "cannot release an undelivered lease");
                }
            });
        });
        Ok(lease.with_access(access))
    }

    async fn access(&self, id: &InstanceId) -> Result<Option<LeaseAccess>, ApiError> {
        let id = id.to_string();
        let query = [("instance_id", id.as_str())];
        match self.request(Method::GET, "/session", &query, None, None, self.info_timeout).await {
            Ok(response) => {
                let response: GetResponse = self.json(response).await?;
                Ok(response.access())
            }
            // The Python system and older versions have no CDP endpoint.
            Err(ApiError::Passed { status: 404 | 405, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), ApiError> {
        let id = id.to_string();
        self.request(Method::POST, "/reset", &[("instance_id", &id)], None, None, self.request_timeout)
            .await
            .map(drop)
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, ApiError> {
        let id = id.to_string();
        let id = ("instance_id", id.as_str());
        let timeout = self.request_timeout;
        let (get, post) = (Method::GET, Method::POST);
        let response = match &call {
            Call::Screenshot { mode, format } => {
                let mut query = vec![id, ("interaction_mode", mode.as_str())];
                if *format != proto::ImageFormat::Png {
                    query.push(("format", format.as_str()));
                }
                self.request(get, "/screenshot", &query, None, None, timeout).await?
            }
            Call::Execute(command) => {
                self.request(
                    post,
                    "/execute",
                    &[id],
                    Some(Value::from(command.to_json()).into()),
                    None,
                    timeout,
                )
                .await?
            }
            Call::Metadata => self.request(get, "/metadata", &[id], None, None, timeout).await?,
            Call::StorageState => self.request(get, "/storage_state", &[id], None, None, timeout).await?,
            Call::SetStorageState(state) => {
                let state =
                    serde_json::to_value(state).map_err(|error| ApiError::Internal(error.to_string()))?;
                self.request(Method::PUT, "/storage_state", &[id], Some(state.into()), None, timeout).await?
            }
            Call::ListFiles => self.request(get, "/files", &[id], None, None, timeout).await?,
            Call::ReadFile(name) => self.request(get, &file_path(name), &[id], None, None, timeout).await?,
            Call::WriteFile { name, content } => {
                let body = Some(RequestBody::Bytes(content.clone()));
                self.request(Method::PUT, &file_path(name), &[id], body, None, timeout).await?
            }
            Call::DeleteFile(name) => {
                self.request(Method::DELETE, &file_path(name), &[id], None, None, timeout).await?
            }
            Call::Recording(part) => {
                let path = format!("/recording/{}", part.name());
                self.request(get, &path, &[id], None, None, timeout).await?
            }
            Call::Network => self.request(get, "/network", &[id], None, None, timeout).await?,
            Call::Computer(call) => {
                self.request(post, "/computer", &[id], Some(call.to_json().into()), None, timeout).await?
            }
            Call::Probe => self.request(get, "/probe", &[id], None, None, timeout).await?,
            Call::Observe { call, encoding } => {
                let path = if call.command.is_some() { "/step" } else { "/observe" };
                let accept = (*encoding == Encoding::Msgpack).then_some(Encoding::MSGPACK);
                self.request(post, path, &[id], Some(call.to_json().into()), accept, timeout).await?
            }
        };
        self.pass_through(response, matches!(call, Call::Screenshot { .. })).await
    }

    async fn info(&self) -> Result<NodeInfo, ApiError> {
        let response = self.request(Method::GET, "/info", &[], None, None, self.info_timeout).await?;
        self.json(response).await
    }

    async fn set_draining(&self, draining: bool) -> Result<DrainStatus, ApiError> {
        let path = if draining { "/drain" } else { "/undrain" };
        match self.request(Method::POST, path, &[], None, None, self.info_timeout).await {
            Ok(response) => self.json(response).await,
            Err(ApiError::Passed { status: 404 | 405, .. }) => Err(ApiError::BadRequest(format!(
                "node {} cannot be drained: it has no {path}; it belongs to the Python system or is an older version",
                self.url
            ))),
            Err(error) => Err(error),
        }
    }
}

/// The path of a file, with its name percent-encoded.
fn file_path(name: &str) -> String {
    let mut path = String::from("/files/");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(byte.into());
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"RIFF")
}

/// Converts a node's error response. Ours have a code; for the Python system this is the only place that has to match
/// status and text.
fn classify_error(status: StatusCode, code: Option<&str>, detail: String) -> ApiError {
    if let Some(code) = code.and_then(ErrorCode::from_wire) {
        return match code {
            ErrorCode::NoCapacity => ApiError::NoCapacity(None),
            ErrorCode::ShuttingDown => ApiError::ShuttingDown,
            _ => ApiError::Passed { status: status.as_u16(), code, detail },
        };
    }
    let code = match status.as_u16() {
        503 => return ApiError::NoCapacity(None),
        400 if detail.contains("Invalid instance UUID") => ErrorCode::InvalidInstance,
        400 if detail.contains("not in use") => ErrorCode::NotInUse,
        401 | 403 => ErrorCode::WrongKey,
        // The Python system has no `/step` and `/observe`. The client then uses the single calls.
        404 | 405 => ErrorCode::NotFound,
        400..500 => ErrorCode::BadRequest,
        _ => ErrorCode::Internal,
    };
    ApiError::Passed { status: status.as_u16(), code, detail }
}

/// Joins the messages of an error and its causes.
pub(super) fn source_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
