//! Invalid requests are refused with the right status and a helpful message.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};
use testkit::{ENDPOINTS, Tier};

use crate::{Context, checks};

checks![
    wrong_api_key_is_refused,
    invalid_commands_are_explained,
    malformed_bodies_are_refused,
    large_bodies_are_refused,
    missing_elements_fail_quickly,
    failed_navigation_keeps_previous_page,
    local_schemes_are_refused,
    unknown_path_and_method_are_refused,
];

async fn wrong_api_key_is_refused(context: Context) {
    for (path, method) in ENDPOINTS {
        let none = context.farm.http.with_key(None).send(method.clone(), path, &[], "", &[]).await;
        none.assert_error(401, "missing_key", "API Key is missing");
        assert_eq!(none.detail(), "API Key is missing");
        for wrong in ["", "default_ke", "default_keys", "DEFAULT_KEY"] {
            let reply =
                context.farm.http.with_key(Some(wrong)).send(method.clone(), path, &[], "", &[]).await;
            assert_eq!((reply.status, reply.detail().as_str()), (401, "Invalid API Key."), "{path} {wrong}");
        }
    }
}

async fn invalid_commands_are_explained(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let cases: &[(Value, &str)] = &[
        (json!({}), "no command given; send exactly one of: visit_page"),
        (json!({"clik": {}}), "unknown command \"clik\"; accepted: visit_page"),
        (json!({"back": {}, "tab_and_enter": {}}), "2 commands given at once (back, tab_and_enter)"),
        (json!({"click_coords": {"x": 1}}), "needs the argument \"y\"; it accepts: x, y"),
        (json!({"click_coords": {"x": "left", "y": 1}}), "x must be a number, not \"left\""),
        (json!({"click_id": {"id": [1]}}), "id must be the number of an element"),
        (json!({"click_id": {"id": "1", "times": 2}}), "no argument \"times\"; it accepts: id"),
        (json!({"visit_page": "http://x"}), "must be a JSON object; it accepts: url"),
        (json!({"visit_page": {"url": null}}), "needs the argument \"url\""),
        (json!({"scroll_id": {"id": 1, "direction": "inwards"}}), "direction must be \"up\", \"down\""),
        (json!({"keypress": {"keys": 13}}), "or a list of key names"),
        (json!({"drag": {"path": [[1, 1]]}}), "path must be a list of 2 to 500 points"),
        (json!({"mouse_click": {"x": 1, "y": 1, "clicks": 0}}), "clicks must be 1, 2 or 3"),
        (json!({"mouse_click": {"x": 1, "y": 1, "keys": "q"}}), "\"q\" is not a modifier"),
        (json!({"keypress": {"keys": []}}), "at least one key"),
        (json!({"keypress": {"keys": ["no such key"]}}), "no such key"),
        (json!({"sleep": {"duration": "long"}}), "duration must be a number"),
        (json!({"screenshot": {"interaction_mode": "x"}}), "interaction_mode must be"),
    ];
    for (command, message) in cases {
        let reply = farm.execute(&lease, command.clone()).await;
        reply.assert_error(400, "bad_request", message);
        if context.is_tier(Tier::Master) {
            assert_eq!(reply.json()["status"], "error");
        }
    }
    farm.reset(&lease).await.ok();
}

async fn malformed_bodies_are_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let query = [("instance_id", lease.id.as_str())];
    for path in ["/execute", "/observe", "/step", "/computer"] {
        for body in ["", "{", "[]", "null", "\"back\"", "{\"back\":{}", "\u{0}", "{\"back\": {}} x"] {
            let reply = farm.http.send(Method::POST, path, &query, body, &[]).await;
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (400, "bad_request"),
                "{path} {body:?}: {}",
                reply.text()
            );
        }
        let deep = "[".repeat(100_000);
        let reply = farm.http.send(Method::POST, path, &query, deep, &[]).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
    }
    farm.reset(&lease).await.ok();
}

async fn large_bodies_are_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let value = "x".repeat(3 << 20);
    let reply = farm.execute(&lease, json!({"fill_coords": {"x": 1, "y": 1, "value": value}})).await;
    reply.assert_error(413, "too_large", "larger than");
    farm.probe(&lease).await.ok();
    farm.reset(&lease).await.ok();
}

async fn missing_elements_fail_quickly(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, &context.page("/course/buttons")).await;
    farm.screenshot(&lease, &[]).await;
    for command in [
        json!({"click_id": {"id": 4321}}),
        json!({"fill_id": {"id": "4321", "value": "x"}}),
        json!({"hover_id": {"id": 4321}}),
        json!({"select_option": {"id": 4321}}),
        json!({"scroll_id": {"id": 4321, "direction": "down"}}),
    ] {
        let started = Instant::now();
        farm.execute(&lease, command).await.assert_error(422, "element_not_found", "4321");
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }
    farm.reset(&lease).await.ok();
}

async fn failed_navigation_keeps_previous_page(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, &context.page("/course/buttons")).await;
    let reply = farm.execute(&lease, json!({"visit_page": {"url": "http://127.0.0.1:1/"}})).await;
    reply.assert_error(422, "navigation_failed", "ERR_");
    let reply = farm.execute(&lease, json!({"visit_page": {"url": context.page("/course/reset")}})).await;
    reply.assert_error(422, "navigation_failed", "ERR_");
    let page = farm.execute(&lease, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(page["url"], context.page("/course/buttons"));
    farm.reset(&lease).await.ok();
}

async fn local_schemes_are_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    for url in [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        " file:///etc/passwd",
        "chrome://version",
        "devtools://devtools/bundled/inspector.html",
        "view-source:http://127.0.0.1/",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
    ] {
        let reply = farm.execute(&lease, json!({"visit_page": {"url": url}})).await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "url_refused"), "{url}: {}", reply.text());
    }
    farm.visit(&lease, &context.page("/course/schemes")).await;
    farm.screenshot(&lease, &[]).await;
    let info = farm.execute(&lease, json!({"get_screenshot_info": {}})).await.ok();
    for name in ["file:", "mailto:", "javascript:"] {
        let id = crate::commands::mark_of(&info, name).unwrap_or_else(|| panic!("no {name} in {info}"));
        farm.execute(&lease, json!({"click_id": {"id": id}})).await.ok();
        let page = farm.execute(&lease, json!({"get_page_metadata": {}})).await.ok();
        assert_eq!(page["url"], context.page("/course/schemes"), "after a click on {name}");
    }
    farm.reset(&lease).await.ok();
}

async fn unknown_path_and_method_are_refused(context: Context) {
    let http = &context.farm.http;
    http.get("/nothing", &[]).await.assert_error(404, "not_found", "/nothing");
    http.get("/", &[]).await.assert_error(404, "not_found", "nothing at /");
    let reply = http.get("/get", &[]).await;
    reply.assert_error(405, "not_found", "GET is not allowed at /get");
    let reply = http.post("/screenshot", &[]).await;
    reply.assert_error(405, "not_found", "POST is not allowed at /screenshot");
}
