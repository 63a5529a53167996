//! `/screenshot`, `/metadata`, `/probe`, `/observe`, `/step`: content and formats of the responses.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_bytes::ByteBuf;
use serde_json::{Value, json};
use testkit::{Lease, Reply};

use crate::{Context, checks};

checks![
    screenshot_has_requested_mode_and_format,
    metadata_and_probe_match_contract,
    observe_returns_json,
    observe_returns_msgpack,
    step_executes_and_observes,
    failed_step_still_observes,
    observe_returns_only_included_parts,
];

/// Returns the format and, for PNG, the size of an image, from its first bytes.
fn image_info(bytes: &[u8]) -> (&'static str, Option<(u32, u32)>) {
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => ("png", Some((number(16), number(20)))),
        [0xff, 0xd8, 0xff, ..] => ("jpeg", None),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ("webp", None),
        _ => ("unknown", None),
    }
}

async fn open_buttons_page(context: &Context) -> Lease {
    let lease = context.farm.get().await;
    context.farm.visit(&lease, &context.page("/course/buttons")).await;
    lease
}

async fn screenshot_has_requested_mode_and_format(context: Context) {
    let farm = &context.farm;
    let lease = open_buttons_page(&context).await;
    let check = |reply: Reply, content_type: &str, format: &str| {
        assert_eq!((reply.status, reply.content_type()), (200, content_type), "{}", reply.text());
        let (found, size) = image_info(&reply.body);
        assert_eq!(found, format);
        assert!(size.is_none_or(|size| size == (1280, 768)), "{size:?}");
        reply.body
    };
    let marked = check(farm.screenshot(&lease, &[]).await, "image/png", "png");
    let plain =
        check(farm.screenshot(&lease, &[("interaction_mode", "coordinates")]).await, "image/png", "png");
    assert_ne!(marked, plain, "marks are drawn by default");
    let marked_again =
        check(farm.screenshot(&lease, &[("interaction_mode", "set_of_marks")]).await, "image/png", "png");
    assert_eq!(marked, marked_again);
    check(farm.screenshot(&lease, &[("format", "jpeg")]).await, "image/jpeg", "jpeg");
    let webp = [("format", "webp"), ("interaction_mode", "coordinates")];
    check(farm.screenshot(&lease, &webp).await, "image/webp", "webp");
    farm.screenshot(&lease, &[("interaction_mode", "marks")]).await.assert_error(
        400,
        "bad_request",
        "interaction_mode",
    );
    farm.screenshot(&lease, &[("format", "gif")]).await.assert_error(400, "bad_request", "format");
    farm.reset(&lease).await.ok();
}

async fn metadata_and_probe_match_contract(context: Context) {
    let lease = context.farm.get().await;
    let size = context.farm.metadata(&lease).await;
    assert_eq!(size.content_type(), "application/json");
    assert_eq!(size.ok(), json!({"width": 1280, "height": 768}));
    let probe = context.farm.probe(&lease).await.ok();
    assert_eq!(probe, json!({"status": "success", "message": "Probe successful"}));
    context.farm.reset(&lease).await.ok();
}

async fn observe_returns_json(context: Context) {
    let farm = &context.farm;
    let lease = open_buttons_page(&context).await;
    for format in ["png", "jpeg", "webp"] {
        let request = json!({"format": format, "include": ["screenshot", "metadata", "ac_tree", "rects"]});
        let seen = farm.observe(&lease, request).await.ok();
        let data = STANDARD.decode(seen["screenshot"]["data"].as_str().expect("base64")).expect("base64");
        assert_eq!(image_info(&data).0, format);
        let screenshot = &seen["screenshot"];
        assert_eq!(
            (&screenshot["format"], &screenshot["width"], &screenshot["height"]),
            (&json!(format), &json!(1280), &json!(768))
        );
        assert_eq!(seen["metadata"]["url"], context.page("/course/buttons"));
        let tree = seen["ac_tree"].as_str().expect("a tree");
        assert!(tree.lines().any(|line| line.ends_with("text: Count up, tag: button")), "{tree}");
        assert!(seen["screenshot_info"]["id_mapping"]["1"].is_string(), "{}", seen["screenshot_info"]);
        assert_eq!((&seen["result"], &seen["error"]), (&Value::Null, &Value::Null));
    }
    let same = farm.observe(&lease, json!({"format": "webp"})).await.ok();
    assert_eq!(same["unchanged"], true, "the page has not changed since the last screenshot in this format");
    farm.reset(&lease).await.ok();
}

#[derive(Deserialize)]
struct Observation {
    screenshot: Screenshot,
    metadata: Metadata,
    settled: bool,
    result: Option<CommandResult>,
}

#[derive(Deserialize)]
struct Screenshot {
    format: String,
    data: ByteBuf,
}

#[derive(Deserialize)]
struct Metadata {
    url: String,
}

#[derive(Deserialize)]
struct CommandResult {
    status: String,
}

async fn observe_returns_msgpack(context: Context) {
    let farm = &context.farm;
    let lease = open_buttons_page(&context).await;
    for format in ["png", "jpeg", "webp"] {
        let accept = [("accept", "application/msgpack")];
        let reply = farm.post_observation("/observe", &lease, json!({"format": format}), &accept).await;
        assert_eq!((reply.status, reply.content_type()), (200, "application/msgpack"), "{}", reply.text());
        let seen: Observation = rmp_serde::from_slice(&reply.body).expect("msgpack");
        assert_eq!((image_info(&seen.screenshot.data).0, seen.screenshot.format.as_str()), (format, format));
        assert_eq!(seen.metadata.url, context.page("/course/buttons"));
        assert!(seen.settled && seen.result.is_none());
    }
    let step = json!({"command": {"page_down": {}}});
    let reply = farm.post_observation("/step", &lease, step, &[("accept", "application/msgpack")]).await;
    let seen: Observation = rmp_serde::from_slice(&reply.body).expect("msgpack");
    assert_eq!(seen.result.map(|result| result.status).as_deref(), Some("success"));
    farm.reset(&lease).await.ok();
}

async fn step_executes_and_observes(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let visit = json!({"command": {"visit_page": {"url": context.page("/course/buttons")}}, "include": ["metadata", "ac_tree"]});
    let seen = farm.step(&lease, visit).await.ok();
    assert_eq!(seen["result"], json!({"status": "success"}));
    assert_eq!(
        seen["metadata"]["title"].as_str().map(|title| title.contains("Buttons")),
        Some(true),
        "{seen}"
    );
    assert!(seen["screenshot"].is_null() && seen["settle_ms"].is_u64(), "{seen}");
    let seen = farm.observe(&lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().expect("a tree");
    let line = tree.lines().find(|line| line.contains("text: Count up,")).expect("the button");
    let id = line.trim_start_matches("id: ").split(',').next().expect("its number").to_owned();
    let seen = farm.step(&lease, json!({"command": {"click_id": {"id": id}}})).await.ok();
    assert_eq!((&seen["error"], &seen["unchanged"]), (&Value::Null, &json!(false)), "{}", seen["error"]);
    assert!(farm.text(&lease).await.contains("count 1"));
    farm.reset(&lease).await.ok();
}

async fn failed_step_still_observes(context: Context) {
    let farm = &context.farm;
    let lease = open_buttons_page(&context).await;
    let seen = farm
        .step(&lease, json!({"command": {"click_id": {"id": "9999"}}, "include": ["metadata"]}))
        .await
        .ok();
    assert_eq!(seen["error"]["code"], "element_not_found", "{seen}");
    assert!(seen["error"]["detail"].as_str().is_some_and(|detail| detail.contains("9999")), "{seen}");
    assert_eq!(seen["metadata"]["url"], context.page("/course/buttons"));
    let refused =
        json!({"command": {"visit_page": {"url": "file:///etc/hostname"}}, "include": ["metadata"]});
    let seen = farm.step(&lease, refused).await.ok();
    assert_eq!(seen["error"]["code"], "url_refused", "{seen}");
    farm.reset(&lease).await.ok();
}

async fn observe_returns_only_included_parts(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let seen = farm.observe(&lease, json!({"include": []})).await.ok();
    for absent in ["screenshot", "metadata", "ac_tree", "screenshot_info"] {
        assert!(seen[absent].is_null(), "{seen}");
    }
    for (path, body, message) in [
        ("/step", json!({}), "needs a \"command\""),
        ("/observe", json!({"command": {"back": {}}}), "use /step"),
        ("/observe", json!({"include": ["title"]}), "include"),
        ("/observe", json!({"include": "screenshot"}), "include"),
        ("/observe", json!({"formt": "png"}), "formt"),
        ("/step", json!({"command": {"back": {}, "sleep": {"duration": 1}}}), "2 commands"),
    ] {
        farm.post_observation(path, &lease, body, &[]).await.assert_error(400, "bad_request", message);
    }
    farm.reset(&lease).await.ok();
}
