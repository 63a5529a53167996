//! The messages of the WebSocket and what a reset accepts.

use std::str::FromStr;

use proto::{ImageFormat, InteractionMode};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{catalog::TaskChoice, error::EnvError};

const MAX_EPISODE_ID_CHARS: usize = 255;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum ClientMessage {
    Reset(ResetRequest),
    Step(Map<String, Value>),
    State,
    /// A JSON-RPC request of MCP.
    Mcp(Value),
    Close,
}

/// What a client asks for with a reset. Unknown fields are ignored, as by OpenEnv's own server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResetRequest {
    pub(crate) task: TaskChoice,
    pub(crate) episode_id: Option<String>,
    pub(crate) mode: Option<InteractionMode>,
    pub(crate) screenshot: Option<RequestedScreenshot>,
}

/// The screenshots that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedScreenshot {
    None,
    Format(ImageFormat),
}

impl ClientMessage {
    pub(crate) fn parse(text: &str) -> Result<Self, EnvError> {
        let message: Value =
            serde_json::from_str(text).map_err(|error| EnvError::InvalidJson(error.to_string()))?;
        let fields = message.as_object();
        let fields =
            fields.ok_or_else(|| EnvError::Invalid("the message must be a JSON object".to_owned()))?;
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        let data = || match fields.get("data") {
            Some(Value::Object(data)) => Ok(Some(data)),
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(EnvError::Invalid(format!("the data of {kind} must be a JSON object"))),
        };
        let required = || data()?.ok_or_else(|| EnvError::Invalid(format!("{kind} needs data")));
        match kind {
            "reset" => {
                Ok(Self::Reset(data()?.map_or_else(|| Ok(ResetRequest::default()), ResetRequest::parse)?))
            }
            "step" => Ok(Self::Step(required()?.clone())),
            "state" => Ok(Self::State),
            "mcp" => Ok(Self::Mcp(Value::Object(required()?.clone()))),
            "close" => Ok(Self::Close),
            other => Err(EnvError::UnknownType(other.chars().take(100).collect())),
        }
    }
}

impl ResetRequest {
    pub(crate) fn parse(data: &Map<String, Value>) -> Result<Self, EnvError> {
        let fields = Fields(data);
        let task_id = match fields.get("task_id") {
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => fields.text("task_id")?,
        };
        // BrowserGym's clients name the task so.
        let task_id = task_id.or(fields.text("task_name")?);
        let index = fields.number("index")?;
        let task = TaskChoice {
            split: fields.text("split")?,
            task_id,
            index: index.map(|index| usize::try_from(index).unwrap_or(usize::MAX)),
            seed: fields.number("seed")?,
        };
        let episode_id = fields.text("episode_id")?;
        if episode_id.as_ref().is_some_and(|id| id.chars().count() > MAX_EPISODE_ID_CHARS) {
            return Err(EnvError::Invalid(format!(
                "episode_id is longer than {MAX_EPISODE_ID_CHARS} characters"
            )));
        }
        let mode = fields.text("interaction_mode")?;
        let mode = mode.map(|mode| InteractionMode::from_str(&mode).map_err(EnvError::Invalid));
        let screenshot = match fields.text("screenshot")?.as_deref() {
            None => None,
            Some("none") => Some(RequestedScreenshot::None),
            Some(format) => {
                Some(RequestedScreenshot::Format(format.parse::<ImageFormat>().map_err(|_| {
                    EnvError::Invalid(format!("screenshot is {format:?}; it must be png, jpeg, webp or none"))
                })?))
            }
        };
        Ok(Self { task, episode_id, mode: mode.transpose()?, screenshot })
    }
}

/// The fields of a reset, where null counts as absent.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<String>, EnvError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(EnvError::Invalid(format!("{name} must be a string"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, EnvError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| EnvError::Invalid(format!("{name} must be a whole number, 0 or more"))),
        }
    }
}

/// Room for a message without its screenshot; longer ones grow.
const SMALL_MESSAGE_BYTES: usize = 4 << 10;

/// A message to the client. It borrows the data: a copy of a screenshot would cost more than all else in the message.
#[derive(Serialize)]
struct ServerMessage<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    data: &'a Value,
}

/// Formats a message of the server.
pub(crate) fn response(kind: &str, data: &Value) -> String {
    let message = ServerMessage { kind, data };
    let mut text = Vec::with_capacity(image_bytes(data) + SMALL_MESSAGE_BYTES);
    // Writing values to memory does not fail.
    let _ = serde_json::to_writer(&mut text, &message);
    String::from_utf8(text).unwrap_or_default()
}

/// Returns the length of an observation's screenshot, which is most of the message.
fn image_bytes(data: &Value) -> usize {
    data.pointer("/observation/screenshot_base64").and_then(Value::as_str).map_or(0, str::len)
}

pub(crate) fn error_response(error: &EnvError) -> String {
    response("error", &Value::Object(error.to_json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> &'static str {
        ClientMessage::parse(text).unwrap_err().code()
    }

    #[test]
    fn messages_of_the_openenv_client_are_parsed() {
        let parse = |text: &str| ClientMessage::parse(text).unwrap();
        assert_eq!(parse(r#"{"type":"state"}"#), ClientMessage::State);
        assert_eq!(parse(r#"{"type":"close"}"#), ClientMessage::Close);
        assert_eq!(parse(r#"{"type":"reset","data":{}}"#), ClientMessage::Reset(ResetRequest::default()));
        let data =
            r#"{"type":"reset","data":{"task_id":7,"seed":3,"split":"test","screenshot":"none","x":[]}}"#;
        let ClientMessage::Reset(request) = parse(data) else { panic!("no reset") };
        assert_eq!(request.task.task_id.as_deref(), Some("7"));
        assert_eq!((request.task.seed, request.screenshot), (Some(3), Some(RequestedScreenshot::None)));
        assert!(matches!(parse(r#"{"type":"step","data":{"action_str":"noop()"}}"#), ClientMessage::Step(_)));
    }

    #[test]
    fn malformed_messages_have_their_error_code() {
        assert_eq!(code("{"), "INVALID_JSON");
        assert_eq!(code("[]"), "VALIDATION_ERROR");
        assert_eq!(code("{}"), "UNKNOWN_TYPE");
        assert_eq!(code(r#"{"type":"dance"}"#), "UNKNOWN_TYPE");
        assert_eq!(code(r#"{"type":"step"}"#), "VALIDATION_ERROR");
        assert_eq!(code(r#"{"type":"step","data":[]}"#), "VALIDATION_ERROR");
        for data in [
            r#"{"seed":-1}"#,
            r#"{"seed":"1"}"#,
            r#"{"split":1}"#,
            r#"{"screenshot":"bmp"}"#,
            r#"{"interaction_mode":"x"}"#,
        ] {
            assert_eq!(code(&format!(r#"{{"type":"reset","data":{data}}}"#)), "VALIDATION_ERROR", "{data}");
        }
        let long = "x".repeat(256);
        assert_eq!(
            code(&format!(r#"{{"type":"reset","data":{{"episode_id":"{long}"}}}}"#)),
            "VALIDATION_ERROR"
        );
    }
}
