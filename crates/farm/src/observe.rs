//! The wire format of `/observe` and `/step`. Responses are JSON with a base64 screenshot, or MessagePack with the raw
//! image bytes.

use base64::{Engine, engine::general_purpose::STANDARD};
use browser::ObserveRequest;
use proto::{
    Command, ImageFormat, InteractionMode,
    page::{PageMetadata, ScreenshotInfo, TabInfo, tab_list},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    access::LEASE_FIELDS,
    error::ApiError,
    pool::{ObserveResult, Operation},
};

/// The encoding of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Msgpack,
}

impl Encoding {
    pub(crate) const MSGPACK: &str = "application/msgpack";

    pub(crate) fn from_accept(accept: Option<&str>) -> Self {
        let wants_msgpack = |accept: &str| {
            accept.split(',').map(str::trim).any(|media_type| {
                media_type.starts_with(Self::MSGPACK) || media_type.starts_with("application/x-msgpack")
            })
        };
        if accept.is_some_and(wants_msgpack) { Self::Msgpack } else { Self::Json }
    }
}

/// The parsed body of `/observe` (without a command) or `/step`.
#[derive(Clone, Debug)]
pub(crate) struct ObserveCall {
    pub(crate) command: Option<Command>,
    request: ObserveRequest,
    ac_tree: bool,
    rects: bool,
}

const INCLUDES: &[&str] = &["screenshot", "metadata", "ac_tree", "rects"];
const KEYS: &[&str] = &["command", "interaction_mode", "format", "include"];

fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || LEASE_FIELDS.contains(&key)
}

impl ObserveCall {
    pub(crate) fn parse(body: &Map<String, Value>, step: bool) -> Result<Self, ApiError> {
        let bad = ApiError::BadRequest;
        if let Some(unknown) = body.keys().find(|key| !is_known(key)) {
            return Err(bad(format!(
                "unknown key {unknown:?}; accepted keys: node, instance_id, {}",
                KEYS.join(", ")
            )));
        }
        let command = match (body.get("command"), step) {
            (Some(Value::Object(command)), true) => Some(Command::from_json(command, &[])?),
            (Some(_), true) => {
                return Err(
                    bad("command must be an object with exactly one command, as for /execute".into()),
                );
            }
            (None, true) => {
                return Err(bad("/step needs a \"command\"; use /observe to observe only".into()));
            }
            (Some(_), false) => return Err(bad("/observe takes no \"command\"; use /step".into())),
            (None, false) => None,
        };
        let includes = includes(body.get("include"))?;
        let has = |name: &str| includes.contains(&name);
        let mode: InteractionMode = parse_field(body, "interaction_mode")?;
        let request = ObserveRequest {
            mode,
            format: parse_field::<ImageFormat>(body, "format")?,
            screenshot: has("screenshot"),
            metadata: has("metadata"),
            elements: has("ac_tree") || has("rects"),
            view: None,
        };
        Ok(Self { command, request, ac_tree: has("ac_tree"), rects: has("rects") })
    }

    pub(crate) fn operation(&self) -> Operation {
        match &self.command {
            Some(command) => Operation::Step { command: command.clone(), observe: self.request },
            None => Operation::Observe(self.request),
        }
    }

    /// Returns the body that sends this call to another node.
    pub(crate) fn to_json(&self) -> Value {
        let include: Vec<&str> = [
            ("screenshot", self.request.screenshot),
            ("metadata", self.request.metadata),
            ("ac_tree", self.ac_tree),
            ("rects", self.rects),
        ]
        .into_iter()
        .filter_map(|(name, included)| included.then_some(name))
        .collect();
        let mut body = json!({
            "interaction_mode": self.request.mode.as_str(), "format": self.request.format.as_str(), "include": include,
        });
        if let Some(command) = &self.command {
            body["command"] = command.to_json().into();
        }
        body
    }

    /// Encodes the response.
    pub(crate) fn encode(&self, observed: ObserveResult, encoding: Encoding) -> Result<Vec<u8>, ApiError> {
        let internal = |error: &dyn std::fmt::Display| {
            ApiError::Internal(format!("cannot encode the response: {error}"))
        };
        let response = self.response(observed, encoding);
        match encoding {
            Encoding::Json => serde_json::to_vec(&response).map_err(|error| internal(&error)),
            Encoding::Msgpack => rmp_serde::to_vec_named(&response).map_err(|error| internal(&error)),
        }
    }

    fn response(&self, observed: ObserveResult, encoding: Encoding) -> ObserveResponse {
        let (result, error) = match observed.result {
            None => (None, None),
            Some(Ok(result)) => (Some(result), None),
            Some(Err(error)) => {
                (None, Some(json!({"code": error.code().as_str(), "detail": error.to_string()})))
            }
        };
        let screenshot = observed.observation.screenshot.map(|image| Screenshot {
            format: image.format,
            width: image.width,
            height: image.height,
            data: match encoding {
                Encoding::Json => ImageData::Base64(STANDARD.encode(&image.bytes)),
                Encoding::Msgpack => ImageData::Raw(image.bytes),
            },
        });
        let elements = observed.observation.elements;
        ObserveResponse {
            result,
            error,
            settled: observed.settled.is_none_or(|settled| settled.quiet),
            settle_ms: observed.settled.map_or(0, |settled| settled.elapsed.as_millis() as u64),
            screenshot,
            metadata: observed.observation.metadata,
            ac_tree: elements
                .as_ref()
                .filter(|_| self.ac_tree)
                .map(|info| ac_tree(info, observed.observation.tabs.as_deref())),
            screenshot_info: elements.filter(|_| self.rects).and_then(|info| serde_json::to_value(info).ok()),
            unchanged: observed.unchanged,
            tabs: observed.observation.tabs,
        }
    }
}

/// The accessibility text. With many tabs it lists them first.
fn ac_tree(info: &ScreenshotInfo, tabs: Option<&[TabInfo]>) -> String {
    match tabs {
        Some(tabs) => format!("{}\n{}", tab_list(tabs), info.ac_tree()),
        None => info.ac_tree(),
    }
}

#[derive(Serialize)]
struct ObserveResponse {
    result: Option<Value>,
    /// Why the command failed. The page is observed nevertheless.
    error: Option<Value>,
    settled: bool,
    settle_ms: u64,
    screenshot: Option<Screenshot>,
    metadata: Option<PageMetadata>,
    ac_tree: Option<String>,
    screenshot_info: Option<Value>,
    unchanged: bool,
    /// Only for sessions with many tabs.
    #[serde(skip_serializing_if = "Option::is_none")]
    tabs: Option<Vec<TabInfo>>,
}

#[derive(Serialize)]
struct Screenshot {
    format: ImageFormat,
    width: u32,
    height: u32,
    data: ImageData,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ImageData {
    Base64(String),
    #[serde(serialize_with = "serialize_bytes")]
    Raw(bytes::Bytes),
}

fn serialize_bytes<S: serde::Serializer>(bytes: &bytes::Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// Parses `include`: which parts of an observation the client wants.
fn includes(value: Option<&Value>) -> Result<Vec<&str>, ApiError> {
    let bad = || ApiError::BadRequest(format!("include must be a list of: {}", INCLUDES.join(", ")));
    let Some(value) = value else { return Ok(vec!["screenshot", "metadata"]) };
    let list = value.as_array().ok_or_else(bad)?;
    list.iter().map(|item| item.as_str().filter(|name| INCLUDES.contains(name)).ok_or_else(bad)).collect()
}

/// Parses an optional string field; absent or null is the default.
fn parse_field<T: std::str::FromStr<Err = String> + Default>(
    body: &Map<String, Value>,
    key: &str,
) -> Result<T, ApiError> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(Value::String(text)) => text.parse().map_err(ApiError::BadRequest),
        Some(_) => Err(ApiError::BadRequest(format!("{key} must be a string"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Value, step: bool) -> Result<ObserveCall, String> {
        ObserveCall::parse(body.as_object().unwrap(), step).map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_body_is_explained() {
        for (body, step, text) in [
            (json!({}), true, "needs a \"command\""),
            (json!({"command": {"back": {}}}), false, "use /step"),
            (json!({"command": {"nope": {}}}), true, "unknown command"),
            (json!({"include": ["title"]}), false, "include must be a list of: screenshot"),
            (json!({"format": "gif"}), false, "format is \"gif\""),
            (json!({"mode": "x"}), false, "unknown key \"mode\""),
            (json!({"interaction_mode": 3}), false, "interaction_mode must be a string"),
        ] {
            let error = parse(&body, step).unwrap_err();
            assert!(error.contains(text), "{body}: {error}");
        }
    }

    #[test]
    fn forwarded_call_is_unchanged() {
        let body = json!({"command": {"click_id": {"id": "3"}}, "interaction_mode": "coordinates", "format": "jpeg",
                          "include": ["metadata", "rects"]});
        let call = parse(&body, true).unwrap();
        let forwarded = parse(&call.to_json(), true).unwrap();
        assert_eq!(
            (forwarded.command, forwarded.request, forwarded.rects),
            (call.command, call.request, call.rects)
        );
    }

    #[test]
    fn accept_header_selects_msgpack() {
        assert_eq!(Encoding::from_accept(Some("application/json")), Encoding::Json);
        assert_eq!(Encoding::from_accept(Some("text/html, application/msgpack;q=0.9")), Encoding::Msgpack);
        assert_eq!(Encoding::from_accept(None), Encoding::Json);
    }
}
