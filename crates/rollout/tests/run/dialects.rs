//! Policies that speak a dialect of computer actions.

use proto::{
    dialect::{Dialect, Size},
    trajectory::Outcome,
};
use rollout::policy::DialectOptions;
use serde_json::{Value, json};
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{Harness, action_keys, ending, outcome, task};

async fn harness(
    dialect: Dialect,
    policy: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
) -> Harness {
    let mut harness = Harness::faulty(|_| Fault::None, policy).await;
    let viewport = Size { width: 1280, height: 768 };
    harness.dialect = Some(DialectOptions { dialect, version: None, viewport });
    harness
}

/// A reply with function calls, as an OpenAI-compatible server sends it.
fn calls(calls: &[(&str, Value)]) -> ModelReply {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, arguments)| {
            json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    ModelReply::Json(200, json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))
}

fn text(text: &str) -> ModelReply {
    ModelReply::Reply(text.to_owned())
}

fn qwen(arguments: &Value) -> ModelReply {
    text(&format!("<tool_call>\n{}\n</tool_call>", json!({"name": "computer_use", "arguments": arguments})))
}

/// Each policy clicks the centre, types and presses Enter, does something that it cannot do, and answers.
fn replies(dialect: Dialect) -> Vec<ModelReply> {
    match dialect {
        Dialect::OpenAi => vec![
            calls(&[(
                "computer",
                json!({"actions": [{"type": "click", "button": "left", "x": 640, "y": 384}]}),
            )]),
            calls(&[(
                "computer",
                json!({"actions": [{"type": "type", "text": "hat"}, {"type": "keypress", "keys": ["ENTER"]}]}),
            )]),
            calls(&[("computer", json!({"actions": [{"type": "fly"}]}))]),
            text("42"),
        ],
        Dialect::Anthropic => vec![
            calls(&[("computer", json!({"action": "left_click", "coordinate": [640, 384]}))]),
            calls(&[
                ("computer", json!({"action": "type", "text": "hat"})),
                ("computer", json!({"action": "key", "text": "Return"})),
            ]),
            calls(&[("computer", json!({"action": "bash"}))]),
            text("42"),
        ],
        Dialect::Gemini => vec![
            calls(&[("click", json!({"x": 500, "y": 500, "intent": "look"}))]),
            calls(&[("type", json!({"text": "hat", "press_enter": true}))]),
            calls(&[("open_app", json!({"app_name": "Maps"}))]),
            text("42"),
        ],
        Dialect::Qwen => vec![
            qwen(&json!({"action": "left_click", "coordinate": [500, 500]})),
            text(
                "<tool_call>{\"name\": \"computer_use\", \"arguments\": {\"action\": \"type\", \"text\": \"hat\"}}</tool_call><tool_call>{\"name\": \"computer_use\", \"arguments\": {\"action\": \"key\", \"keys\": [\"enter\"]}}</tool_call>",
            ),
            text("I do not know."),
            qwen(&json!({"action": "answer", "text": "42"})),
        ],
        Dialect::UiTars => vec![
            text("Thought: x\nAction: click(start_box='(644,378)')"),
            text("Thought: x\nAction: type(content='hat\\n')"),
            text("Thought: x\nAction: press_home()"),
            text("Thought: x\nAction: finished(content='42')"),
        ],
    }
}

#[tokio::test]
async fn policy_of_every_dialect_acts_and_answers() {
    for dialect in Dialect::ALL {
        let script = replies(dialect);
        let mut harness = harness(dialect, move |request| script[request.number].clone()).await;
        let trajectory = harness.run_one(task(0)).await;
        let name = dialect.as_str();
        assert_eq!(action_keys(&trajectory), ["click", "type", "wait", "answer"], "{name}");
        assert_eq!(
            (outcome(&trajectory), ending(&trajectory).as_str()),
            (Outcome::Success, "answered"),
            "{name}"
        );
        assert_eq!(harness.farm.commands(), ["visit_page", "mouse_click", "type_text", "keypress"], "{name}");
        let click = trajectory.steps[0].action.as_ref().unwrap();
        assert_eq!(click.coordinates(), Some(&json!([500, 500])), "{name}");
        assert_eq!(click.arguments["commands"][0]["mouse_click"]["x"], 640.0, "{name}");
        let answer = trajectory.steps[3].action.as_ref().unwrap();
        assert_eq!(answer.text(), Some(&json!("42")), "{name}");

        let requests = harness.policy.requests();
        for (step, request) in trajectory.steps.iter().zip(&requests) {
            assert_eq!(step.response.raw_prompt, request.body["messages"].to_string(), "{name}");
        }
        let has_functions = matches!(dialect, Dialect::OpenAi | Dialect::Anthropic | Dialect::Gemini);
        assert_eq!(requests[0].body["tools"].is_array(), has_functions, "{name}");
        assert!(
            requests.iter().enumerate().all(|(number, request)| request.images.len() == number + 1),
            "{name}"
        );
        assert!(requests[0].text.contains("find thing 0"), "{name}: {}", requests[0].text);
        assert!(
            requests[3].text.contains("not supported")
                || requests[3].text.contains("unknown action")
                || requests[3].text.contains("no ‹tool_call>"),
            "{name}: {}",
            requests[3].text
        );
    }
}

#[tokio::test]
async fn failed_command_ends_the_turn() {
    let policy = |request: &ModelRequest| match request.number {
        0 => calls(&[(
            "computer",
            json!({"actions": [{"type": "click", "x": 1, "y": 1}, {"type": "type", "text": "a"}]}),
        )]),
        _ => text("42"),
    };
    let script = |call: &testkit::sim_farm::Call| {
        if call.runs("mouse_click") { Fault::CommandFailed } else { Fault::None }
    };
    let mut harness = Harness::new(SimFarmOptions::default().with_script(script), policy).await;
    let viewport = Size { width: 1280, height: 768 };
    harness.dialect = Some(DialectOptions { dialect: Dialect::OpenAi, version: None, viewport });
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["click", "answer"]);
    assert!(!harness.farm.commands().contains(&"type_text".to_owned()), "{:?}", harness.farm.commands());
}

#[tokio::test]
async fn mouse_is_followed_between_steps() {
    let policy = |request: &ModelRequest| match request.number {
        0 => calls(&[("computer", json!({"action": "mouse_move", "coordinate": [100, 200]}))]),
        1 => calls(&[("computer", json!({"action": "left_click"}))]),
        2 => calls(&[("computer", json!({"action": "screenshot"}))]),
        _ => text("42"),
    };
    let mut harness = harness(Dialect::Anthropic, policy).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["hover", "click", "wait", "answer"]);
    let click = &trajectory.steps[1].action.as_ref().unwrap().arguments["commands"][0]["mouse_click"];
    assert_eq!((&click["x"], &click["y"]), (&json!(100.0), &json!(200.0)));
}
