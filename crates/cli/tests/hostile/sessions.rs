//! Clients and pages that misuse the features of a session: options, state, tabs, files and the actions of models.

use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};
use testkit::{Lease, Served, eventually};

use crate::{TIMEOUT, attacks, environment::Environment};

attacks![
    ended_lease_reaches_no_state,
    file_names_stay_in_the_folder,
    oversized_options_take_no_slot,
    unbounded_windows_are_closed,
    unbounded_downloads_are_cancelled,
    actions_of_models_follow_the_rules,
];

/// The bound of tabs, see docs/sessions.md.
const MAX_TABS: usize = 20;
/// The bounds of the files of a lease.
const MAX_FILES: usize = 200;
const MAX_FILE_BYTES: u64 = 64 << 20;

async fn ended_lease_reaches_no_state(env: Arc<Environment>) {
    let ended = env.farm.get().await;
    env.farm.reset(&ended).await.ok();
    let tenant = env.lease_on(&env.plain_page()).await;
    env.farm.file(&tenant, Method::PUT, "own.txt", "own").await.ok();
    let own_id = tenant.id.split_once(':').expect("a uuid and a slot");
    let ended_uuid = ended.id.split_once(':').expect("a uuid and a slot").0;
    // The ended lease, also with the slot that the tenant has now.
    for id in [ended.id.clone(), format!("{ended_uuid}:{}", own_id.1)] {
        let lease = Lease { id, ..ended.clone() };
        let farm = &env.farm;
        let state =
            json!({"cookies": [{"name": "planted", "value": "1", "domain": "127.0.0.1", "path": "/"}]});
        let click =
            json!({"dialect": "openai", "action": {"type": "click", "button": "left", "x": 5, "y": 5}});
        for reply in [
            farm.http.get("/files", &[("node", &lease.node), ("instance_id", &lease.id)]).await,
            farm.file(&lease, Method::GET, "own.txt", "").await,
            farm.file(&lease, Method::PUT, "own.txt", "planted").await,
            farm.file(&lease, Method::DELETE, "own.txt", "").await,
            farm.storage_state(&lease).await,
            farm.set_storage_state(&lease, &state).await,
            farm.computer(&lease, click).await,
            farm.execute(&lease, json!({"open_tab": {}})).await,
        ] {
            reply.assert_error(400, "invalid_instance", "Invalid instance UUID");
        }
    }
    assert_eq!(env.farm.file(&tenant, Method::GET, "own.txt", "").await.text(), "own");
    assert!(!env.farm.storage_state(&tenant).await.text().contains("planted"));
    env.farm.reset(&tenant).await.ok();
}

async fn file_names_stay_in_the_folder(env: Arc<Environment>) {
    let lease = env.lease_on(&env.plain_page()).await;
    let long = "x".repeat(300);
    for name in [
        "..%2f..%2fevil-4c81",
        "..%5cevil-4c81",
        "%2e%2e",
        "%2ftmp%2fevil-4c81",
        "evil-4c81%00.txt",
        "%0aevil-4c81",
        ".evil-4c81",
        "",
        "%ff%fe",
        &long,
    ] {
        for method in [Method::PUT, Method::GET, Method::DELETE] {
            let reply = env.farm.file(&lease, method.clone(), name, "evil").await;
            assert!((400..500).contains(&reply.status), "{method} {name}: {} {}", reply.status, reply.text());
        }
        let set = json!({"set_files": {"x": 5, "y": 5, "files": [name]}});
        assert!((400..500).contains(&env.farm.execute(&lease, set).await.status), "set_files {name}");
    }
    assert_eq!(env.farm.files(&lease).await, json!({"files": []}));
    assert!(!std::path::Path::new("/tmp/evil-4c81").exists());
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}

async fn oversized_options_take_no_slot(env: Arc<Environment>) {
    let text = "x".repeat(100_000);
    let cookie = json!({"name": "a", "value": "b", "domain": "a.test", "path": "/"});
    let headers: Value =
        (0..51).map(|n| (format!("x-{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (name, value) in [
        ("viewport", json!({"width": 1_000_000, "height": 1_000_000})),
        ("device_scale_factor", json!(1e300)),
        ("locale", json!(text)),
        ("timezone_id", json!("../../etc/localtime")),
        ("user_agent", json!("a\r\nx-evil: 1")),
        ("extra_http_headers", headers),
        ("extra_http_headers", json!({"x": "a\r\nx-evil: 1"})),
        ("extra_http_headers", json!({"proxy-authorization": "x"})),
        ("blocked_hosts", json!(vec!["a.test"; 1001])),
        ("proxy", json!({"server": "http://a:b@127.0.0.1:1/"})),
        ("proxy", json!({"server": "file:///etc/passwd"})),
        ("storage_state", json!({"cookies": vec![cookie; 3001]})),
        ("storage_state", json!({"origins": [{"origin": "file:///etc"}]})),
        ("storage_state", json!({"origins": [{"origin": "http://a.test/../x"}]})),
    ] {
        let reply =
            env.farm.try_get_with(&Value::Object([(name.to_owned(), value)].into_iter().collect())).await;
        reply.assert_error(400, "bad_request", name);
        assert!(reply.body.len() < 2000, "{name}: the error repeats the value");
    }
    let reply = env.farm.http.try_send(Method::POST, "/get", &[], vec![b' '; 40 << 20], &[]).await;
    assert!(reply.as_ref().map_or(true, |reply| reply.status == 413), "{reply:?}");
}

async fn unbounded_windows_are_closed(env: Arc<Environment>) {
    let page = env.page(
        "<body style='height:100vh'><script>let opened = 0; onclick = () => { for (let n = 0; n < 100; n++) { if (open('/plain-' + n)) opened++; } \
         setInterval(() => open('/more'), 20); };</script>click",
    );
    let lease = env.farm.get_with(&json!({"tabs": "many"})).await;
    env.farm.visit(&lease, &page).await;
    let act = async |command: Value| {
        let reply = env.farm.execute(&lease, command).await;
        // A page that opens windows all the time may keep its own tenant waiting, but nothing else may fail.
        assert!(reply.status == 200 || reply.code() == "timeout", "{}", reply.text());
        reply.status == 200
    };
    for _ in 0..3 {
        // Each click may open a window, which becomes the current tab.
        act(json!({"click_coords": {"x": 300, "y": 300}})).await;
        act(json!({"switch_tab": {"id": "1"}})).await;
    }
    eventually("the number of tabs is bounded", TIMEOUT, async || {
        let reply = env.farm.execute(&lease, json!({"list_tabs": {}})).await.ok();
        reply["tabs"].as_array().is_some_and(|tabs| (2..=MAX_TABS).contains(&tabs.len()))
    })
    .await;
    eventually("the page that opens windows is left", TIMEOUT, async || {
        act(json!({"switch_tab": {"id": "1"}})).await
            && act(json!({"visit_page": {"url": env.plain_page()}})).await
    })
    .await;
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}

async fn unbounded_downloads_are_cancelled(env: Arc<Environment>) {
    let headers = vec![("content-type", "application/octet-stream"), ("content-disposition", "attachment")];
    env.site.serve("/large", Served::File(headers, vec![7; 5 << 20]));
    let page = env.page(
        "<body style='height:100vh'><script>onclick = () => { onclick = null; for (let n = 0; n < 300; n++) { const link = document.createElement('a'); \
         link.download = n % 3 ? '../../../../tmp/evil-9d02' : 'x'.repeat(5000); link.href = n % 10 ? URL.createObjectURL(new Blob(['x' + n])) : '/large?' + n; \
         document.body.append(link); link.click(); } document.body.prepend('all asked'); };</script>",
    );
    let lease = env.farm.get_with(&json!({"downloads": "keep"})).await;
    env.farm.visit(&lease, &page).await;
    env.farm.execute(&lease, json!({"click_coords": {"x": 300, "y": 300}})).await.ok();
    env.wait_for_text(&lease, "all asked").await;
    let listed = eventually_listed(&env, &lease).await;
    let total: u64 = listed.iter().map(|file| file["size"].as_u64().unwrap()).sum();
    assert!(listed.len() <= MAX_FILES && total <= MAX_FILE_BYTES, "{} files, {total} bytes", listed.len());
    for file in &listed {
        let name = file["name"].as_str().unwrap();
        assert!(!name.contains(['/', '\\']) && !name.starts_with('.') && name.len() <= 200, "{name}");
    }
    assert!(!std::path::Path::new("/tmp/evil-9d02").exists());
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}

/// Waits until no download is in progress, and returns the files.
async fn eventually_listed(env: &Environment, lease: &Lease) -> Vec<Value> {
    testkit::poll_until("the downloads end", TIMEOUT, async || {
        let files = env.farm.files(lease).await["files"].as_array().unwrap().clone();
        let has_ended = !files.is_empty() && files.iter().all(|file| file["state"] != "in_progress");
        has_ended.then_some(files)
    })
    .await
}

async fn actions_of_models_follow_the_rules(env: Arc<Environment>) {
    let lease = env.lease_on(&env.plain_page()).await;
    let page = env.page_url(&lease).await;
    for url in [
        "file:///etc/passwd",
        "chrome://version",
        "javascript:document.title='evil'",
        "view-source:http://127.0.0.1/",
    ] {
        let visit = json!({"dialect": "gemini", "action": {"name": "navigate", "args": {"url": url}}});
        let reply = env.farm.computer(&lease, visit).await.ok();
        assert!(
            ["bad_request", "url_refused"].contains(&reply["error"]["code"].as_str().unwrap()),
            "{url}: {reply}"
        );
        assert_eq!(env.page_url(&lease).await, page, "{url}");
    }
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let tags = "<tool_call>".repeat(40_000);
    for action in [
        json!(tags),
        json!({"type": "click", "x": nested}),
        json!(vec![json!({"type": "wait"}); 61]),
        json!({"type": "keypress", "keys": ["a".repeat(99_999)]}),
    ] {
        for dialect in ["openai", "anthropic", "gemini", "qwen", "ui_tars"] {
            let reply = env.farm.computer(&lease, json!({"dialect": dialect, "action": action})).await;
            let is_refused =
                reply.status == 400 || !reply.ok()["error"].is_null() || !reply.ok()["finished"].is_null();
            assert!(is_refused, "{dialect}: {}", reply.text().chars().take(500).collect::<String>());
        }
    }
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}
