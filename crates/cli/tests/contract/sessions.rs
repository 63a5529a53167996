//! Session options of `/get`, and `/storage_state`.

use hyper::Method;
use serde_json::json;

use crate::{Context, checks, commands::mark_of};

checks![
    session_options_are_applied,
    invalid_session_options_are_refused_by_name,
    refused_options_take_no_slot,
    storage_state_moves_to_another_lease,
    invalid_storage_states_are_refused,
    files_are_uploaded_chosen_and_downloaded,
    files_end_with_the_lease,
];

async fn session_options_are_applied(context: Context) {
    let farm = &context.farm;
    let options = json!({
        "viewport": {"width": 640, "height": 480}, "locale": "fr-FR", "timezone_id": "Asia/Tokyo", "color_scheme": "dark",
        "user_agent": "Tester/1.0", "extra_http_headers": {"x-team": "blue"}, "storage_state": null,
    });
    let lease = farm.get_with(&options).await;
    assert_eq!(farm.metadata(&lease).await.ok(), json!({"width": 640, "height": 480}));
    farm.visit(&lease, &context.page("/echo/headers")).await;
    let text = farm.text(&lease).await;
    for expected in ["fr-FR", "Tester/1.0", "blue"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    farm.reset(&lease).await.ok();
    let next = farm.get().await;
    assert_eq!(
        farm.metadata(&next).await.ok(),
        json!({"width": 1280, "height": 768}),
        "options end with the lease"
    );
    farm.visit(&next, &context.page("/echo/headers")).await;
    assert!(!farm.text(&next).await.contains("blue"));
    farm.reset(&next).await.ok();
}

async fn invalid_session_options_are_refused_by_name(context: Context) {
    let farm = &context.farm;
    for (options, expected) in [
        (json!({"viewprt": {"width": 640, "height": 480}}), "unknown session option \"viewprt\""),
        (json!({"viewport": {"width": 6, "height": 480}}), "viewport: width is 6"),
        (json!({"proxy": {"server": "socks5://a:1"}}), "proxy: the server"),
        (
            json!({"storage_state": {"origins": [{"origin": "a.test"}]}}),
            "storage_state: the origin \"a.test\"",
        ),
        (json!([1]), "must be a JSON object"),
    ] {
        farm.try_get_with(&options).await.assert_error(400, "bad_request", expected);
    }
}

/// Some options only the browser can check. The slot that was taken for that is free again.
async fn refused_options_take_no_slot(context: Context) {
    let farm = &context.farm;
    for (options, expected) in [
        (json!({"timezone_id": "Nowhere/Land"}), "session option timezone_id"),
        (json!({"locale": "zz-QQQ9"}), "session option locale"),
    ] {
        farm.try_get_with(&options).await.assert_error(400, "bad_request", expected);
    }
    let lease = farm.get().await;
    farm.reset(&lease).await.ok();
}

async fn storage_state_moves_to_another_lease(context: Context) {
    let farm = &context.farm;
    let first = farm.get().await;
    farm.visit(&first, &context.page("/course/storage?set=crumb")).await;
    let state = farm.storage_state(&first).await.ok();
    let names: Vec<&str> =
        state["cookies"].as_array().unwrap().iter().filter_map(|cookie| cookie["name"].as_str()).collect();
    assert!(!names.is_empty(), "{state}");
    farm.reset(&first).await.ok();
    let second = farm.get_with(&json!({"storage_state": state})).await;
    assert_eq!(farm.storage_state(&second).await.ok(), state);
    farm.visit(&second, &context.page("/course/storage")).await;
    assert!(farm.text(&second).await.contains("crumb"));
    farm.set_storage_state(&second, &json!({"cookies": [], "origins": []})).await.ok();
    assert_eq!(farm.storage_state(&second).await.ok(), json!({"cookies": [], "origins": []}));
    farm.set_storage_state(&second, &state).await.ok();
    assert_eq!(farm.storage_state(&second).await.ok(), state);
    farm.reset(&second).await.ok();
}

async fn invalid_storage_states_are_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    for (state, expected) in [
        (json!({"cookies": [{"name": "a"}]}), "storage_state: cookies[0]: missing field `value`"),
        (json!({"cookies": "all"}), "storage_state: it must be"),
        (json!({"biscuits": []}), "storage_state: unknown field `biscuits`"),
        (
            json!({"cookies": [{"name": "a", "value": "b", "domain": "not a domain"}]}),
            "\"not a domain\" of cookie 0",
        ),
    ] {
        farm.set_storage_state(&lease, &state).await.assert_error(400, "bad_request", expected);
    }
    farm.reset(&lease).await.ok();
}

async fn files_are_uploaded_chosen_and_downloaded(context: Context) {
    let farm = &context.farm;
    let lease = farm.get_with(&json!({"downloads": "keep"})).await;
    let content: Vec<u8> = (0..=255).collect();
    let stored = farm.file(&lease, Method::PUT, "r%C3%A9sum%C3%A9%201.bin", content.clone()).await.ok();
    assert_eq!(stored, json!({"status": "success", "name": "résumé 1.bin", "size": 256}));
    let listed = farm.files(&lease).await;
    assert_eq!(listed, json!({"files": [{"name": "résumé 1.bin", "size": 256, "kind": "upload"}]}));
    let read = farm.file(&lease, Method::GET, "r%C3%A9sum%C3%A9%201.bin", "").await;
    assert_eq!((read.status, read.body.to_vec()), (200, content));
    farm.visit(&lease, &context.page("/course/inputs")).await;
    farm.execute(&lease, json!({"page_down": {"amount": 400}})).await.ok();
    farm.screenshot(&lease, &[]).await;
    let info = farm.execute(&lease, json!({"get_screenshot_info": {}})).await.ok();
    let id = mark_of(&info, "File").expect("the file input");
    farm.execute(&lease, json!({"set_files": {"id": id, "files": ["résumé 1.bin"]}})).await.ok();
    assert!(farm.text(&lease).await.contains("change file"), "the page has the file");
    farm.visit(&lease, &context.page("/course/download/report.csv")).await;
    let listed = farm.files(&lease).await;
    assert_eq!(listed["files"][1]["name"], "report.csv", "{listed}");
    assert_eq!(listed["files"][1]["state"], "complete", "{listed}");
    let report = farm.file(&lease, Method::GET, "report.csv", "").await;
    assert_eq!(report.body.len() as u64, listed["files"][1]["size"].as_u64().unwrap());
    farm.file(&lease, Method::DELETE, "report.csv", "").await.ok();
    farm.file(&lease, Method::GET, "report.csv", "").await.assert_error(
        404,
        "not_found",
        "no file \"report.csv\"",
    );
    for name in ["..%2Fescape", ".hidden", "a%00b"] {
        farm.file(&lease, Method::PUT, name, "x").await.assert_error(
            400,
            "bad_request",
            "is not a file name",
        );
    }
    farm.reset(&lease).await.ok();
}

async fn files_end_with_the_lease(context: Context) {
    let farm = &context.farm;
    let first = farm.get().await;
    farm.file(&first, Method::PUT, "note.txt", "secret").await.ok();
    farm.reset(&first).await.ok();
    farm.file(&first, Method::GET, "note.txt", "").await.assert_error(
        400,
        "invalid_instance",
        "Invalid instance UUID",
    );
    let second = farm.get().await;
    assert_eq!(farm.files(&second).await, json!({"files": []}));
    farm.reset(&second).await.ok();
}
