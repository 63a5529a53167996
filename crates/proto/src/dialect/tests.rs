//! `rows.json` has one row for every action of every dialect; `docs/dialects.md` shows the same rows.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

const VIEWPORT: Size = Size { width: 1280, height: 768 };
const CURSOR: Point = Point { x: 640.0, y: 384.0 };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    dialect: String,
    version: Option<String>,
    action: Value,
    expected: Option<Vec<Value>>,
    /// A part of the reason why the action is rejected.
    rejected: Option<String>,
    note: Option<String>,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("rows.json")).unwrap()
}

fn options(dialect: &str, version: Option<&str>) -> ParseOptions {
    let dialect: Dialect = dialect.parse().unwrap();
    let screen = Screen { viewport: VIEWPORT, display: VIEWPORT, cursor: CURSOR };
    let version = version.map(|version| dialect.version(version).unwrap());
    ParseOptions { dialect, version, screen, acknowledge_safety_checks: false }
}

fn parse_with(dialect: &str, version: Option<&str>, action: &Value) -> Result<Turn, DialectError> {
    parse(action, &options(dialect, version))
}

fn failure(dialect: &str, version: Option<&str>, action: &Value) -> String {
    let turn = parse_with(dialect, version, action).unwrap();
    let failed = turn.calls.into_iter().find_map(|call| call.failure);
    failed.unwrap_or_else(|| panic!("{action} does not fail")).to_string()
}

fn step_to_json(step: &Step) -> Value {
    match step {
        Step::Command(command) => command.to_json().into(),
        Step::Screenshot => json!("screenshot"),
        Step::CursorPosition { x, y } => json!({"cursor_position": [x, y]}),
        Step::Zoom(region) => json!({"zoom": [region.x, region.y, region.width, region.height]}),
        Step::Finish { answer, success } => json!({"finish": {"answer": answer, "success": success}}),
    }
}

/// Completes an expected command with the defaults of its arguments.
fn complete(step: &Value) -> Value {
    let command = step.as_object().and_then(|step| Command::from_json(step, &[]).ok());
    match command {
        Some(command) => command.to_json().into(),
        None if step.get("zoom").is_some() => {
            let numbers: Vec<f64> = serde_json::from_value(step["zoom"].clone()).unwrap();
            json!({ "zoom": numbers })
        }
        None => step.clone(),
    }
}

#[test]
fn every_row_is_carried_out_or_rejected_as_documented() {
    for row in rows() {
        let turn = parse_with(&row.dialect, row.version.as_deref(), &row.action);
        let turn = turn.unwrap_or_else(|error| panic!("{}: {error}", row.id));
        let [call] = turn.calls.as_slice() else { panic!("{}: {} calls", row.id, turn.calls.len()) };
        match (&row.expected, &row.rejected) {
            (Some(expected), None) => {
                assert_eq!(call.failure, None, "{}", row.id);
                let expected: Vec<Value> = expected.iter().map(complete).collect();
                let steps: Vec<Value> = call.steps.iter().map(step_to_json).collect();
                assert_eq!(steps, expected, "{}", row.id);
            }
            (None, Some(reason)) => {
                let failure = call.failure.as_ref().unwrap_or_else(|| panic!("{} is not rejected", row.id));
                assert!(matches!(failure, Failure::Unsupported { .. }), "{}: {failure}", row.id);
                assert!(failure.to_string().contains(reason.as_str()), "{}: {failure}", row.id);
                assert_eq!(call.steps, [], "{}", row.id);
            }
            _ => panic!("{} needs either expected or rejected", row.id),
        }
    }
}

/// Returns the row of the table in the documentation.
fn documented(row: &Row) -> String {
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|").replace('\n', "⏎"));
    let action = match &row.action {
        Value::String(text) => code(text),
        action => match (&action["name"], action.get("args").or(action.get("input"))) {
            (Value::String(name), Some(arguments)) => {
                format!("{} {}", code(name), code(&arguments.to_string()))
            }
            _ => code(&action.to_string()),
        },
    };
    let step = |step: &Value| match step {
        Value::String(name) => name.clone(),
        step => {
            let (name, arguments) = step.as_object().unwrap().iter().next().unwrap();
            let arguments = arguments.to_string();
            if arguments == "{}" { code(name) } else { format!("{} {}", code(name), code(&arguments)) }
        }
    };
    let turn = parse_with(&row.dialect, row.version.as_deref(), &row.action).unwrap();
    let result = match (&row.expected, &turn.calls[0].failure) {
        (Some(steps), _) => steps.iter().map(step).collect::<Vec<_>>().join(", then "),
        (None, failure) => format!("**rejected**: {}", failure.as_ref().unwrap()),
    };
    let version = row.version.as_deref().unwrap_or("all");
    let note = row.note.as_deref().unwrap_or("");
    format!("| {} | {version} | {action} | {result} | {note} |", row.id)
}

const HEADER: [&str; 2] = ["| id | version | action | result | note |", "|---|---|---|---|---|"];

/// `UPDATE_DIALECTS=1` rewrites the tables.
#[test]
fn tables_in_the_documentation_have_the_rows() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let prefixes = ["OA-", "AN-", "AB-", "GE-", "GL-", "QW-", "QX-", "UT-", "UX-"];
    let is_row = |line: &str| prefixes.iter().any(|prefix| line.starts_with(&format!("| {prefix}")));
    let expected: Vec<String> = rows().iter().map(documented).collect();
    if std::env::var_os("UPDATE_DIALECTS").is_some() {
        let mut updated = String::new();
        for line in text.lines().filter(|line| !is_row(line) && !HEADER.contains(line)) {
            updated.extend([line, "\n"]);
            // A table is preceded by a comment with the prefixes of its rows.
            let Some(list) = line.strip_prefix("<!-- rows: ").and_then(|rest| rest.strip_suffix(" -->"))
            else {
                continue;
            };
            updated.extend(HEADER.into_iter().flat_map(|line| [line, "\n"]));
            let wanted =
                |row: &&String| list.split(' ').any(|prefix| row.starts_with(&format!("| {prefix}")));
            expected.iter().filter(wanted).for_each(|row| updated.extend([row.as_str(), "\n"]));
        }
        std::fs::write(&path, updated).unwrap();
        return;
    }
    let found: Vec<&str> = text.lines().filter(|line| is_row(line)).collect();
    assert_eq!(found, expected, "run this test with UPDATE_DIALECTS=1");
}

#[test]
fn coordinates_are_scaled_from_the_display() {
    let display = Size { width: 640, height: 384 };
    let cases = [
        ("openai", None, json!({"type": "click", "button": "left", "x": 100, "y": 50}), (200.0, 100.0)),
        ("openai", None, json!({"type": "click", "button": "left", "x": 640, "y": 384}), (1279.0, 767.0)),
        ("anthropic", None, json!({"action": "left_click", "coordinate": [100, 50]}), (200.0, 100.0)),
        // Grids do not depend on the display.
        ("gemini", None, json!({"name": "click", "args": {"x": 999, "y": 999}}), (1278.0, 767.0)),
        ("qwen", None, json!({"action": "left_click", "coordinate": [1000, 1000]}), (1279.0, 767.0)),
        // 640 by 384 is resized to 644 by 392.
        ("qwen", Some("qwen2.5"), json!({"action": "left_click", "coordinate": [322, 196]}), (640.0, 384.0)),
        ("ui_tars", Some("1.5"), json!("Action: click(start_box='(322,196)')"), (640.0, 384.0)),
        ("ui_tars", Some("1.0"), json!("Action: click(start_box='(500,500)')"), (640.0, 384.0)),
    ];
    for (dialect, version, action, (x, y)) in cases {
        let mut options = options(dialect, version);
        options.screen.display = display;
        let turn = parse(&action, &options).unwrap();
        let click =
            MouseClick { point: Point { x, y }, button: MouseButton::Left, clicks: 1, keys: Vec::new() };
        assert_eq!(turn.calls[0].steps, [Step::Command(Command::MouseClick(click))], "{action}");
        assert_eq!(turn.cursor, Point { x, y });
    }
    let mut options = options("openai", None);
    options.screen.display = display;
    let scroll = json!({"type": "scroll", "x": 0, "y": 0, "scroll_x": 0, "scroll_y": 100});
    let turn = parse(&scroll, &options).unwrap();
    let expected = json!({"mouse_wheel": {"x": 0.0, "y": 0.0, "dx": 0.0, "dy": 200.0, "keys": []}});
    assert_eq!(step_to_json(&turn.calls[0].steps[0]), expected);
}

#[test]
fn mouse_is_followed_through_a_turn() {
    let blocks = json!([
        {"type": "text", "text": "I drag the slider."},
        {"type": "tool_use", "id": "a", "name": "computer", "input": {"action": "mouse_move", "coordinate": [10, 20]}},
        {"type": "tool_use", "id": "b", "name": "computer", "input": {"action": "left_mouse_down"}},
        {"type": "tool_use", "id": "c", "name": "computer", "input": {"action": "mouse_move", "coordinate": [30, 40]}},
        {"type": "tool_use", "id": "d", "name": "computer", "input": {"action": "left_mouse_up"}},
        {"type": "tool_use", "id": "e", "name": "computer", "input": {"action": "cursor_position"}},
    ]);
    let turn = parse_with("anthropic", None, &json!({"role": "assistant", "content": blocks})).unwrap();
    let steps: Vec<Value> = turn.calls.iter().flat_map(|call| &call.steps).map(step_to_json).collect();
    let at = |x: f64, y: f64| json!({"x": x, "y": y});
    assert_eq!(steps[0], json!({"mouse_move": at(10.0, 20.0)}));
    assert_eq!(steps[1], json!({"mouse_down": {"x": 10.0, "y": 20.0, "button": "left"}}));
    assert_eq!(steps[3], json!({"mouse_up": {"x": 30.0, "y": 40.0, "button": "left"}}));
    assert_eq!(steps[4], json!({"cursor_position": [30, 40]}));
    let ids: Vec<_> = turn.calls.iter().filter_map(|call| call.id.as_deref()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

#[test]
fn message_without_calls_is_the_answer() {
    let cases = [
        (
            "openai",
            json!([{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "42"}]}]),
        ),
        ("anthropic", json!({"role": "assistant", "content": [{"type": "text", "text": "42"}]})),
        ("gemini", json!({"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "42"}]})),
        ("openai", json!({"role": "assistant", "content": "42"})),
    ];
    for (dialect, message) in cases {
        let turn = parse_with(dialect, None, &message).unwrap();
        assert_eq!(turn.finish(), Some(("42", true)), "{message}");
        let image = Image { media_type: "image/png", data: String::new() };
        assert_eq!(turn.output(&[CallResult::default()], &PageState::default(), &image), Value::Null);
    }
}

#[test]
fn calls_are_read_in_every_form() {
    let click = json!({"type": "click", "button": "left", "x": 1, "y": 2});
    let chat = |name: &str, arguments: &Value| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}},
        ]})
    };
    let left_click = json!({"action": "left_click", "coordinate": [1, 2]});
    let qwen = format!(
        "Action: click.\n<tool_call>\n{}\n</tool_call>",
        json!({"name": "computer_use", "arguments": left_click})
    );
    let cases = [
        ("openai", json!({"type": "computer_call", "call_id": "call_1", "action": click})),
        ("openai", json!({"type": "computer_call", "call_id": "call_1", "actions": [click], "action": null})),
        ("openai", json!([click])),
        ("openai", json!({"actions": [click]})),
        ("openai", chat("computer", &json!({"actions": [click]}))),
        ("openai", chat("computer", &click)),
        ("anthropic", left_click.clone()),
        ("anthropic", chat("computer", &left_click)),
        ("anthropic", chat("left_click", &json!({"coordinate": [1, 2]}))),
        (
            "anthropic",
            json!([{"type": "tool_use", "id": "t", "name": "left_click", "toolset_name": "computer", "input": {"coordinate": [1, 2]}}]),
        ),
        ("gemini", json!({"functionCall": {"id": "f", "name": "click", "args": {"x": 1, "y": 3}}})),
        (
            "gemini",
            json!({"type": "function_call", "id": "f", "name": "click", "arguments": {"x": 1, "y": 3}}),
        ),
        ("gemini", chat("click", &json!({"x": 1, "y": 3}))),
        (
            "gemini",
            json!(
                "I click.<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 1, \"y\": 3}}</tool_call>"
            ),
        ),
        (
            "qwen",
            json!({"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1, 3]}}),
        ),
        ("qwen", chat("computer_use", &json!({"action": "left_click", "coordinate": [1, 3]}))),
        ("qwen", json!(qwen)),
        ("qwen", json!({"role": "assistant", "content": qwen})),
        ("ui_tars", json!("click(start_box='(2,2)')")),
        ("ui_tars", json!({"role": "assistant", "content": "Action：click(start_box='(2,2)')"})),
    ];
    for (dialect, action) in cases {
        let turn = parse_with(dialect, None, &action).unwrap_or_else(|error| panic!("{action}: {error}"));
        let [Step::Command(Command::MouseClick(click))] = turn.calls[0].steps.as_slice() else {
            panic!("{action}: {:?}", turn.calls)
        };
        assert_eq!((click.point.x, click.point.y), (1.0, 2.0), "{action}");
    }
}

#[test]
fn invalid_actions_name_the_argument() {
    let cases = [
        ("openai", json!({"type": "click", "button": "left", "x": -1, "y": 2}), "(-1, 2) are out of bounds"),
        ("openai", json!({"type": "click", "button": "left", "x": "NaN", "y": 2}), "x must be a number"),
        ("openai", json!({"type": "click", "button": "left", "x": 1e300, "y": 2}), "out of bounds"),
        (
            "openai",
            json!({"type": "click", "button": "left", "x": 1281, "y": 2}),
            "from (0, 0) to (1280, 768)",
        ),
        ("openai", json!({"type": "click", "button": "left", "y": 2}), "needs the argument \"x\""),
        ("openai", json!({"type": "click", "button": "side", "x": 1, "y": 2}), "button must be left"),
        ("openai", json!({"type": "click", "x": 1, "y": 2, "keys": ["q"]}), "\"q\" is not a modifier"),
        ("openai", json!({"type": "click", "x": 1, "y": 2, "speed": 2}), "no argument \"speed\""),
        ("openai", json!({"type": "drag", "path": [{"x": 1, "y": 1}]}), "path must be a list of 2 to 500"),
        ("openai", json!({"type": "keypress", "keys": ["hyper"]}), "keys: \"hyper\" is not a key"),
        (
            "openai",
            json!({"type": "type", "text": "x".repeat(100_001)}),
            "text must be a string of at most 100000",
        ),
        (
            "openai",
            json!({"type": "scroll", "x": 1, "y": 1, "scroll_y": 1e6}),
            "scroll_y must be a number from",
        ),
        ("openai", json!({"actions": [{"type": "fly"}]}), "unknown action \"fly\"; accepted: click"),
        ("openai", json!({"actions": ["click"]}), "an action must be a JSON object"),
        ("anthropic", json!({"action": "left_click", "coordinate": [1]}), "coordinate must be a list of two"),
        (
            "anthropic",
            json!({"action": "left_click", "coordinate": ["inf", 1]}),
            "coordinate must be a list of two",
        ),
        ("anthropic", json!({"action": "wait"}), "needs the argument \"duration\""),
        (
            "anthropic",
            json!({"action": "wait", "duration": 301}),
            "duration must be a number of seconds from 0 to 300",
        ),
        ("anthropic", json!({"action": "key", "text": "a", "repeat": 101}), "repeat must be"),
        (
            "anthropic",
            json!({"action": "scroll", "scroll_direction": "down", "scroll_amount": -1}),
            "scroll_amount must be",
        ),
        (
            "anthropic",
            json!({"action": "scroll", "scroll_direction": "in", "scroll_amount": 1}),
            "scroll_direction must be",
        ),
        ("anthropic", json!({"action": "zoom", "region": [5, 5, 4, 9]}), "region [5, 5, 4, 9] must be"),
        ("anthropic", json!({"action": "bash"}), "unknown action \"bash\""),
        ("gemini", json!({"name": "click", "args": {"x": 1001, "y": 0}}), "from (0, 0) to (1000, 1000)"),
        (
            "gemini",
            json!({"name": "scroll", "args": {"x": 1, "y": 1, "direction": "down", "magnitude_in_pixels": -1}}),
            "magnitude_in_pixels must be",
        ),
        (
            "gemini",
            json!({"name": "navigate", "args": {"url": "x".repeat(10_001)}}),
            "url must be an address of at most",
        ),
        ("qwen", json!({"action": "terminate", "status": "maybe"}), "status must be success or failure"),
        ("qwen", json!({"name": "bash", "arguments": {}}), "unknown function \"bash\""),
        ("qwen", json!("I am done."), "no <tool_call>"),
        ("qwen", json!("<think>I click <tool_call>{}"), "ended while thinking"),
        ("qwen", json!("<tool_call>{\"name\": </tool_call>"), "not valid JSON"),
        ("ui_tars", json!("Action: click(start_box='(1,2,3)')"), "start_box must be a point"),
        ("ui_tars", json!("Action: click(start_box='(nan,2)')"), "start_box must be a point"),
        ("ui_tars", json!("Action: click(start_box='(1,2)"), "must be a call such as"),
        ("ui_tars", json!("Thought: nothing"), "must be a call such as"),
        ("ui_tars", json!("Action: fly()"), "unknown action \"fly\""),
    ];
    for (dialect, action, message) in cases {
        let failure = failure(dialect, None, &action);
        assert!(failure.contains(message), "{}: {failure}", cut(&action.to_string()));
        assert!(failure.len() < 1000, "{} bytes", failure.len());
    }
    let old = failure("anthropic", Some("computer_20241022"), &json!({"action": "wait", "duration": 1}));
    assert!(old.contains("needs the tool computer_20250124"), "{old}");
    let old = failure("qwen", Some("qwen2.5"), &json!({"action": "answer", "text": "x"}));
    assert!(old.contains("needs qwen3"), "{old}");
    let old = failure("gemini", Some("legacy"), &json!({"name": "click", "args": {"x": 1, "y": 1}}));
    assert!(old.contains("unknown action \"click\""), "{old}");
}

#[test]
fn malformed_request_is_refused() {
    let wait = json!({"action": "wait", "duration": 30});
    let cases = [
        ("openai", json!("click"), "action must be a JSON object or a list"),
        ("openai", json!([]), "action must be a JSON object or a list"),
        ("openai", json!(null), "action must be a JSON object or a list"),
        ("openai", json!([{"type": "function_call"}]), "the type \"function_call\" is none of"),
        ("openai", json!([{"type": "reasoning"}]), "neither a call nor an answer"),
        ("openai", json!([{"type": "computer_call", "call_id": 5}]), "call_id must be a string"),
        ("anthropic", json!({"type": "tool_use", "name": "computer"}), "input must be a JSON object"),
        (
            "anthropic",
            json!(vec![json!({"action": "screenshot"}); 51]),
            "51 calls; a turn may have at most 50",
        ),
        (
            "anthropic",
            json!(vec![json!({"action": "key", "text": "a", "repeat": 100}); 3]),
            "needs 300 commands",
        ),
        ("anthropic", json!([wait, wait, wait]), "waits 90 s in total"),
        ("gemini", json!({"args": {}}), "name must be a string"),
        ("gemini", json!({"name": "click", "args": 5}), "args must be a JSON object"),
        ("ui_tars", json!({"action": "click"}), "must be the text of a UI-TARS model"),
        ("ui_tars", json!("x".repeat(MAX_TEXT_BYTES + 1)), "longer than 500000 bytes"),
    ];
    for (dialect, action, message) in cases {
        let error = parse_with(dialect, None, &action).unwrap_err().to_string();
        assert!(error.contains(message), "{}: {error}", cut(&action.to_string()));
    }
    let error = Dialect::OpenAi.version("1.5").unwrap_err();
    assert_eq!(error, "\"1.5\" is not a version of openai; accepted: computer_use_preview, computer");
    let error = "gpt".parse::<Dialect>().unwrap_err();
    assert_eq!(error, "\"gpt\" is not a dialect; accepted: openai, anthropic, gemini, qwen, ui_tars");
}

#[test]
fn text_of_ui_tars_is_read_like_its_own_parser_does() {
    let steps = |text: &str| -> Vec<Value> {
        let turn = parse_with("ui_tars", None, &json!(text)).unwrap();
        turn.calls.iter().flat_map(|call| &call.steps).map(step_to_json).collect()
    };
    let typed = |text: &str| json!({"type_text": {"text": text}});
    assert_eq!(
        steps(
            r#"Thought: x
Action: type(content='it\'s a \"b\"\nline2')"#
        ),
        [typed("it's a \"b\"\nline2")]
    );
    assert_eq!(
        steps("Thought: Action: click(start_box='(9,9)')\nAction: wait()"),
        [json!({"sleep": {"duration": 5.0}})]
    );
    let several =
        steps("Action: press(key='ctrl')\n\nclick(point='<point>1 2</point>')\n\nrelease(key='ctrl')");
    assert_eq!(several.len(), 3);
    assert_eq!(several[2], json!({"key_up": {"key": "ctrl"}}));
    assert_eq!(steps(r"Action: type(content='C:\dir')"), [typed(r"C:\dir")]);
    assert_eq!(steps("Action: hotkey(key='page down')"), [json!({"keypress": {"keys": ["PageDown"]}})]);
}

fn image(data: &str) -> Image {
    Image { media_type: "image/png", data: data.to_owned() }
}

fn output(dialect: &str, action: &Value, results: &[CallResult]) -> Value {
    let mut options = options(dialect, None);
    options.acknowledge_safety_checks = true;
    let turn = parse(action, &options).unwrap();
    let page = PageState { title: "Example".into(), url: "https://example.com/".into(), tabs: Vec::new() };
    turn.output(results, &page, &image("AAAA"))
}

const URL: &str = "data:image/png;base64,AAAA";

fn failed(error: &str) -> CallResult {
    CallResult { error: Some(error.to_owned()), ..CallResult::default() }
}

#[test]
fn openai_gets_one_output_for_each_call() {
    let checks = json!([{"id": "cu_sc_1", "code": "malicious_instructions", "message": "…"}]);
    let preview = json!({"type": "computer_call", "id": "cu_1", "call_id": "call_1", "status": "completed",
        "pending_safety_checks": checks, "action": {"type": "screenshot"}});
    assert_eq!(
        output("openai", &preview, &[CallResult::default()]),
        json!([{"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": URL,
            "current_url": "https://example.com/"}, "call_id": "call_1", "acknowledged_safety_checks": checks}])
    );
    let batch = json!({"type": "computer_call", "call_id": "call_1", "pending_safety_checks": [],
        "actions": [{"type": "screenshot"}, {"type": "wait"}]});
    let items = output("openai", &batch, &[failed("the page is gone")]);
    let shown = json!({"type": "computer_screenshot", "image_url": URL});
    assert_eq!(items[0], json!({"type": "computer_call_output", "output": shown, "call_id": "call_1"}));
    assert_eq!(items[1]["content"][0]["text"], "The computer action failed: the page is gone");
}

#[test]
fn call_without_actions_wants_a_screenshot() {
    let call = json!({"type": "computer_call", "call_id": "call_1", "pending_safety_checks": []});
    let turn = parse_with("openai", None, &call).unwrap();
    assert_eq!((turn.calls[0].steps.len(), &turn.calls[0].failure), (0, &None));
    assert_eq!(output("openai", &call, &[CallResult::default()])[0]["call_id"], "call_1");
}

#[test]
fn pending_safety_checks_need_an_acknowledgement() {
    let check = json!([{"id": "1"}]);
    let openai = json!({"type": "computer_call", "pending_safety_checks": check, "action": {"type": "wait"}});
    let decision = json!({"decision": "require_confirmation", "explanation": "…"});
    let gemini = json!({"name": "click", "args": {"x": 1, "y": 1, "safety_decision": decision}});
    for (dialect, action) in [("openai", &openai), ("gemini", &gemini)] {
        assert!(failure(dialect, None, action).contains("a person has to confirm it"));
        let turn = parse_with(dialect, None, action).unwrap();
        assert_eq!(turn.calls[0].steps, []);
    }
    let response = output("gemini", &gemini, &[CallResult::default()]);
    assert_eq!(response["parts"][0]["functionResponse"]["response"]["safety_acknowledgement"], "true");
}

#[test]
fn anthropic_gets_one_tool_result_for_each_block() {
    let tool_use = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "toolset_name": "computer", "input": {}});
    let blocks = json!([
        tool_use("a", "cursor_position"),
        tool_use("b", "screenshot"),
        tool_use("c", "left_mouse_up")
    ]);
    let position = CallResult { text: Some("X=1,Y=2".into()), ..CallResult::default() };
    let screenshot = CallResult { image: Some(image("BBBB")), ..CallResult::default() };
    let message = output("anthropic", &blocks, &[position, screenshot, CallResult::default()]);
    let shown = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    assert_eq!(message["role"], "user");
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "toolset_name": "computer", "content": content});
    assert_eq!(message["content"][0], result("a", json!([{"type": "text", "text": "X=1,Y=2"}])));
    assert_eq!(message["content"][1], result("b", json!([{"type": "text", "text": "OK"}, shown("BBBB")])));
    assert_eq!(message["content"][2], result("c", json!([{"type": "text", "text": "OK"}, shown("AAAA")])));
    let message = output("anthropic", &json!({"action": "screenshot"}), &[failed("no")]);
    let expected =
        json!([{"type": "tool_result", "is_error": true, "content": [{"type": "text", "text": "no"}]}]);
    assert_eq!(message["content"], expected);
    let tab =
        json!([{"type": "tool_use", "id": "a", "name": "list_tabs", "toolset_name": "browser", "input": {}}]);
    let message = output("anthropic", &tab, &[CallResult::default()]);
    let tabs = json!([{"tab_id": "1", "title": "Example", "url": "https://example.com/", "active": true}]);
    assert_eq!(message["content"][0]["content"][2], json!({"type": "browser_state", "tabs": tabs}));
}

#[test]
fn gemini_gets_one_function_response_for_each_call() {
    let calls = json!({"role": "model", "parts": [
        {"functionCall": {"id": "f1", "name": "go_back", "args": {}}}, {"functionCall": {"name": "search"}},
    ]});
    let content = output("gemini", &calls, &[CallResult::default(), failed("no")]);
    let parts = json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]);
    let response = json!({"url": "https://example.com/"});
    let first = json!({"name": "go_back", "response": response, "parts": parts, "id": "f1"});
    assert_eq!(content["parts"][0], json!({ "functionResponse": first }));
    assert_eq!(content["parts"][1]["functionResponse"]["response"]["error"], "no");
    let call = json!({"type": "function_call", "id": "fc_1", "name": "go_back", "arguments": {}});
    assert_eq!(
        output("gemini", &call, &[CallResult::default()]),
        json!([{"type": "function_result", "name": "go_back", "result": [
            {"type": "text", "text": "{\"url\":\"https://example.com/\"}"},
            {"type": "image", "data": "AAAA", "mime_type": "image/png"},
        ], "call_id": "fc_1"}])
    );
}

#[test]
fn qwen_ui_tars_and_chat_get_messages() {
    let wait = json!({"name": "computer_use", "arguments": {"action": "wait", "time": 1}});
    let message = output("qwen", &json!([wait, wait]), &[CallResult::default(), failed("no")]);
    let image_part = json!({"type": "image_url", "image_url": {"url": URL}});
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        message,
        json!({"role": "user", "content": [
            text("<tool_response>\nOK"), text("\n</tool_response>"),
            text("\n<tool_response>\nError: no\n"), image_part, text("\n</tool_response>"),
        ]})
    );
    let message = output("ui_tars", &json!("Action: wait()"), &[failed("no")]);
    assert_eq!(message, json!({"role": "user", "content": [image_part]}));
    let call = json!({"id": "c1", "type": "function", "function": {"name": "go_back", "arguments": "{}"}});
    let messages = output("gemini", &call, &[CallResult::default()]);
    let content = json!([text("{\"url\":\"https://example.com/\"}"), image_part]);
    assert_eq!(messages, json!([{"role": "tool", "content": content, "tool_call_id": "c1"}]));
}

/// Clients may send the whole response of the provider.
#[test]
fn whole_responses_are_accepted() {
    let item = json!({"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 5, "y": 6}});
    let openai = json!({"id": "resp_1", "output": [{"type": "reasoning"}, item]});
    let part = json!({"functionCall": {"name": "click", "args": {"x": 4, "y": 8}}});
    let gemini = json!({"candidates": [{"content": {"parts": [part], "role": "model"}}]});
    for (dialect, response) in [("openai", &openai), ("gemini", &gemini)] {
        let turn = parse_with(dialect, None, response).unwrap();
        assert_eq!(turn.calls[0].commands().count(), 1, "{dialect}");
    }
}
