//! `/computer`: turns in every dialect, their effect on the page, and what is sent back.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testkit::{Farm, Lease};

use crate::{Context, checks, commands::centre_of};

checks![
    computer_clicks_in_every_dialect,
    computer_scales_screenshots_and_coordinates,
    computer_carries_out_turns_in_order,
    computer_stops_at_the_first_error,
    computer_follows_the_mouse,
    computer_reports_rejected_and_failed_actions,
    computer_manages_tabs,
    computer_finishes_tasks,
    computer_refuses_malformed_requests,
];

async fn open(context: &Context, path: &str) -> Lease {
    let lease = context.farm.get().await;
    context.farm.visit(&lease, &context.page(path)).await;
    lease
}

/// Returns the centre of an element.
async fn centre(farm: &Farm, lease: &Lease, name: &str) -> (f64, f64) {
    farm.execute(lease, json!({"screenshot": {}})).await.ok();
    let info = farm.execute(lease, json!({"get_screenshot_info": {}})).await.ok();
    centre_of(&info, name)
}

/// Carries out a turn that succeeds.
async fn act(farm: &Farm, lease: &Lease, dialect: &str, action: Value) -> Value {
    let answer = farm.computer(lease, json!({"dialect": dialect, "action": action})).await.ok();
    assert_eq!(answer["error"], Value::Null, "{action}");
    answer
}

async fn assert_text(farm: &Farm, lease: &Lease, expected: &str) {
    let text = farm.text(lease).await;
    assert!(text.contains(expected), "{expected:?} is not in {text:?}");
}

/// Returns the size of a PNG in base64.
fn png_size(data: &Value) -> (u32, u32) {
    let bytes = STANDARD.decode(data.as_str().expect("base64")).expect("base64");
    assert!(bytes.starts_with(b"\x89PNG"), "a PNG");
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (number(16), number(20))
}

async fn computer_clicks_in_every_dialect(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let (x, y) = centre(farm, &lease, "Count up").await;
    let (x, y) = (x.round(), y.round());
    let grid = |pixel: f64, size: f64| ((pixel + 0.5) / size * 1000.0).round();
    let (gx, gy) = (grid(x, 1280.0), grid(y, 768.0));
    // UI-TARS 1.5 sees an image of 1288 by 756.
    let (rx, ry) = ((x * 1288.0 / 1280.0).round(), (y * 756.0 / 768.0).round());
    let data_url =
        |answer: &Value| format!("data:image/png;base64,{}", answer["screenshot"]["data"].as_str().unwrap());

    let call = json!({"type": "computer_call", "call_id": "call_1", "pending_safety_checks": [],
        "action": {"type": "click", "button": "left", "x": x, "y": y}});
    let answer = act(farm, &lease, "openai", call).await;
    assert_text(farm, &lease, "count 1").await;
    let item = &answer["output"][0];
    assert_eq!((&item["type"], &item["call_id"]), (&json!("computer_call_output"), &json!("call_1")));
    assert_eq!(item["output"]["image_url"], data_url(&answer));
    assert_eq!(item["output"]["current_url"], context.page("/course/buttons"));
    assert_eq!(answer["commands"][0]["mouse_click"]["x"], x);
    assert_eq!(answer["metadata"]["url"], context.page("/course/buttons"));
    assert_eq!((&answer["finished"], &answer["scale"]), (&Value::Null, &json!({"x": 1.0, "y": 1.0})));

    let block = json!({"type": "tool_use", "id": "toolu_1", "name": "computer", "input": {"action": "left_click", "coordinate": [x, y]}});
    let answer = act(farm, &lease, "anthropic", block).await;
    assert_text(farm, &lease, "count 2").await;
    let result = &answer["output"]["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("toolu_1")));
    assert_eq!(result["content"][1]["source"]["data"], answer["screenshot"]["data"]);

    let part = json!({"functionCall": {"name": "click", "args": {"x": gx, "y": gy, "intent": "count"}}});
    let answer = act(farm, &lease, "gemini", part).await;
    assert_text(farm, &lease, "count 3").await;
    let response = &answer["output"]["parts"][0]["functionResponse"];
    assert_eq!(response["response"]["url"], context.page("/course/buttons"));
    assert_eq!(response["parts"][0]["inlineData"]["data"], answer["screenshot"]["data"]);

    let text = format!(
        "<tool_call>\n{}\n</tool_call>",
        json!({"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [gx, gy]}})
    );
    let answer = act(farm, &lease, "qwen", json!(text)).await;
    assert_text(farm, &lease, "count 4").await;
    assert_eq!(answer["output"]["content"][1]["image_url"]["url"], data_url(&answer));

    let text = format!("Thought: I click.\nAction: click(start_box='({rx},{ry})')");
    let answer = act(farm, &lease, "ui_tars", json!(text)).await;
    assert_text(farm, &lease, "count 5").await;
    assert_eq!(answer["output"]["content"][0]["image_url"]["url"], data_url(&answer));

    let call = json!([{"id": "c1", "type": "function", "function": {"name": "computer", "arguments": json!({"type": "click", "x": x, "y": y}).to_string()}}]);
    let answer = act(farm, &lease, "openai", call).await;
    assert_text(farm, &lease, "count 6").await;
    assert_eq!(answer["output"][0]["tool_call_id"], "c1");
    farm.reset(&lease).await.ok();
}

async fn computer_scales_screenshots_and_coordinates(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let (x, y) = centre(farm, &lease, "Count up").await;
    let click = json!({"action": "left_click", "coordinate": [(x / 2.0).round(), (y / 2.0).round()]});
    let body = json!({"dialect": "anthropic", "action": click, "display": {"width": 640, "height": 384}});
    let answer = farm.computer(&lease, body).await.ok();
    assert_text(farm, &lease, "count 1").await;
    let screenshot = &answer["screenshot"];
    assert_eq!((&screenshot["width"], &screenshot["height"]), (&json!(640), &json!(384)));
    assert_eq!((png_size(&screenshot["data"]), &screenshot["format"]), ((640, 384), &json!("png")));
    assert_eq!(answer["scale"], json!({"x": 0.5, "y": 0.5}));
    // A zoom has its own image; the screenshot stays that of the whole page.
    let zoom = json!([{"type": "tool_use", "id": "z", "name": "zoom", "toolset_name": "computer", "input": {"region": [0, 0, 100, 50]}}]);
    let body = json!({"dialect": "anthropic", "action": zoom, "display": {"width": 640, "height": 384}});
    let answer = farm.computer(&lease, body).await.ok();
    let zoomed = &answer["output"]["content"][0]["content"][1]["source"]["data"];
    assert_eq!((png_size(zoomed), png_size(&answer["screenshot"]["data"])), ((640, 320), (640, 384)));
    let body = json!({"dialect": "anthropic", "action": click, "display": {"width": 1024, "height": 768}});
    farm.computer(&lease, body).await.assert_error(400, "bad_request", "display is 1024 by 768 pixels");
    farm.reset(&lease).await.ok();
}

async fn computer_carries_out_turns_in_order(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/inputs").await;
    let (x, y) = centre(farm, &lease, "Search").await;
    let actions = json!([
        {"type": "screenshot"}, {"type": "click", "button": "left", "x": x, "y": y}, {"type": "type", "text": "hello"},
        {"type": "keypress", "keys": ["CTRL", "A"]}, {"type": "type", "text": "duck"},
        {"type": "keypress", "keys": ["ENTER"]},
    ]);
    let call = json!({"type": "computer_call", "call_id": "1", "actions": actions});
    let answer = act(farm, &lease, "openai", call).await;
    let commands = answer["commands"].as_array().expect("commands");
    let names: Vec<&String> =
        commands.iter().flat_map(|command| command.as_object().expect("a command").keys()).collect();
    assert_eq!(names, ["mouse_click", "type_text", "keypress", "type_text", "keypress"]);
    assert_text(farm, &lease, "search=duck").await;
    let shown = answer["output"][0]["output"]["image_url"].as_str().expect("a URL");
    let data = answer["screenshot"]["data"].as_str().expect("base64");
    assert!(shown.ends_with(data), "the screenshot after the batch is sent, not the one inside of it");
    let url = &answer["metadata"]["url"];
    let visit = json!({"name": "navigate", "args": {"url": context.page("/course/buttons")}});
    let answer = act(farm, &lease, "gemini", json!([visit, {"name": "go_back"}])).await;
    assert_eq!(&answer["metadata"]["url"], url);
    assert_eq!(answer["output"]["parts"].as_array().map(Vec::len), Some(2));
    farm.reset(&lease).await.ok();
}

async fn computer_stops_at_the_first_error(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let (x, y) = centre(farm, &lease, "Count up").await;
    let tool_use =
        |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "computer", "input": input});
    let click = json!({"action": "left_click", "coordinate": [x, y]});
    let outside = json!({"action": "left_click", "coordinate": [5000, 1]});
    let blocks = json!([tool_use("a", click.clone()), tool_use("b", outside), tool_use("c", click)]);
    let answer = farm.computer(&lease, json!({"dialect": "anthropic", "action": blocks})).await.ok();
    assert_eq!(answer["error"]["code"], "bad_request", "{}", answer["error"]);
    assert_eq!(answer["commands"].as_array().map(Vec::len), Some(1));
    assert_text(farm, &lease, "count 1").await;
    let results = answer["output"]["content"].as_array().expect("results");
    let texts: Vec<&str> =
        results.iter().map(|result| result["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts[0], "OK");
    assert!(texts[1].contains("(5000, 1) are out of bounds"), "{}", texts[1]);
    assert_eq!(texts[2], "Not executed: an earlier computer action in this turn failed.");
    let errors: Vec<&Value> = results.iter().map(|result| &result["is_error"]).collect();
    assert_eq!(errors, [&Value::Null, &json!(true), &json!(true)]);
    farm.reset(&lease).await.ok();
}

async fn computer_follows_the_mouse(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let (x, y) = centre(farm, &lease, "Count up").await;
    act(farm, &lease, "anthropic", json!({"action": "mouse_move", "coordinate": [x.round(), y.round()]}))
        .await;
    act(farm, &lease, "anthropic", json!({"action": "left_click"})).await;
    assert_text(farm, &lease, "count 1").await;
    let answer = act(
        farm,
        &lease,
        "anthropic",
        json!([{"type": "tool_use", "id": "p", "name": "computer", "input": {"action": "cursor_position"}}]),
    )
    .await;
    let position = &answer["output"]["content"][0]["content"][0]["text"];
    assert_eq!(position, &json!(format!("X={},Y={}", x.round(), y.round())));
    act(farm, &lease, "anthropic", json!({"action": "left_mouse_down"})).await;
    act(farm, &lease, "anthropic", json!({"action": "left_mouse_up"})).await;
    assert_text(farm, &lease, "count 2").await;
    farm.reset(&lease).await.ok();
}

async fn computer_reports_rejected_and_failed_actions(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let cases = [
        (
            "gemini",
            json!({"name": "open_app", "args": {"app_name": "Maps"}}),
            "unsupported_action",
            "not a mobile device",
        ),
        ("gemini", json!({"name": "navigate", "args": {"url": "file:///etc/passwd"}}), "url_refused", "file"),
        (
            "gemini",
            json!({"name": "navigate", "args": {"url": "http://127.0.0.1:1/"}}),
            "navigation_failed",
            "ERR_",
        ),
        ("openai", json!({"actions": [{"type": "fly"}]}), "bad_request", "unknown action \"fly\""),
        ("qwen", json!("I do not know."), "bad_request", "no <tool_call>"),
        ("ui_tars", json!("Action: press_home()"), "unsupported_action", "not a mobile device"),
    ];
    for (dialect, action, code, message) in cases {
        let answer = farm.computer(&lease, json!({"dialect": dialect, "action": action})).await.ok();
        assert_eq!(answer["error"]["code"], code, "{action}: {}", answer["error"]);
        assert!(
            answer["error"]["detail"].as_str().is_some_and(|detail| detail.contains(message)),
            "{}",
            answer["error"]
        );
        assert_eq!(answer["commands"], json!([]), "{action}");
        assert_eq!(answer["metadata"]["url"], context.page("/course/buttons"), "{action}");
        assert_eq!(png_size(&answer["screenshot"]["data"]), (1280, 768));
    }
    farm.reset(&lease).await.ok();
}

async fn computer_manages_tabs(context: Context) {
    let farm = &context.farm;
    let call = |name: &str, input: Value| json!({"type": "tool_use", "id": "a", "name": name, "toolset_name": "browser", "input": input});
    let tabs = |answer: &Value| {
        let content = answer["output"]["content"][0]["content"].as_array().expect("content").clone();
        let state = content.into_iter().find(|block| block["type"] == "browser_state").expect("a state");
        let tabs = state["tabs"].as_array().expect("tabs").clone();
        tabs.iter().map(|tab| (tab["tab_id"].clone(), tab["active"] == true)).collect::<Vec<_>>()
    };
    let lease = farm.get_with(&json!({"tabs": "many"})).await;
    let answer = act(farm, &lease, "anthropic", call("new_tab", json!({}))).await;
    assert_eq!(tabs(&answer), [(json!("1"), false), (json!("2"), true)]);
    let url = context.page("/course/buttons");
    let answer = act(farm, &lease, "anthropic", call("navigate", json!({"url": url, "tab_id": "1"}))).await;
    assert_eq!(tabs(&answer), [(json!("1"), true), (json!("2"), false)]);
    assert_eq!(answer["metadata"]["url"], url);
    farm.reset(&lease).await.ok();

    let lease = open(&context, "/course/buttons").await;
    let answer = act(farm, &lease, "anthropic", call("get_page_text", json!({"tab_id": "1"}))).await;
    assert_eq!(tabs(&answer), [(json!("1"), true)]);
    let text = answer["output"]["content"][0]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("Count up"), "{text}");
    let body = json!({"dialect": "anthropic", "action": call("new_tab", json!({}))});
    let answer = farm.computer(&lease, body).await.ok();
    assert!(
        answer["error"]["detail"].as_str().is_some_and(|detail| detail.contains("tabs")),
        "{}",
        answer["error"]
    );
    farm.reset(&lease).await.ok();
}

async fn computer_finishes_tasks(context: Context) {
    let farm = &context.farm;
    let lease = open(&context, "/course/buttons").await;
    let cases = [
        ("qwen", json!({"action": "answer", "text": "42"}), json!({"answer": "42", "success": true})),
        (
            "qwen",
            json!({"action": "terminate", "status": "failure"}),
            json!({"answer": "", "success": false}),
        ),
        ("ui_tars", json!("Action: finished(content='done')"), json!({"answer": "done", "success": true})),
        (
            "anthropic",
            json!({"role": "assistant", "content": [{"type": "text", "text": "42"}]}),
            json!({"answer": "42", "success": true}),
        ),
    ];
    for (dialect, action, finished) in cases {
        let answer = act(farm, &lease, dialect, action).await;
        assert_eq!(answer["finished"], finished);
    }
    farm.reset(&lease).await.ok();
}

async fn computer_refuses_malformed_requests(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let cases = [
        (json!({"action": {"type": "wait"}}), "dialect is missing"),
        (json!({"dialect": "gpt", "action": {"type": "wait"}}), "dialect: \"gpt\" is not a dialect"),
        (json!({"dialect": "openai"}), "action is missing"),
        (json!({"dialect": "openai", "action": 5}), "action must be a JSON object or a list"),
        (json!({"dialect": "openai", "action": deep}), "action must be a JSON object or a list"),
        (
            json!({"dialect": "openai", "action": {"type": "wait"}, "version": "1.5"}),
            "version: \"1.5\" is not a version",
        ),
        (
            json!({"dialect": "openai", "action": {"type": "wait"}, "display": {"width": 10, "height": 6}}),
            "each side must have 64 to 4096",
        ),
        (json!({"dialect": "openai", "action": {"type": "wait"}, "speed": 1}), "unknown key \"speed\""),
        (json!({"dialect": "ui_tars", "action": "x".repeat(500_001)}), "longer than 500000 bytes"),
        (json!({"dialect": "anthropic", "action": vec![json!({"action": "screenshot"}); 51]}), "at most 50"),
    ];
    for (body, message) in cases {
        farm.computer(&lease, body).await.assert_error(400, "bad_request", message);
    }
    farm.probe(&lease).await.ok();
    farm.reset(&lease).await.ok();
}
