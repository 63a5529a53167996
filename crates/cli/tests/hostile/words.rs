//! Text that would be obeyed where it should be read: escapes for terminals, lines for logs, markup for pages.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use testkit::{Served, Webgym, eventually};

use crate::{SECONDS, WEBGYM, attacks, world::World};

attacks![
    writes_escapes_into_the_log,
    writes_escapes_onto_the_terminal,
    sends_half_characters,
    imitates_a_tenant_in_the_log,
];

/// Red, the window's title, a bell, a new line that looks like ours, text from right to left, and the old way to begin an escape.
const UNRULY: &str = "\u{1b}[31mred\u{1b}]0;owned\u{7}\r\n2026-01-01T00:00:00Z ERROR forged\u{202e}txt.exe\u{9b}2J\u{2028}\u{85}";

/// Nothing in the log that a terminal would obey, and no line that did not come from us.
fn is_tame(log: &str) {
    for line in log.lines() {
        assert!(!line.chars().any(net::escape::is_terminal_control), "{line:?}");
        assert!(!line.starts_with("2026-01-01"), "{line:?}");
    }
}

async fn writes_escapes_into_the_log(_: Arc<World>) {
    // Everything is told, by all who have anything to tell.
    let world = World::with("-vv serve 1 --allow-private-network").await;
    let told = json!(UNRULY).to_string();
    let page = world.page(&format!(
        "<body>unruly<script>const words = {told}; document.title = words; console.error(words); alert(words); confirm(words); prompt(words, words);
        history.pushState(0, '', '#' + words); fetch('/x?' + words); name = words; setTimeout(() => {{ throw new Error(words) }});
        onunhandledrejection = () => {{}}; Promise.reject(words); document.body.append(words);</script>"
    ));
    let lease = world.visiting(&page).await;
    world.farm.execute(&lease, json!({"get_page_metadata": {}})).await.ok();
    for command in [
        json!({"visit_page": {"url": format!("http://{UNRULY}/")}}),
        json!({"visit_page": {"url": format!("http://127.0.0.1:1/{UNRULY}")}}),
        json!({"visit_page": {"url": UNRULY}}),
        json!({"click_id": {"id": UNRULY}}),
        json!({"keypress": {"keys": [UNRULY]}}),
        json!({UNRULY: {}}),
        json!({"fill_coords": {"x": 5, "y": 5, "value": UNRULY}}),
    ] {
        world.farm.execute(&lease, command).await;
    }
    let ids =
        [("node", UNRULY), ("instance_id", UNRULY), ("idempotency_key", UNRULY), ("lifetime_mins", UNRULY)];
    for path in ["/get", "/reset"] {
        world.farm.http.post(path, &ids).await;
    }
    world.farm.http.post(&format!("/{}", "%1b%5b31m%0d%0aforged"), &[]).await;
    let key = [("idempotency_key", UNRULY), ("wait_secs", "0")];
    world.farm.try_get(&key).await;
    world.farm.reset(&lease).await.ok();
    eventually("it has told something", SECONDS, async || !world.webgym.log().is_empty()).await;
    is_tame(&world.webgym.log());
    World::stop(world, true).await;
}

/// A page may not speak in our name; what it writes stays on the line that quotes it.
async fn imitates_a_tenant_in_the_log(world: Arc<World>) {
    let lease = world.visiting(&world.innocent()).await;
    let forged = "x\nINFO ready: 99 instances";
    world.farm.http.post("/reset", &[("node", forged), ("instance_id", &lease.id)]).await.assert_error(
        400,
        "unknown_node",
        "Node",
    );
    assert!(!world.webgym.log().lines().any(|line| line.starts_with("INFO ready: 99")));
    is_tame(&world.webgym.log());
    world.farm.reset(&lease).await.ok();
}

/// A run whose tasks, pages and model all speak in escapes.
async fn writes_escapes_onto_the_terminal(world: Arc<World>) {
    let folder = tempfile::tempdir().expect("a folder");
    let page = world.page(&format!("<title>{UNRULY}</title><body>{UNRULY}"));
    let task = json!({
        "task_id": "t", "task_name": UNRULY, "website": page, "domain": UNRULY, "subdomain": "s", "difficulty": 1,
        "evaluator_reference": [UNRULY], "definite_answer": UNRULY,
    });
    std::fs::write(folder.path().join("tasks.jsonl"), task.to_string()).expect("a task file");
    // The model's server answers in escapes too, and never as it should.
    let headers = vec![("content-type", "text/plain")];
    for path in ["/v1/models", "/v1/chat/completions", "/health"] {
        world.site.serve(path, Served::File(headers.clone(), UNRULY.as_bytes().to_vec()));
    }
    for (file, verbose) in [("tasks.jsonl", "-v"), ("tasks.jsonl", "--quiet"), ("broken.jsonl", "-v")] {
        std::fs::write(
            folder.path().join("broken.jsonl"),
            format!("{{\"task_name\": 1, \"x\": {}}}", json!(UNRULY)),
        )
        .expect("a file");
        let own = [
            format!("save_path={}", folder.path().join("run").display()),
            format!("data_path={}", folder.path().display()),
            format!("env_config.vllm_server_url={}", world.url("")),
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
        let words: Vec<&str> = fixed.into_iter().chain(own.iter().map(String::as_str)).collect();
        let mut run = Webgym::spawn(WEBGYM, &words);
        run.wait_for_exit(Duration::from_secs(120)).await;
        assert!(!run.log().is_empty(), "it says something");
        is_tame(&run.log());
    }
}

async fn sends_half_characters(world: Arc<World>) {
    let page = world.page(
        "<body><button></button><script>const half = 'a\\ud83cb\\udf89c\\u202edlrow\\u0000'; document.title = half; document.querySelector('button').textContent = half;
        document.querySelector('button').ariaLabel = half; document.body.append(half); history.replaceState(0, '', '#' + half);
        document.head.insertAdjacentHTML('beforeend', '<meta name=m>'); document.querySelector('meta[name=m]').content = half; alert(half); console.log(half);</script>",
    );
    let lease = world.visiting(&page).await;
    let seen =
        world.farm.observe(&lease, json!({"include": ["screenshot", "ac_tree", "metadata"]})).await.ok();
    assert!(
        seen["ac_tree"].as_str().is_some_and(|tree| tree.contains("a\u{fffd}b\u{fffd}c")),
        "{}",
        seen["ac_tree"]
    );
    let title = seen["metadata"]["title"].as_str().unwrap_or_default().to_owned();
    assert!(title.contains('\u{fffd}'), "{title:?}");
    assert!(world.farm.text(&lease).await.contains('\u{fffd}'));
    world.is_well(&lease).await;
    world.farm.reset(&lease).await.ok();
}
