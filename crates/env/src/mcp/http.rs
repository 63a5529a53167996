//! Streamable HTTP: every message is a POST with a JSON response. With the handshake, the header `Mcp-Session-Id` names the
//! session; stateless clients name it in the arguments of a call. OpenEnv's clients name it in the parameters.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{RawQuery, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value, json};

use super::{
    calls::{ToolContext, call_tool},
    rpc::{
        self, HANDSHAKE_VERSIONS, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND,
        PARSE_ERROR, RpcError, RpcRequest, SERVER_ERROR, STATELESS_VERSION, UNSUPPORTED_VERSION,
        complete_stateless, response,
    },
    sessions::{McpSession, McpSessions},
    tools,
};
use crate::{access::Denied, catalog::TaskChoice, openenv::ResetRequest, server::Shared};

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

pub(crate) fn routes() -> Router<Arc<Shared>> {
    // There is no stream from the server: it never sends requests or notifications.
    let no_stream = async || StatusCode::METHOD_NOT_ALLOWED;
    Router::new().route("/mcp", post(receive).merge(get(no_stream)).delete(end_session))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn end_session(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<StatusCode, Denied> {
    shared.access.check(&headers, &uri)?;
    let is_ended = header(&headers, SESSION_HEADER).is_some_and(|id| shared.mcp.remove(id));
    Ok(if is_ended { StatusCode::OK } else { StatusCode::NOT_FOUND })
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejected) => {
            let error = RpcError::new(INVALID_REQUEST, rejected.body_text());
            return (rejected.status(), Json(response(None, Err(error)))).into_response();
        }
    };
    let parsed = serde_json::from_slice(&body);
    let parsed = parsed.map_err(|error| RpcError::new(PARSE_ERROR, format!("not JSON: {error}")));
    let request = parsed.and_then(|message: Value| RpcRequest::parse(&message));
    let is_stateless = header(&headers, VERSION_HEADER) == Some(STATELESS_VERSION)
        || request.as_ref().is_ok_and(|request| request.stateless_version().is_some());
    let request = match request {
        Ok(request) => request,
        // Answered without a key: it says nothing, and `openenv validate` sends none.
        Err(error) => return reply(None, Err(error), is_stateless),
    };
    if let Err(denied) = shared.access.check(&headers, &uri) {
        return denied.into_response();
    }
    let exchange =
        Exchange { shared: &shared, headers: &headers, query: query.as_deref().unwrap_or_default() };
    if is_stateless {
        return exchange.stateless(&request).await;
    }
    exchange.with_handshake(&request).await
}

/// Formats a response. Only the stateless version assigns statuses to errors.
fn reply(id: Option<&Value>, outcome: Result<Value, RpcError>, is_stateless: bool) -> Response {
    let status = match &outcome {
        Err(error) if is_stateless => match error.code {
            METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | UNSUPPORTED_VERSION => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        },
        _ => StatusCode::OK,
    };
    (status, Json(response(id, outcome))).into_response()
}

/// One POST.
struct Exchange<'a> {
    shared: &'a Shared,
    headers: &'a HeaderMap,
    query: &'a str,
}

impl Exchange<'_> {
    async fn with_handshake(&self, request: &RpcRequest) -> Response {
        let Some(id) = &request.id else { return StatusCode::ACCEPTED.into_response() };
        if let Some(version) =
            header(self.headers, VERSION_HEADER).filter(|version| !HANDSHAKE_VERSIONS.contains(version))
        {
            let error = RpcError::new(INVALID_REQUEST, format!("unsupported protocol version {version:?}"));
            return (StatusCode::BAD_REQUEST, Json(response(Some(id), Err(error)))).into_response();
        }
        if request.method == "initialize" {
            return self.initialize(request);
        }
        let named = header(self.headers, SESSION_HEADER);
        let session = named.and_then(|named| self.shared.mcp.get(named));
        if named.is_some() && session.is_none() {
            let error = RpcError::new(SERVER_ERROR, "the session has ended; initialize a new one");
            return (StatusCode::NOT_FOUND, Json(response(Some(id), Err(error)))).into_response();
        }
        let outcome = match request.method.as_str() {
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.tools(false)})),
            "tools/call" => match session.map_or_else(|| self.named_session(request), Ok) {
                Ok(session) => self.call(&session, request, arguments(request)).await,
                Err(error) => Err(error),
            },
            "openenv/session/create" => {
                self.create(self.task()).map(|(session_id, _)| json!({"session_id": session_id}))
            }
            "openenv/session/close" => self.close(request),
            other => Err(RpcError::unknown_method(other)),
        };
        reply(Some(id), outcome, false)
    }

    fn initialize(&self, request: &RpcRequest) -> Response {
        match self.create(self.task()) {
            Ok((session, _)) => {
                let result = response(request.id.as_ref(), Ok(rpc::initialized(request)));
                ([(SESSION_HEADER, session)], Json(result)).into_response()
            }
            Err(error) => reply(request.id.as_ref(), Err(error), false),
        }
    }

    async fn stateless(&self, request: &RpcRequest) -> Response {
        let Some(id) = &request.id else { return StatusCode::ACCEPTED.into_response() };
        let outcome = match self.check_stateless(request) {
            Ok(()) => self.handle_stateless(request).await,
            Err(error) => Err(error),
        };
        reply(Some(id), outcome, true)
    }

    /// Checks that headers and body agree, so that a proxy that reads only the headers routes the same request.
    fn check_stateless(&self, request: &RpcRequest) -> Result<(), RpcError> {
        let mismatch = |name: &str| {
            RpcError::new(HEADER_MISMATCH, format!("the header {name} does not match the request"))
        };
        let version = request.stateless_version().and_then(Value::as_str);
        if version.is_some() && header(self.headers, VERSION_HEADER) != version {
            return Err(mismatch(VERSION_HEADER));
        }
        if header(self.headers, METHOD_HEADER) != Some(&request.method) {
            return Err(mismatch(METHOD_HEADER));
        }
        if request.method == "tools/call" && header(self.headers, NAME_HEADER) != request.text_param("name") {
            return Err(mismatch(NAME_HEADER));
        }
        request.check_stateless()
    }

    async fn handle_stateless(&self, request: &RpcRequest) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "server/discover" => Ok(complete_stateless(rpc::discovered(), true)),
            "tools/list" => Ok(complete_stateless(json!({"tools": self.tools(true)}), true)),
            "tools/call" => {
                let mut given = arguments(request);
                let (id, session, unnamed) = if let Some(id) = tools::take_session(&mut given) {
                    let session = self.shared.mcp.get(&id);
                    let unknown =
                        || RpcError::new(INVALID_PARAMS, "the session has ended; omit it to start a new one");
                    (id, session.ok_or_else(unknown)?, None)
                } else {
                    let (id, session) = self.create(self.task())?;
                    let unnamed = UnnamedSession { sessions: &self.shared.mcp, id: Some(id.clone()) };
                    (id, session, Some(unnamed))
                };
                let mut result = self.call(&session, request, given).await?;
                if let Some(unnamed) = unnamed {
                    unnamed.keep();
                }
                if request.text_param("name") == Some("browser_close") {
                    self.shared.mcp.remove(&id);
                }
                name_session(&mut result, &id);
                Ok(complete_stateless(result, false))
            }
            other => Err(RpcError::unknown_method(other)),
        }
    }

    fn tools(&self, is_stateless: bool) -> Vec<Value> {
        tools::list(!self.shared.environment.tasks().is_empty(), is_stateless)
    }

    /// Returns the task that the address of the endpoint names: `/mcp?task_id=…`.
    fn task(&self) -> Result<TaskChoice, RpcError> {
        let field = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
            let number = matches!(&*name, "seed" | "index").then(|| value.parse::<u64>().ok()).flatten();
            (name.into_owned(), number.map_or_else(|| json!(value), |number| json!(number)))
        };
        let fields = form_urlencoded::parse(self.query.as_bytes()).map(field).collect();
        let request =
            ResetRequest::parse(&fields).map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))?;
        Ok(request.task)
    }

    fn create(&self, task: Result<TaskChoice, RpcError>) -> Result<(String, Arc<McpSession>), RpcError> {
        let full = || RpcError::new(SERVER_ERROR, "too many sessions; end one or try again later");
        let task = task?;
        let known = self.shared.environment.tasks().check(&task);
        known.map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))?;
        self.shared.mcp.create(task).ok_or_else(full)
    }

    /// Returns the session that OpenEnv's clients name in the parameters.
    fn named_session(&self, request: &RpcRequest) -> Result<Arc<McpSession>, RpcError> {
        let missing = || {
            RpcError::new(
                INVALID_REQUEST,
                "no session; send initialize first, and its Mcp-Session-Id with each request",
            )
        };
        let id = request.text_param("session_id").ok_or_else(missing)?;
        self.shared.mcp.get(id).ok_or_else(|| RpcError::new(INVALID_PARAMS, "the session has ended"))
    }

    fn close(&self, request: &RpcRequest) -> Result<Value, RpcError> {
        let id = request.text_param("session_id").unwrap_or_default();
        if self.shared.mcp.remove(id) {
            return Ok(json!({"session_id": id, "closed": true}));
        }
        Err(RpcError::new(INVALID_PARAMS, "unknown session_id"))
    }

    /// Calls a tool. Calls on one session wait for each other.
    async fn call(
        &self,
        session: &McpSession,
        request: &RpcRequest,
        arguments: Map<String, Value>,
    ) -> Result<Value, RpcError> {
        let name =
            request.text_param("name").ok_or_else(|| RpcError::new(INVALID_PARAMS, "name is missing"))?;
        let call = async {
            let mut episode = session.episode.lock().await;
            let context = ToolContext {
                environment: &self.shared.environment,
                task: &session.task,
                reads_local_files: false,
            };
            let result = call_tool(context, &mut episode, name, &arguments).await;
            session.mark_used();
            result
        };
        tokio::select! {
            result = call => result,
            () = session.ended.cancelled() => Err(RpcError::new(SERVER_ERROR, "the session was ended")),
        }
    }
}

/// A new session until its id is sent to the client. Dropping it ends the session: without the id, no later call can use it.
struct UnnamedSession<'a> {
    sessions: &'a McpSessions,
    /// `None` once the session is kept.
    id: Option<String>,
}

impl UnnamedSession<'_> {
    fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for UnnamedSession<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.sessions.remove(id);
        }
    }
}

fn arguments(request: &RpcRequest) -> Map<String, Value> {
    request.params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Tells a stateless client its session, for its program and for its model.
fn name_session(result: &mut Value, id: &str) {
    if let Some(content) = result["content"].as_array_mut() {
        content.push(json!({"type": "text", "text": format!("session: {id}")}));
    }
    result["_meta"] = json!({ tools::SESSION_ARGUMENT: id });
}
