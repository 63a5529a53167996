//! What an agent wants to do, in any of the forms that clients send: a command of the farm, the tool call of the prompts, a
//! whole reply of a model, or BrowserGym's action strings.

mod browsergym;
mod python_call;

use proto::{
    Command, InteractionMode,
    command::{Drag, MouseButton, MouseClick, Point, Wheel},
    trajectory::Action,
};
use rollout::policy::{ActionContext, Reply, ResolvedAction};
use serde_json::{Map, Value, json};

use crate::error::EnvError;

/// The field of an action with text of any form: BrowserGym's action string, a reply of a model, or JSON.
pub(crate) const ACTION_TEXT: &str = "action_str";
const TOOL_CALL: &str = "tool_call";
/// A field that every OpenEnv action may have; not interpreted.
const METADATA: &str = "metadata";

/// One thing to do in the browser.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Intent {
    Command(Command),
    Wait {
        seconds: f64,
    },
    /// A click on a mark that `click_id` cannot express.
    ClickElement {
        id: String,
        button: MouseButton,
        clicks: u8,
        keys: Vec<String>,
    },
    DragElement {
        from: String,
        to: String,
    },
    /// Turns the wheel in the middle of the page, in CSS pixels.
    ScrollPage {
        dx: f64,
        dy: f64,
    },
    /// Switches to the tab with this number, counted from 0.
    FocusTab {
        number: usize,
    },
}

/// What an action does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Acts in order, up to the first intent that fails.
    Act(Vec<Intent>),
    /// Ends the episode with this answer.
    Answer(String),
    /// The text is not an action. It counts as a step, and the observation says why.
    Unusable(String),
}

/// An action with what is recorded of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentAction {
    pub(crate) effect: Effect,
    pub(crate) record: Action,
    /// The text as the agent wrote it.
    pub(crate) raw: String,
    /// The parsed parts of a model's reply.
    pub(crate) parts: Map<String, Value>,
}

impl AgentAction {
    /// Parses the data of a `step` message. A text that is no action is [`Effect::Unusable`], because an agent wrote it; other
    /// defects are errors of the client.
    pub(crate) fn parse(data: &Map<String, Value>, context: &ActionContext<'_>) -> Result<Self, EnvError> {
        if let Some(text) = data.get(ACTION_TEXT) {
            let text = text.as_str();
            let text = text.ok_or_else(|| EnvError::Invalid(format!("{ACTION_TEXT} must be a string")))?;
            return Ok(Self::parse_text(text, context));
        }
        if let Some(answer) = data.get(Action::ANSWER) {
            let text = answer.get(Action::TEXT).unwrap_or(answer).as_str();
            let text = text.ok_or_else(|| EnvError::Invalid("answer must be a string".to_owned()))?;
            return Ok(Self::answer(text, answer.to_string()));
        }
        if let Some(call) = data.get(TOOL_CALL) {
            return Ok(Self::of_reply(&call.to_string(), context));
        }
        if data.contains_key("name") && data.contains_key("arguments") {
            return Ok(Self::of_reply(&Value::Object(data.clone()).to_string(), context));
        }
        let command = Command::from_json(data, &[METADATA]).map_err(|error| {
            EnvError::Invalid(format!("{error}; or send {ACTION_TEXT}, {TOOL_CALL} or answer"))
        })?;
        Ok(Self::of_command(command))
    }

    fn parse_text(text: &str, context: &ActionContext<'_>) -> Self {
        let trimmed = without_fence(text);
        if let Ok(Value::Object(data)) = serde_json::from_str(trimmed) {
            // A nested text is refused: it would only hide the real form.
            let parsed = if data.contains_key(ACTION_TEXT) {
                Err(EnvError::Invalid(format!("{ACTION_TEXT} must not contain another one")))
            } else {
                Self::parse(&data, context)
            };
            return match parsed {
                Ok(action) => Self { raw: text.to_owned(), ..action },
                Err(error) => Self::unusable(text, error.to_string()),
            };
        }
        let calls = python_call::parse_calls(trimmed);
        let reason = match calls {
            Ok(calls) => match browsergym::effect(&calls) {
                Ok(effect) => return Self::of_browsergym(text, effect),
                Err(reason) => return Self::unusable(text, reason),
            },
            Err(reason) => reason,
        };
        let reply = Self::of_reply(text, context);
        match reply.effect {
            Effect::Unusable(_) => Self::unusable(text, reason),
            _ => reply,
        }
    }

    fn of_browsergym(text: &str, effect: Effect) -> Self {
        let record = match &effect {
            Effect::Answer(answer) => answer_record(answer),
            Effect::Act(intents) => match intents.as_slice() {
                [Intent::Command(command)] => command_record(command),
                _ => record("browsergym", &json!({ ACTION_TEXT: text }), text),
            },
            Effect::Unusable(reason) => record(Action::INVALID_STEP, &json!({}), reason),
        };
        Self { effect, record, raw: text.to_owned(), parts: Map::new() }
    }

    /// Takes the action of a model's reply.
    fn of_reply(text: &str, context: &ActionContext<'_>) -> Self {
        let reply = Reply::parse(text, context.mode);
        if let Some(problem) = &reply.problem {
            return Self::unusable(text, problem.clone());
        }
        let effect = match ResolvedAction::resolve(&reply.action, context) {
            Ok(ResolvedAction::Command(command)) => Effect::Act(vec![Intent::Command(command)]),
            Ok(ResolvedAction::Commands(commands)) => {
                Effect::Act(commands.into_iter().map(Intent::Command).collect())
            }
            Ok(ResolvedAction::Wait { seconds }) => Effect::Act(vec![Intent::Wait { seconds }]),
            Ok(ResolvedAction::Answer(answer)) => Effect::Answer(answer),
            Err(error) => return Self::unusable(text, error.to_string()),
        };
        let parts = reply.answering_tokens();
        Self { effect, record: reply.action, raw: text.to_owned(), parts }
    }

    pub(crate) fn of_command(command: Command) -> Self {
        let record = command_record(&command);
        let raw = Value::Object(command.to_json()).to_string();
        Self { effect: Effect::Act(vec![Intent::Command(command)]), record, raw, parts: Map::new() }
    }

    pub(crate) fn of_intents(intents: Vec<Intent>) -> Self {
        if let [Intent::Command(command)] = intents.as_slice() {
            return Self::of_command(command.clone());
        }
        let sentence = format!("{intents:?}");
        let record = record("intents", &json!({}), &sentence);
        Self { effect: Effect::Act(intents), record, raw: sentence, parts: Map::new() }
    }

    pub(crate) fn answer(text: &str, raw: String) -> Self {
        Self { effect: Effect::Answer(text.to_owned()), record: answer_record(text), raw, parts: Map::new() }
    }

    fn unusable(text: &str, reason: String) -> Self {
        let record = record(Action::INVALID_STEP, &json!({}), &reason);
        Self { effect: Effect::Unusable(reason), record, raw: text.to_owned(), parts: Map::new() }
    }
}

fn record(key: &str, arguments: &Value, sentence: &str) -> Action {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Action { key: key.to_owned(), arguments, action_string: sentence.to_owned() }
}

fn answer_record(answer: &str) -> Action {
    record(Action::ANSWER, &json!({ Action::CONTENT: answer }), &format!("ANSWER [{answer}]"))
}

fn command_record(command: &Command) -> Action {
    let body = command.to_json();
    let arguments = body.get(command.name()).cloned().unwrap_or_default();
    record(command.name(), &arguments, &Value::Object(body).to_string())
}

/// Removes the fence of a code block around a text.
fn without_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let Some(inner) = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return trimmed;
    };
    match inner.split_once('\n') {
        // The first line may name the language.
        Some((language, rest)) if language.chars().all(char::is_alphanumeric) => rest.trim(),
        _ => inner.trim(),
    }
}

/// Returns the click of [`Intent::ClickElement`] at a point.
pub(crate) fn click_at(point: Point, button: MouseButton, clicks: u8, keys: Vec<String>) -> Command {
    Command::MouseClick(MouseClick { point, button, clicks, keys })
}

/// Returns the drag of [`Intent::DragElement`] between two points.
pub(crate) fn drag_between(from: Point, to: Point) -> Command {
    Command::Drag(Drag { path: vec![from, to], button: MouseButton::Left, keys: Vec::new() })
}

/// Returns the turn of the wheel of [`Intent::ScrollPage`] in the middle of a viewport.
pub(crate) fn wheel_at_centre((width, height): (u32, u32), dx: f64, dy: f64) -> Command {
    let point = Point { x: f64::from(width / 2), y: f64::from(height / 2) };
    Command::MouseWheel(Wheel { point, dx, dy, keys: Vec::new() })
}

/// Returns what the translation of actions depends on.
pub(crate) fn action_context(
    mode: InteractionMode,
    (width, height): (u32, u32),
    start_url: &str,
) -> ActionContext<'_> {
    ActionContext { mode, width, height, start_url }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data: &Value) -> Result<AgentAction, String> {
        let context = action_context(InteractionMode::SetOfMarks, (1000, 500), "http://start.test/");
        AgentAction::parse(data.as_object().unwrap(), &context).map_err(|error| error.to_string())
    }

    fn act(data: &Value) -> Vec<Intent> {
        match parse(data).unwrap().effect {
            Effect::Act(intents) => intents,
            other => panic!("{other:?}"),
        }
    }

    fn click() -> Vec<Intent> {
        vec![Intent::Command(Command::ClickId { id: "12".into() })]
    }

    #[test]
    fn every_form_of_a_click_is_understood() {
        let call = json!({"name": "web_interaction", "arguments": {"action": "click", "element_id": "12"}});
        let forms = [
            json!({"click_id": {"id": "12"}}),
            json!({"click_id": {"id": "12"}, "metadata": {"tag": 1}}),
            json!({"action_str": "click('12')"}),
            json!({"action_str": "```python\nclick('12')\n```"}),
            json!({"action_str": "{\"click_id\": {\"id\": \"12\"}}"}),
            json!({"action_str": format!("Action: click it.\n<tool_call>{call}</tool_call>")}),
            json!({"action_str": call.to_string()}),
            json!({ "tool_call": call }),
            call,
        ];
        for form in forms {
            assert_eq!(act(&form), click(), "{form}");
        }
    }

    #[test]
    fn every_form_of_an_answer_ends_the_episode() {
        let call = json!({"name": "web_interaction", "arguments": {"action": "answer", "text": "42"}});
        for form in [
            json!({"answer": "42"}),
            json!({"answer": {"text": "42"}}),
            json!({"action_str": "send_msg_to_user('42')"}),
            json!({"action_str": "{\"answer\": \"42\"}"}),
            json!({ "tool_call": call }),
        ] {
            let action = parse(&form).unwrap();
            assert_eq!(action.effect, Effect::Answer("42".into()), "{form}");
            assert_eq!(action.record.key, Action::ANSWER);
            assert_eq!(action.record.text(), Some(&json!("42")));
        }
    }

    #[test]
    fn text_that_is_no_action_is_a_step_of_the_agent() {
        for text in ["", "I do not know", "click(", "explode('1')", "{\"click\": 1}", "click()"] {
            let action = parse(&json!({ "action_str": text })).unwrap();
            assert!(matches!(action.effect, Effect::Unusable(_)), "{text}: {action:?}");
            assert_eq!(action.record.key, Action::INVALID_STEP);
        }
    }

    #[test]
    fn malformed_message_is_an_error_of_the_client() {
        for data in [json!({}), json!({"action_str": 5}), json!({"clack_id": {}}), json!({"answer": 1})] {
            assert!(parse(&data).is_err(), "{data}");
        }
    }
}
