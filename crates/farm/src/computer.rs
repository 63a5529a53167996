//! The wire format of `/computer`: a model's turn in its dialect, and the response with what the dialect expects.

use base64::{Engine, engine::general_purpose::STANDARD};
use browser::{BrowserError, Screenshot};
use proto::{
    Command, ErrorCode,
    command::Point,
    dialect::{
        self, CallResult, Dialect, Failure, Image, PageState, ParseOptions, Screen, Size, Turn, Version,
    },
    page::{PageMetadata, TabInfo},
    text::cut,
};
use serde_json::{Map, Value, json};

use crate::{access::LEASE_FIELDS, error::ApiError};

/// The parsed body of `/computer`.
#[derive(Clone, Debug)]
pub(crate) struct ComputerCall {
    dialect: Dialect,
    version: Option<Version>,
    action: Value,
    /// The size of the screenshots that the model is shown; `None` is the size of the viewport.
    display: Option<Size>,
    acknowledge_safety_checks: bool,
    /// Addresses that the turn visits and that pages may not reach.
    refused: Vec<(String, BrowserError)>,
}

const KEYS: &[&str] = &["dialect", "version", "action", "display", "acknowledge_safety_checks"];

fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || LEASE_FIELDS.contains(&key)
}

impl ComputerCall {
    pub(crate) fn parse(body: &Map<String, Value>) -> Result<Self, ApiError> {
        let bad = |text: String| Err(ApiError::BadRequest(text));
        if let Some(unknown) = body.keys().find(|key| !is_known(key)) {
            return bad(format!(
                "unknown key {:?}; accepted keys: node, instance_id, {}",
                cut(unknown),
                KEYS.join(", ")
            ));
        }
        let dialect: Dialect = match body.get("dialect") {
            Some(Value::String(name)) => {
                name.parse().map_err(|error| ApiError::BadRequest(format!("dialect: {error}")))?
            }
            Some(_) => return bad("dialect must be a string".into()),
            None => {
                let accepted = Dialect::ALL.map(Dialect::as_str).join(", ");
                return bad(format!("dialect is missing from the body; accepted: {accepted}"));
            }
        };
        let version = match body.get("version") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(
                dialect.version(name).map_err(|error| ApiError::BadRequest(format!("version: {error}")))?,
            ),
            Some(_) => return bad("version must be a string".into()),
        };
        let Some(action) = body.get("action").filter(|action| !action.is_null()) else {
            return bad("action is missing from the body; it is what the model emitted".into());
        };
        let acknowledge_safety_checks = match body.get("acknowledge_safety_checks") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => return bad("acknowledge_safety_checks must be true or false".into()),
        };
        let display = display(body.get("display"))?;
        Ok(Self {
            dialect,
            version,
            action: action.clone(),
            display,
            acknowledge_safety_checks,
            refused: Vec::new(),
        })
    }

    /// Returns the body that sends this call to another node.
    pub(crate) fn to_json(&self) -> Value {
        let mut body = json!({
            "dialect": self.dialect.as_str(), "action": self.action,
            "acknowledge_safety_checks": self.acknowledge_safety_checks,
        });
        if let Some(version) = self.version {
            body["version"] = version.as_str().into();
        }
        if let Some(Size { width, height }) = self.display {
            body["display"] = json!({"width": width, "height": height});
        }
        body
    }

    pub(crate) fn display(&self, viewport: Size) -> Result<Size, ApiError> {
        let display = self.display.unwrap_or(viewport);
        dialect::check_display(display, viewport).map_err(ApiError::BadRequest)?;
        Ok(display)
    }

    pub(crate) fn turn(&self, screen: Screen) -> Result<Turn, ApiError> {
        let options = ParseOptions {
            dialect: self.dialect,
            version: self.version,
            screen,
            acknowledge_safety_checks: self.acknowledge_safety_checks,
        };
        dialect::parse(&self.action, &options).map_err(|error| ApiError::BadRequest(error.to_string()))
    }

    /// Returns the addresses that the turn visits. They do not depend on the screen.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let size = self.display.unwrap_or(Size { width: 1280, height: 768 });
        let screen = Screen { viewport: size, display: size, cursor: Point { x: 0.0, y: 0.0 } };
        let turn = self.turn(screen).map(|turn| turn.calls).unwrap_or_default();
        let commands = turn.iter().flat_map(dialect::Call::commands);
        commands.filter_map(Command::visited_url).map(str::to_owned).collect()
    }

    pub(crate) fn refuse(&mut self, url: String, error: BrowserError) {
        self.refused.push((url, error));
    }

    /// Returns why a command must not be carried out.
    pub(crate) fn refusal(&self, command: &Command) -> Option<BrowserError> {
        let url = command.visited_url()?;
        self.refused.iter().find(|(refused, _)| refused == url).map(|(_, error)| error.clone())
    }
}

/// Parses `{"width": …, "height": …}`.
fn display(value: Option<&Value>) -> Result<Option<Size>, ApiError> {
    let invalid = || {
        ApiError::BadRequest(
            "display must be {\"width\": a whole number of pixels, \"height\": a whole number of pixels}"
                .into(),
        )
    };
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let fields = value.as_object().filter(|fields| fields.len() == 2).ok_or_else(invalid)?;
    let side = |name: &str| {
        fields.get(name).and_then(Value::as_u64).and_then(|side| u32::try_from(side).ok()).ok_or_else(invalid)
    };
    Ok(Some(Size { width: side("width")?, height: side("height")? }))
}

/// Why a turn was not carried out completely.
#[derive(Debug)]
pub(crate) enum TurnError {
    Action(Failure),
    Browser(BrowserError),
    Timeout(std::time::Duration),
}

impl TurnError {
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Action(Failure::Invalid(_)) => ErrorCode::BadRequest,
            Self::Action(Failure::Unsupported { .. }) => ErrorCode::UnsupportedAction,
            Self::Action(Failure::Unconfirmed) => ErrorCode::ConfirmationRequired,
            Self::Browser(error) => error.code(),
            Self::Timeout(_) => ErrorCode::Timeout,
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Action(failure) => failure.to_string(),
            Self::Browser(error) => error.to_string(),
            Self::Timeout(limit) => format!("the turn took longer than {} s", limit.as_secs()),
        }
    }
}

/// A turn that was carried out, up to its first error.
#[derive(Debug)]
pub(crate) struct ComputerResult {
    pub(crate) turn: Turn,
    pub(crate) viewport: Size,
    pub(crate) display: Size,
    /// The commands that were carried out.
    pub(crate) commands: Vec<Command>,
    /// The results of the calls that were carried out.
    pub(crate) results: Vec<CallResult>,
    pub(crate) is_finished: bool,
    pub(crate) error: Option<TurnError>,
    pub(crate) screenshot: Screenshot,
    pub(crate) metadata: PageMetadata,
    /// Empty if the session has a single page.
    pub(crate) tabs: Vec<TabInfo>,
}

/// The text that Anthropic prescribes for the calls after a failed one.
const NOT_EXECUTED: &str = "Not executed: an earlier computer action in this turn failed.";
const AFTER_FINISH: &str = "Not executed: the task was finished by an earlier action in this turn.";

impl ComputerResult {
    /// Builds the response.
    pub(crate) fn into_json(self) -> Value {
        let mut results = self.results;
        if let Some(error) = &self.error {
            results.push(CallResult { error: Some(error.detail()), ..CallResult::default() });
        }
        let reason = if self.error.is_some() { NOT_EXECUTED } else { AFTER_FINISH };
        results.resize_with(self.turn.calls.len(), || CallResult {
            error: Some(reason.to_owned()),
            ..CallResult::default()
        });
        let image = to_image(&self.screenshot);
        let page = PageState { title: self.metadata.title, url: self.metadata.url, tabs: self.tabs };
        let output = self.turn.output(&results, &page, &image);
        let finish = self.turn.finish().filter(|_| self.is_finished);
        let scale = |display: u32, viewport: u32| f64::from(display) / f64::from(viewport);
        let commands: Vec<Value> = self.commands.iter().map(|command| command.to_json().into()).collect();
        json!({
            "output": output,
            "commands": commands,
            "finished": finish.map(|(answer, success)| json!({"answer": answer, "success": success})),
            "error": self.error.map(|error| json!({"code": error.code().as_str(), "detail": error.detail()})),
            "screenshot": {
                "format": self.screenshot.format.as_str(), "width": self.screenshot.width, "height": self.screenshot.height,
                "data": image.data,
            },
            "scale": {
                "x": scale(self.display.width, self.viewport.width), "y": scale(self.display.height, self.viewport.height),
            },
            "metadata": {"title": page.title, "url": page.url},
        })
    }
}

pub(crate) fn to_image(screenshot: &Screenshot) -> Image {
    Image { media_type: screenshot.format.mime(), data: STANDARD.encode(&screenshot.bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Value) -> Result<ComputerCall, String> {
        ComputerCall::parse(body.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_body_names_the_field() {
        let action = json!({"type": "wait"});
        for (body, text) in [
            (json!({"action": action}), "dialect is missing from the body; accepted: openai"),
            (json!({"dialect": "gpt", "action": action}), "dialect: \"gpt\" is not a dialect"),
            (json!({"dialect": 3, "action": action}), "dialect must be a string"),
            (json!({"dialect": "openai"}), "action is missing"),
            (json!({"dialect": "openai", "action": null}), "action is missing"),
            (
                json!({"dialect": "openai", "version": "9", "action": action}),
                "version: \"9\" is not a version of openai",
            ),
            (json!({"dialect": "openai", "version": 9, "action": action}), "version must be a string"),
            (json!({"dialect": "openai", "action": action, "display": [1, 2]}), "display must be {\"width\""),
            (
                json!({"dialect": "openai", "action": action, "display": {"width": -1, "height": 2}}),
                "display must be",
            ),
            (
                json!({"dialect": "openai", "action": action, "display": {"width": 1e99, "height": 2}}),
                "display must be",
            ),
            (json!({"dialect": "openai", "action": action, "display": {"width": 640}}), "display must be"),
            (json!({"dialect": "openai", "action": action, "size": 1}), "unknown key \"size\""),
            (
                json!({"dialect": "openai", "action": action, "acknowledge_safety_checks": "yes"}),
                "acknowledge_safety_checks must be",
            ),
        ] {
            let error = parse(&body).unwrap_err();
            assert!(error.contains(text), "{body}: {error}");
        }
    }

    #[test]
    fn forwarded_call_is_unchanged() {
        let body = json!({"dialect": "qwen", "action": "<tool_call>{}</tool_call>", "acknowledge_safety_checks": true,
                          "version": "qwen3", "display": {"width": 640, "height": 384}});
        assert_eq!(parse(&body).unwrap().to_json(), body);
    }

    #[test]
    fn visited_addresses_are_found() {
        let body = json!({"dialect": "gemini", "action": [
            {"name": "navigate", "args": {"url": "example.com"}}, {"name": "search"}, {"name": "go_back"},
        ]});
        let mut call = parse(&body).unwrap();
        assert_eq!(call.addresses(), ["https://example.com", "https://www.google.com"]);
        let refused = BrowserError::BadArgument("no".into());
        call.refuse("https://example.com".into(), refused);
        assert!(call.refusal(&Command::VisitPage { url: "https://example.com".into() }).is_some());
        assert!(call.refusal(&Command::Back).is_none());
    }
}
