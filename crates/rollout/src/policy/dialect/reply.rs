//! Reads a reply in a dialect.

use proto::{
    command::Point,
    dialect::{self, Dialect, Turn},
    trajectory::Action,
};
use serde_json::{Map, Value, json};

use super::{
    super::{
        action::{ActionKey, new_action, wait_action},
        reply::Reply,
        think_block::split_thinking,
    },
    DialectOptions,
    action::to_action,
};

/// Parses a reply and returns it with the position of the mouse after its actions.
pub(crate) fn parse_reply(text: &str, options: &DialectOptions, cursor: Point) -> (Reply, Point) {
    let split = split_thinking(text);
    let (thought, tool_call) = without_calls(&split.answer);
    let (action, problem, cursor) = match read_action(&split.answer, &thought, options, cursor) {
        Ok((action, cursor)) => (action, None, cursor),
        Err(_) if split.is_unfinished => {
            (wait_action(), Some("the reply ended while thinking".to_owned()), cursor)
        }
        Err(problem) => (wait_action(), Some(problem), cursor),
    };
    let reply = Reply {
        thinking: split.thinking,
        thought,
        memory: String::new(),
        progress: String::new(),
        intention: String::new(),
        action_sentence: action.action_string.clone(),
        tool_call,
        action,
        problem,
    };
    (reply, cursor)
}

/// Returns the action of a reply, or why it has none. `thought` is the text before its calls.
fn read_action(
    answer: &str,
    thought: &str,
    options: &DialectOptions,
    cursor: Point,
) -> Result<(Action, Point), String> {
    let is_text = matches!(options.dialect, Dialect::Qwen | Dialect::UiTars);
    if !is_text && !answer.contains("<tool_call>") {
        let answer = answer.trim();
        if answer.is_empty() {
            return Err("the reply has neither a function call nor an answer".to_owned());
        }
        return Ok((answer_action(answer), cursor));
    }
    let turn =
        dialect::parse(&json!(answer), &options.parse_options(cursor)).map_err(|error| error.to_string())?;
    if let Some(failure) = turn.calls.iter().find_map(|call| call.failure.as_ref()) {
        return Err(failure.to_string());
    }
    Ok((turn_action(&turn, thought, options), turn.cursor))
}

fn turn_action(turn: &Turn, thought: &str, options: &DialectOptions) -> Action {
    match turn.finish() {
        Some((answer, _)) if !answer.trim().is_empty() => answer_action(answer),
        // Qwen2.5-VL has no action for an answer, so it is the text beside the call.
        Some(_) if options.dialect == Dialect::Qwen && !thought.is_empty() => answer_action(thought),
        Some((_, true)) => answer_action("The task is done."),
        Some((_, false)) => answer_action("The task cannot be done."),
        None => to_action(turn, options.viewport),
    }
}

fn answer_action(answer: &str) -> Action {
    new_action(ActionKey::Answer, Map::from_iter([(Action::CONTENT.to_owned(), json!(answer))]))
}

/// Returns the text without its calls, and the first call.
fn without_calls(answer: &str) -> (String, Map<String, Value>) {
    let (before, rest) = answer.split_once("<tool_call>").unwrap_or((answer, ""));
    let block = rest.split("</tool_call>").next().unwrap_or_default();
    let call = serde_json::from_str(block.trim()).unwrap_or_default();
    (before.trim().to_owned(), call)
}

#[cfg(test)]
mod tests {
    use proto::dialect::Size;

    use super::*;

    const START: Point = Point { x: 640.0, y: 384.0 };

    fn parse(dialect: Dialect, text: &str) -> (Reply, Point) {
        let viewport = Size { width: 1280, height: 768 };
        parse_reply(text, &DialectOptions { dialect, version: None, viewport }, START)
    }

    fn call(name: &str, arguments: &Value) -> String {
        format!("I look.\n<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
    }

    #[test]
    fn replies_become_actions() {
        let click = json!({"type": "click", "button": "left", "x": 320, "y": 384});
        let cases = [
            (Dialect::OpenAi, call("computer", &json!({"actions": [click]})), "click"),
            (
                Dialect::Anthropic,
                call("computer", &json!({"action": "left_click", "coordinate": [320, 384]})),
                "click",
            ),
            (Dialect::Gemini, call("click", &json!({"x": 250, "y": 500})), "click"),
            (
                Dialect::Qwen,
                call("computer_use", &json!({"action": "left_click", "coordinate": [250, 500]})),
                "click",
            ),
            (Dialect::UiTars, "Thought: x\nAction: click(start_box='(322,378)')".to_owned(), "click"),
            (Dialect::OpenAi, "The answer is 42.".to_owned(), "answer"),
            (Dialect::Qwen, call("computer_use", &json!({"action": "answer", "text": "42"})), "answer"),
            (Dialect::UiTars, "Action: finished(content='42')".to_owned(), "answer"),
            (Dialect::Gemini, call("go_back", &json!({})), "goback"),
            (Dialect::Gemini, call("navigate", &json!({"url": "a.test"})), "navigate"),
        ];
        for (dialect, text, key) in cases {
            let (reply, cursor) = parse(dialect, &text);
            assert_eq!((reply.action.key.as_str(), &reply.problem), (key, &None), "{text}");
            if key == "click" {
                assert_eq!(reply.action.coordinates(), Some(&json!([250, 500])), "{text}");
                assert_eq!((cursor.x.round(), cursor.y.round()), (320.0, 384.0), "{text}");
            }
        }
    }

    #[test]
    fn unusable_replies_wait_and_say_why() {
        let cases = [
            (Dialect::OpenAi, String::new(), "neither a function call nor an answer"),
            (Dialect::OpenAi, "<think>hm".to_owned(), "ended while thinking"),
            (Dialect::OpenAi, call("computer", &json!({"type": "fly"})), "unknown action \"fly\""),
            (Dialect::Gemini, call("open_app", &json!({"app_name": "x"})), "open_app is not supported"),
            (
                Dialect::Anthropic,
                call("computer", &json!({"action": "left_click", "coordinate": [5000, 1]})),
                "out of bounds",
            ),
            (Dialect::Qwen, "I am done.".to_owned(), "no <tool_call>"),
            (Dialect::UiTars, "I am done.".to_owned(), "must be a call such as"),
        ];
        for (dialect, text, problem) in cases {
            let (reply, cursor) = parse(dialect, &text);
            assert_eq!((reply.action.key.as_str(), cursor), ("wait", START), "{text}");
            assert!(
                reply.problem.as_ref().is_some_and(|reason| reason.contains(problem)),
                "{:?}",
                reply.problem
            );
        }
    }

    #[test]
    fn task_can_end_without_an_answer() {
        let (reply, _) =
            parse(Dialect::Qwen, &call("computer_use", &json!({"action": "terminate", "status": "failure"})));
        assert_eq!(reply.action.text(), Some(&json!("I look.")), "the text beside the call");
        let call = "<tool_call>{\"name\": \"computer_use\", \"arguments\": {\"action\": \"terminate\", \"status\": \"failure\"}}";
        let (reply, _) = parse(Dialect::Qwen, call);
        assert_eq!(
            (reply.action.key.as_str(), reply.action.text()),
            ("answer", Some(&json!("The task cannot be done.")))
        );
        let (reply, _) = parse(Dialect::UiTars, "Action: finished()");
        assert_eq!(reply.action.text(), Some(&json!("The task is done.")));
    }
}
