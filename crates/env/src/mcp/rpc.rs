//! JSON-RPC requests and errors, and the versions of MCP.

use serde_json::{Map, Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// An error that the server defines itself.
pub(crate) const SERVER_ERROR: i64 = -32000;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// Versions that begin with a handshake, oldest first.
pub(super) const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without handshake and sessions.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";

/// The fields of `params._meta` of a stateless request.
pub(super) const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_FIELD: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request, or a notification if it has no id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcRequest {
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(
            METHOD_NOT_FOUND,
            format!("unknown method {:?}", method.chars().take(100).collect::<String>()),
        )
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let data = json!({"supported": [STATELESS_VERSION], "requested": requested});
        Self { data: Some(data), ..Self::new(UNSUPPORTED_VERSION, "Unsupported protocol version") }
    }
}

impl RpcRequest {
    pub(crate) fn parse(message: &Value) -> Result<Self, RpcError> {
        let invalid = |reason: &str| RpcError::new(INVALID_REQUEST, format!("invalid request: {reason}"));
        let fields = message.as_object().ok_or_else(|| invalid("it must be one JSON object"))?;
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let method =
            fields.get("method").and_then(Value::as_str).ok_or_else(|| invalid("method must be a string"))?;
        let params = match fields.get("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(_) => return Err(RpcError::new(INVALID_PARAMS, "params must be an object")),
        };
        let id = match fields.get("id") {
            None => None,
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(id.clone()),
            Some(_) => return Err(invalid("id must be a string or a number")),
        };
        Ok(Self { id, method: method.to_owned(), params })
    }

    pub(super) fn text_param(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }

    /// Returns the version in `params._meta`, which only stateless requests have.
    pub(super) fn stateless_version(&self) -> Option<&Value> {
        self.params.get("_meta")?.get(VERSION_FIELD)
    }

    /// Checks the fields that every stateless request carries.
    pub(crate) fn check_stateless(&self) -> Result<(), RpcError> {
        let meta = self.params.get("_meta").and_then(Value::as_object);
        let missing = |field: &str| RpcError::new(INVALID_PARAMS, format!("params._meta needs {field}"));
        let meta = meta.ok_or_else(|| missing(VERSION_FIELD))?;
        let version = meta.get(VERSION_FIELD).ok_or_else(|| missing(VERSION_FIELD))?;
        meta.get(CAPABILITIES_FIELD).ok_or_else(|| missing(CAPABILITIES_FIELD))?;
        match version.as_str() {
            Some(STATELESS_VERSION) => Ok(()),
            Some(other) => Err(RpcError::unsupported_version(other)),
            None => Err(RpcError::new(INVALID_PARAMS, format!("{VERSION_FIELD} must be a string"))),
        }
    }
}

/// Formats a response.
pub(crate) fn response(id: Option<&Value>, outcome: Result<Value, RpcError>) -> Value {
    let id = id.unwrap_or(&Value::Null);
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message, data: None }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
        Err(RpcError { code, message, data: Some(data) }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
        }
    }
}

fn server_info() -> Value {
    json!({"name": "webgym", "title": "webgym browser", "version": env!("CARGO_PKG_VERSION")})
}

const INSTRUCTIONS: &str = "A web browser. Take a snapshot to see the page: it lists the elements that can be used, each with its ref.";

/// Returns the answer to `initialize`.
pub(super) fn initialized(request: &RpcRequest) -> Value {
    let requested = request.text_param("protocolVersion").unwrap_or_default();
    let latest = HANDSHAKE_VERSIONS[HANDSHAKE_VERSIONS.len() - 1];
    let version = HANDSHAKE_VERSIONS.into_iter().find(|known| *known == requested).unwrap_or(latest);
    json!({
        "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server_info(), "instructions": INSTRUCTIONS,
    })
}

/// Returns the answer to `server/discover`.
pub(super) fn discovered() -> Value {
    let versions: Vec<&str> = HANDSHAKE_VERSIONS.into_iter().chain([STATELESS_VERSION]).collect();
    json!({
        "supportedVersions": versions, "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS,
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    })
}

/// Adds what results of the stateless version need besides their content.
pub(super) fn complete_stateless(mut result: Value, is_cacheable: bool) -> Value {
    result["resultType"] = json!("complete");
    if is_cacheable {
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_no_json_rpc_are_refused() {
        let code = |message: Value| RpcRequest::parse(&message).unwrap_err().code;
        assert_eq!(code(json!({})), INVALID_REQUEST);
        assert_eq!(code(json!([])), INVALID_REQUEST);
        assert_eq!(code(json!({"jsonrpc": "1.0", "method": "ping", "id": 1})), INVALID_REQUEST);
        assert_eq!(code(json!({"jsonrpc": "2.0", "id": 1})), INVALID_REQUEST);
        assert_eq!(code(json!({"jsonrpc": "2.0", "method": "ping", "id": null})), INVALID_REQUEST);
        assert_eq!(code(json!({"jsonrpc": "2.0", "method": "ping", "id": 1, "params": []})), INVALID_PARAMS);
    }

    #[test]
    fn stateless_request_needs_its_fields() {
        let check = |meta: Value| {
            let message = json!({"jsonrpc": "2.0", "method": "ping", "id": 1, "params": {"_meta": meta}});
            RpcRequest::parse(&message).unwrap().check_stateless().map_err(|error| error.code)
        };
        assert_eq!(check(json!({VERSION_FIELD: STATELESS_VERSION, CAPABILITIES_FIELD: {}})), Ok(()));
        assert_eq!(
            check(json!({VERSION_FIELD: "2099-01-01", CAPABILITIES_FIELD: {}})),
            Err(UNSUPPORTED_VERSION)
        );
        assert_eq!(check(json!({VERSION_FIELD: STATELESS_VERSION})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({VERSION_FIELD: 1, CAPABILITIES_FIELD: {}})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({})), Err(INVALID_PARAMS));
    }

    #[test]
    fn handshake_agrees_on_a_known_version() {
        let version = |requested: &str| {
            let message = json!({"jsonrpc": "2.0", "method": "initialize", "id": 1, "params": {"protocolVersion": requested}});
            initialized(&RpcRequest::parse(&message).unwrap())["protocolVersion"].clone()
        };
        assert_eq!(version("2025-03-26"), "2025-03-26");
        assert_eq!(version("2099-01-01"), "2025-11-25");
        assert_eq!(version(STATELESS_VERSION), "2025-11-25");
    }
}
