//! Text that a terminal or a log reader could misinterpret: control characters, forged log lines, lone surrogates.

use std::sync::Arc;

use serde_json::json;
use testkit::{Served, Webgym, eventually};

use crate::{TIMEOUT, WEBGYM, attacks, environment::Environment};

attacks![
    control_characters_are_escaped_in_log,
    control_characters_are_escaped_on_terminal,
    lone_surrogates_are_replaced,
    forged_log_lines_are_escaped,
];

/// Colour, window title, bell, a new line that looks like ours, right-to-left override, C1 escape and line separators.
const CONTROL_TEXT: &str = "\u{1b}[31mred\u{1b}]0;owned\u{7}\r\n2026-01-01T00:00:00Z ERROR forged\u{202e}txt.exe\u{9b}2J\u{2028}\u{85}";

/// Checks that the log has no control characters and no forged lines.
fn assert_escaped(log: &str) {
    for line in log.lines() {
        assert!(!line.chars().any(net::escape::is_terminal_control), "{line:?}");
        assert!(!line.starts_with("2026-01-01"), "{line:?}");
    }
}

async fn control_characters_are_escaped_in_log(_: Arc<Environment>) {
    // The most verbose log contains the most foreign text.
    let env = Environment::with("-vv serve 1 --allow-private-network").await;
    let text = json!(CONTROL_TEXT).to_string();
    let page = env.page(&format!(
        "<body>control<script>const words = {text}; document.title = words; console.error(words); alert(words); confirm(words); prompt(words, words);
        history.pushState(0, '', '#' + words); fetch('/x?' + words); name = words; setTimeout(() => {{ throw new Error(words) }});
        onunhandledrejection = () => {{}}; Promise.reject(words); document.body.append(words);</script>"
    ));
    let lease = env.lease_on(&page).await;
    env.farm.execute(&lease, json!({"get_page_metadata": {}})).await.ok();
    for command in [
        json!({"visit_page": {"url": format!("http://{CONTROL_TEXT}/")}}),
        json!({"visit_page": {"url": format!("http://127.0.0.1:1/{CONTROL_TEXT}")}}),
        json!({"visit_page": {"url": CONTROL_TEXT}}),
        json!({"click_id": {"id": CONTROL_TEXT}}),
        json!({"keypress": {"keys": [CONTROL_TEXT]}}),
        json!({CONTROL_TEXT: {}}),
        json!({"fill_coords": {"x": 5, "y": 5, "value": CONTROL_TEXT}}),
    ] {
        env.farm.execute(&lease, command).await;
    }
    let ids = [
        ("node", CONTROL_TEXT),
        ("instance_id", CONTROL_TEXT),
        ("idempotency_key", CONTROL_TEXT),
        ("lifetime_mins", CONTROL_TEXT),
    ];
    for path in ["/get", "/reset"] {
        env.farm.http.post(path, &ids).await;
    }
    env.farm.http.post(&format!("/{}", "%1b%5b31m%0d%0aforged"), &[]).await;
    let key = [("idempotency_key", CONTROL_TEXT), ("wait_secs", "0")];
    env.farm.try_get(&key).await;
    env.farm.reset(&lease).await.ok();
    eventually("the farm has logged something", TIMEOUT, async || !env.webgym.log().is_empty()).await;
    assert_escaped(&env.webgym.log());
    Environment::stop(env, true).await;
}

/// Foreign text cannot forge a log line; it stays on the line that quotes it.
async fn forged_log_lines_are_escaped(env: Arc<Environment>) {
    let lease = env.lease_on(&env.plain_page()).await;
    let forged = "x\nINFO ready: 99 instances";
    env.farm.http.post("/reset", &[("node", forged), ("instance_id", &lease.id)]).await.assert_error(
        400,
        "unknown_node",
        "Node",
    );
    assert!(!env.webgym.log().lines().any(|line| line.starts_with("INFO ready: 99")));
    assert_escaped(&env.webgym.log());
    env.farm.reset(&lease).await.ok();
}

/// A run whose tasks, pages and model all contain control characters.
async fn control_characters_are_escaped_on_terminal(env: Arc<Environment>) {
    let folder = tempfile::tempdir().expect("a folder");
    let page = env.page(&format!("<title>{CONTROL_TEXT}</title><body>{CONTROL_TEXT}"));
    let task = json!({
        "task_id": "t", "task_name": CONTROL_TEXT, "website": page, "domain": CONTROL_TEXT, "subdomain": "s", "difficulty": 1,
        "evaluator_reference": [CONTROL_TEXT], "definite_answer": CONTROL_TEXT,
    });
    std::fs::write(folder.path().join("tasks.jsonl"), task.to_string()).expect("a task file");
    // The model server responds with control characters too, and never with valid JSON.
    let headers = vec![("content-type", "text/plain")];
    for path in ["/v1/models", "/v1/chat/completions", "/health"] {
        env.site.serve(path, Served::File(headers.clone(), CONTROL_TEXT.as_bytes().to_vec()));
    }
    for (file, verbose) in [("tasks.jsonl", "-v"), ("tasks.jsonl", "--quiet"), ("broken.jsonl", "-v")] {
        std::fs::write(
            folder.path().join("broken.jsonl"),
            format!("{{\"task_name\": 1, \"x\": {}}}", json!(CONTROL_TEXT)),
        )
        .expect("a file");
        let own = [
            format!("save_path={}", folder.path().join("run").display()),
            format!("data_path={}", folder.path().display()),
            format!("env_config.vllm_server_url={}", env.url("")),
            format!("env_config.test_tasks={file}"),
        ];
        let fixed = [
            verbose,
            "rollout",
            "--allow-private-network",
            "--config-name=rollout_test",
            "env_config.server_size=1",
            "judge=reference",
            "env_config.max_retries=0",
            "env_config.task_timeout_minutes=1",
        ];
        let arguments: Vec<&str> = fixed.into_iter().chain(own.iter().map(String::as_str)).collect();
        let mut run = Webgym::spawn(WEBGYM, &arguments);
        run.wait_for_exit(TIMEOUT * 3).await;
        assert!(!run.log().is_empty(), "the run logs something");
        assert_escaped(&run.log());
    }
}

async fn lone_surrogates_are_replaced(env: Arc<Environment>) {
    let page = env.page(
        "<body><button></button><script>const half = 'a\\ud83cb\\udf89c\\u202edlrow\\u0000'; document.title = half; document.querySelector('button').textContent = half;
        document.querySelector('button').ariaLabel = half; document.body.append(half); history.replaceState(0, '', '#' + half);
        document.head.insertAdjacentHTML('beforeend', '<meta name=m>'); document.querySelector('meta[name=m]').content = half; alert(half); console.log(half);</script>",
    );
    let lease = env.lease_on(&page).await;
    let seen = env.farm.observe(&lease, json!({"include": ["screenshot", "ac_tree", "metadata"]})).await.ok();
    assert!(
        seen["ac_tree"].as_str().is_some_and(|tree| tree.contains("a\u{fffd}b\u{fffd}c")),
        "{}",
        seen["ac_tree"]
    );
    let title = seen["metadata"]["title"].as_str().unwrap_or_default().to_owned();
    assert!(title.contains('\u{fffd}'), "{title:?}");
    assert!(env.farm.text(&lease).await.contains('\u{fffd}'));
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}
