//! The recording of a lease: frames with an index, console and network events.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Lease;

use crate::{Context, checks};

checks![recorded_lease_has_frames_console_and_network, lease_without_record_has_no_recording];

const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads a part as JSON until it is as wanted.
async fn wait_for(
    context: &Context,
    lease: &Lease,
    part: &str,
    is_wanted: impl Fn(&Value) -> bool + Send,
) -> Value {
    let mut content = Value::Null;
    let waiting = async {
        loop {
            content = context.farm.recording(lease, part).await.ok();
            if is_wanted(&content) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let is_late = tokio::time::timeout(TIMEOUT, waiting).await.is_err();
    assert!(!is_late, "{part} is not as wanted in time: {content}");
    content
}

async fn recorded_lease_has_frames_console_and_network(context: Context) {
    let farm = &context.farm;
    let lease = farm.get_with(&json!({"record": true})).await;
    let page = context.page("/course/buttons");
    farm.visit(&lease, "data:text/html,<h1>one</h1><script>console.warn('<b>noted</b>')</script>").await;
    farm.visit(&lease, &page).await;
    // Without a further command: the page that is shown has a frame.
    let has_page = |index: &Value| {
        let pages = index["pages"].as_array().expect("pages");
        pages.iter().any(|shown| shown["url"] == page)
            && index["frames"].as_array().is_some_and(|all| !all.is_empty())
    };
    wait_for(&context, &lease, "recording.json", has_page).await;
    // A busy machine draws two pages in one frame.
    farm.visit(&lease, &context.page("/course/text")).await;
    let has_frames = |index: &Value| index["frames"].as_array().is_some_and(|all| all.len() > 1);
    let index = wait_for(&context, &lease, "recording.json", has_frames).await;
    assert_eq!((&index["format"], &index["truncated"]), (&json!("webgym-recording-1"), &json!(false)));
    let frames = farm.recording(&lease, "recording.mjpeg").await;
    assert_eq!((frames.status, frames.content_type()), (200, "application/octet-stream"));
    let mut last = 0.0;
    for frame in index["frames"].as_array().unwrap() {
        let number = |field: usize| usize::try_from(frame[field].as_u64().unwrap()).unwrap();
        let jpeg = &frames.body[number(1)..number(1) + number(2)];
        assert!(jpeg.starts_with(b"\xff\xd8\xff") && jpeg.ends_with(b"\xff\xd9"), "{frame}");
        assert!(frame[0].as_f64().is_some_and(|time| time >= last), "times increase");
        last = frame[0].as_f64().unwrap();
    }
    let console = farm.recording(&lease, "console.jsonl").await.text();
    let first: Value = serde_json::from_str(console.lines().next().unwrap()).unwrap();
    assert_eq!((&first["level"], &first["text"]), (&json!("warning"), &json!("<b>noted</b>")));
    let visited = |har: &Value| {
        let entries = har["log"]["entries"].as_array().expect("entries");
        entries.iter().any(|entry| entry["request"]["url"] == page && entry["response"]["status"] == 200)
    };
    wait_for(&context, &lease, "network.har", visited).await;
    farm.recording(&lease, "other").await.assert_error(404, "not_found", "recording");
    farm.reset(&lease).await.ok();
    farm.recording(&lease, "recording.json").await.assert_error(
        400,
        "invalid_instance",
        "Invalid instance UUID",
    );
}

async fn lease_without_record_has_no_recording(context: Context) {
    let farm = &context.farm;
    for options in [json!({}), json!({"record": false})] {
        let lease = farm.get_with(&options).await;
        let refused = farm.recording(&lease, "recording.json").await;
        refused.assert_error(400, "bad_request", "session option record");
        farm.reset(&lease).await.ok();
    }
    let wrong = farm.try_get_with(&json!({"record": "yes"})).await;
    wrong.assert_error(400, "bad_request", "true or false");
}
