//! The wire form of `/observe` and `/step`: what is asked in one round trip, and what comes back, as JSON with
//! base64 or as msgpack with the image bytes as they are.

use base64::{Engine, engine::general_purpose::STANDARD};
use browser::ObserveRequest;
use proto::{Command, ImageFormat, InteractionMode, page::PageMetadata};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    error::FarmError,
    pool::{Operation, Seen},
};

/// How the answer is to be encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Msgpack,
}

impl Encoding {
    pub(crate) const MSGPACK: &str = "application/msgpack";

    pub(crate) fn from_accept(accept: Option<&str>) -> Self {
        let wants = |accept: &str| {
            accept.split(',').any(|one| {
                one.trim().starts_with(Self::MSGPACK) || one.trim().starts_with("application/x-msgpack")
            })
        };
        if accept.is_some_and(wants) { Self::Msgpack } else { Self::Json }
    }
}

/// The body of `/observe` (no command) or `/step`, read.
#[derive(Clone, Debug)]
pub(crate) struct ObserveCall {
    pub(crate) command: Option<Command>,
    request: ObserveRequest,
    ac_tree: bool,
    rects: bool,
}

const INCLUDES: &[&str] = &["screenshot", "metadata", "ac_tree", "rects"];
const KEYS: &[&str] = &["node", "instance_id", "command", "interaction_mode", "format", "include"];

impl ObserveCall {
    pub(crate) fn read(body: &Map<String, Value>, step: bool) -> Result<Self, FarmError> {
        let bad = FarmError::BadRequest;
        if let Some(unknown) = body.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(bad(format!("unknown key {unknown:?}; accepted are: {}", KEYS.join(", "))));
        }
        let command = match (body.get("command"), step) {
            (Some(Value::Object(command)), true) => Some(Command::from_json(command, &[])?),
            (Some(_), true) => {
                return Err(
                    bad("command must be an object with exactly one command, as for /execute".into()),
                );
            }
            (None, true) => return Err(bad("/step needs a \"command\"; use /observe to only look".into())),
            (Some(_), false) => return Err(bad("/observe takes no \"command\"; use /step".into())),
            (None, false) => None,
        };
        let includes = includes(body.get("include"))?;
        let has = |name: &str| includes.contains(&name);
        let mode: InteractionMode = word(body, "interaction_mode")?;
        let request = ObserveRequest {
            mode,
            format: word::<ImageFormat>(body, "format")?,
            screenshot: has("screenshot"),
            metadata: has("metadata"),
            elements: has("ac_tree") || has("rects"),
        };
        Ok(Self { command, request, ac_tree: has("ac_tree"), rects: has("rects") })
    }

    pub(crate) fn operation(&self) -> Operation {
        match &self.command {
            Some(command) => Operation::Step { command: command.clone(), observe: self.request },
            None => Operation::Observe(self.request),
        }
    }

    /// The same call as a body for another node.
    pub(crate) fn to_json(&self) -> Value {
        let include: Vec<&str> = [
            ("screenshot", self.request.screenshot),
            ("metadata", self.request.metadata),
            ("ac_tree", self.ac_tree),
            ("rects", self.rects),
        ]
        .into_iter()
        .filter_map(|(name, on)| on.then_some(name))
        .collect();
        let mut body = json!({
            "interaction_mode": self.request.mode.as_str(), "format": self.request.format.as_str(), "include": include,
        });
        if let Some(command) = &self.command {
            body["command"] = command.to_json().into();
        }
        body
    }

    /// The answer's bytes.
    pub(crate) fn answer(&self, seen: Seen, encoding: Encoding) -> Result<Vec<u8>, FarmError> {
        let internal = |error: &dyn std::fmt::Display| {
            FarmError::Internal(format!("the answer cannot be encoded: {error}"))
        };
        let answer = self.lay_out(seen, encoding);
        match encoding {
            Encoding::Json => serde_json::to_vec(&answer).map_err(|error| internal(&error)),
            Encoding::Msgpack => rmp_serde::to_vec_named(&answer).map_err(|error| internal(&error)),
        }
    }

    fn lay_out(&self, seen: Seen, encoding: Encoding) -> Observed {
        let (result, error) = match seen.result {
            None => (None, None),
            Some(Ok(result)) => (Some(result), None),
            Some(Err(error)) => {
                (None, Some(json!({"code": error.code().as_str(), "detail": error.to_string()})))
            }
        };
        let screenshot = seen.observation.screenshot.map(|image| Screenshot {
            format: image.format,
            width: image.width,
            height: image.height,
            data: match encoding {
                Encoding::Json => ImageData::Text(STANDARD.encode(&image.bytes)),
                Encoding::Msgpack => ImageData::Raw(image.bytes),
            },
        });
        let elements = seen.observation.elements;
        Observed {
            result,
            error,
            settled: seen.settled.is_none_or(|settled| settled.quiet),
            settle_ms: seen.settled.map_or(0, |settled| settled.elapsed.as_millis() as u64),
            screenshot,
            metadata: seen.observation.metadata,
            ac_tree: elements.as_ref().filter(|_| self.ac_tree).map(proto::page::ScreenshotInfo::ac_tree),
            screenshot_info: elements.filter(|_| self.rects).and_then(|info| serde_json::to_value(info).ok()),
            unchanged: seen.unchanged,
        }
    }
}

#[derive(Serialize)]
struct Observed {
    result: Option<Value>,
    /// The command failed, but the page was looked at all the same.
    error: Option<Value>,
    settled: bool,
    settle_ms: u64,
    screenshot: Option<Screenshot>,
    metadata: Option<PageMetadata>,
    ac_tree: Option<String>,
    screenshot_info: Option<Value>,
    unchanged: bool,
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
    Text(String),
    #[serde(serialize_with = "raw")]
    Raw(bytes::Bytes),
}

fn raw<S: serde::Serializer>(bytes: &bytes::Bytes, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

fn includes(given: Option<&Value>) -> Result<Vec<&str>, FarmError> {
    let bad = || FarmError::BadRequest(format!("include must be a list of: {}", INCLUDES.join(", ")));
    let Some(given) = given else { return Ok(vec!["screenshot", "metadata"]) };
    let list = given.as_array().ok_or_else(bad)?;
    list.iter().map(|one| one.as_str().filter(|name| INCLUDES.contains(name)).ok_or_else(bad)).collect()
}

fn word<T: std::str::FromStr<Err = String> + Default>(
    body: &Map<String, Value>,
    key: &str,
) -> Result<T, FarmError> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(Value::String(text)) => text.parse().map_err(FarmError::BadRequest),
        Some(_) => Err(FarmError::BadRequest(format!("{key} must be a string"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value, step: bool) -> Result<ObserveCall, String> {
        ObserveCall::read(body.as_object().unwrap(), step).map_err(|error| error.to_string())
    }

    #[test]
    fn bad_bodies_are_named() {
        for (body, step, words) in [
            (json!({}), true, "needs a \"command\""),
            (json!({"command": {"back": {}}}), false, "use /step"),
            (json!({"command": {"nope": {}}}), true, "unknown command"),
            (json!({"include": ["title"]}), false, "include must be a list of: screenshot"),
            (json!({"format": "gif"}), false, "format is \"gif\""),
            (json!({"mode": "x"}), false, "unknown key \"mode\""),
            (json!({"interaction_mode": 3}), false, "interaction_mode must be a string"),
        ] {
            let error = read(&body, step).unwrap_err();
            assert!(error.contains(words), "{body}: {error}");
        }
    }

    #[test]
    fn a_call_survives_the_way_to_another_node() {
        let body = json!({"command": {"click_id": {"id": "3"}}, "interaction_mode": "coordinates", "format": "jpeg",
                          "include": ["metadata", "rects"]});
        let call = read(&body, true).unwrap();
        let again = read(&call.to_json(), true).unwrap();
        assert_eq!((again.command, again.request, again.rects), (call.command, call.request, call.rects));
    }

    #[test]
    fn msgpack_is_chosen_by_accept() {
        assert_eq!(Encoding::from_accept(Some("application/json")), Encoding::Json);
        assert_eq!(Encoding::from_accept(Some("text/html, application/msgpack;q=0.9")), Encoding::Msgpack);
        assert_eq!(Encoding::from_accept(None), Encoding::Json);
    }
}
