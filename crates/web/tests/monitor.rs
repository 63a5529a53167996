//! The monitor in a real Chromium: live updates, filters, task details, keyboard use, hostile text, accessibility and access
//! control.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
#[path = "common/fake_run.rs"]
mod fake_run;

use axum::{Router, extract::Request, response::IntoResponse};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use common::Tab;
use fake_run::{FakeRun, task};
use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;
use web::{
    monitor::{Monitor, relay},
    server,
};

/// A PNG of one red pixel.
const RED_PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

async fn open(monitor: &Monitor) -> Tab {
    let tab = Tab::open().await;
    tab.visit(&monitor.link()).await;
    tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab
}

/// Returns a script that checks the count on the filter chip of a kind.
fn chip(kind: &str, count: usize) -> String {
    format!("document.querySelector('.chip[data-kind={kind}] b').textContent === '{count}'")
}

/// Returns a script that checks whether a cell of the grid is painted in the colour of a kind. Reads a pixel near the corner,
/// where there is no letter.
fn painted(number: usize, kind: &str) -> String {
    format!(
        "(() => {{ const canvas = document.querySelector('.grid-box canvas'); const size = 64; \
           const columns = Math.floor(canvas.clientWidth / size); \
           const x = ({number} % columns) * size + 10, y = Math.floor({number} / columns) * size + 10; \
           const copy = new OffscreenCanvas(1, 1).getContext('2d', {{willReadFrequently: true}}); copy.drawImage(canvas, -x, -y); \
           const seen = [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3).join(', '); \
           return getComputedStyle(document.querySelector('.swatch.kind-{kind}')).backgroundColor === `rgb(${{seen}})`; }})()"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn grid_follows_run_live() {
    common::require_built_pages();
    let run = FakeRun::new(40);
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    tab.wait_until(&chip("idle", 40)).await;
    tab.wait_until(&painted(3, "idle")).await;
    run.enter_stage(3, 2, Stage::Policy);
    run.record_duration(Stage::Policy, 1500);
    tab.wait_until(&chip("policy", 1)).await;
    tab.wait_until(&painted(3, "policy")).await;
    tab.wait_until("document.querySelector('[data-stage=policy]').textContent === 'apolicy11.5 s1.5 s'")
        .await;
    run.record_decision(3, "answer", "");
    run.finish(3, Outcome::Success);
    run.finish(4, Outcome::InfraLost);
    tab.wait_until(&chip("success", 1)).await;
    tab.wait_until(&chip("lost", 1)).await;
    tab.wait_until(&painted(3, "success")).await;
    tab.wait_until("document.querySelector('[role=progressbar]').ariaValueText === '2 of 40 tasks done'")
        .await;
    tab.assert_no_errors();
    drop(monitor);
    tab.wait_until("document.querySelector('[data-status=ended]')").await;
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_joins_appears_in_the_open_page() {
    common::require_built_pages();
    let run = FakeRun::open_ended();
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    tab.eval(
        "[...document.querySelectorAll('.views button')].find((one) => one.textContent === 'Table').click()",
    )
    .await;
    for index in 0..3 {
        run.add(index);
        tab.wait_until(&chip("idle", index + 1)).await;
        let name = format!("Find the {}th lamp", index + 1);
        tab.wait_until(&format!("document.querySelector('.tasks').textContent.includes('{name}')")).await;
    }
    run.enter_stage(2, 1, Stage::Execute);
    tab.wait_until(&chip("browser", 1)).await;
    run.finish(2, Outcome::Success);
    tab.wait_until("document.querySelector('[role=progressbar]').ariaValueText === '1 of 3 tasks done'")
        .await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_are_filtered_by_state_and_task() {
    common::require_built_pages();
    let run = FakeRun::new(50);
    (0..7).for_each(|index| run.enter_stage(index, 1, Stage::Policy));
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    let shown =
        |count: usize| format!("document.querySelector('.grid-box').ariaLabel.startsWith('{count} tasks')");
    tab.wait_until(&shown(50)).await;
    tab.click(".chip[data-kind=policy]").await;
    tab.wait_until(&shown(7)).await;
    // A cell that enters the filtered state appears.
    run.enter_stage(20, 1, Stage::Policy);
    tab.wait_until(&shown(8)).await;
    let choose = |label: &str, value: &str| {
        format!(
            "(() => {{ const select = [...document.querySelectorAll('label')].find((label) => label.textContent.startsWith('{label}')).querySelector('select'); \
             select.value = '{value}'; select.dispatchEvent(new Event('change', {{bubbles: true}})); return select.value; }})()"
        )
    };
    assert_eq!(tab.eval(&choose("Domain", "Shopping")).await, "Shopping");
    tab.wait_until(&shown(3)).await;
    tab.wait_until("location.hash === '#state=policy&domain=Shopping'").await;
    // The URL alone restores the filter.
    tab.reload().await;
    tab.wait_until(&shown(3)).await;
    tab.click(".chip[data-kind=policy]").await;
    tab.wait_until(&shown(10)).await;
    tab.eval(&choose("Difficulty", "hard")).await;
    let hard = (0..50).map(task).filter(|task| task.domain == "Shopping" && task.difficulty >= 7).count();
    tab.wait_until(&shown(hard)).await;
    tab.click(".views button:nth-child(2)").await;
    tab.wait_until(&format!("document.querySelectorAll('.task-table tbody tr').length === {hard}")).await;
    tab.click("input[type=search]").await;
    tab.type_text("no such lamp").await;
    tab.wait_until("document.querySelector('.pager').textContent.includes('No task matches the filter')")
        .await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clicked_cell_opens_live_task() {
    common::require_built_pages();
    let folder = tempfile::tempdir().unwrap();
    let screenshot = folder.path().join("step_000.png");
    std::fs::write(&screenshot, STANDARD.decode(RED_PIXEL).unwrap()).unwrap();
    let run = FakeRun::new(40);
    run.record_page(5, "https://shop.example/lamps", &screenshot);
    run.record_decision(5, "Click [7]", "the lamp is there");
    run.enter_stage(5, 1, Stage::Execute);
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    tab.wait_until(&painted(5, "browser")).await;
    let corner = tab.eval("(() => { const box = document.querySelector('.grid-box canvas').getBoundingClientRect(); return [box.x, box.y]; })()").await;
    tab.click_at(corner[0].as_f64().unwrap() + 5.5 * 64.0, corner[1].as_f64().unwrap() + 32.0).await;
    tab.wait_until("document.querySelector('.drawer .task-name')").await;
    let text = tab.text(".drawer").await;
    for expected in [
        "Task 5",
        "step 1 · execute",
        "Find the 6th lamp",
        "https://shop.example/",
        "Click [7]",
        "the lamp is there",
        "waiting for a browser",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    }
    tab.wait_until("document.querySelector('.drawer .screenshot').naturalWidth === 1").await;
    run.record_page(5, "https://shop.example/lamps/7", &screenshot);
    run.record_decision(5, "Answer [39.90]", "");
    run.enter_stage(5, 2, Stage::Policy);
    tab.wait_until("document.querySelectorAll('.steps li').length === 2 && document.querySelector('.drawer').textContent.includes('/lamps/7')").await;
    tab.wait_until("document.querySelector('.drawer .screenshot').src.endsWith('screenshot?v=2')").await;
    run.finish(5, Outcome::Failure);
    tab.wait_until("document.querySelector('.drawer .badge').textContent === 'not solved'").await;
    tab.press("Escape").await;
    tab.wait_until("!document.querySelector('.drawer')").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn misses_of_a_replay_are_shown() {
    common::require_built_pages();
    let run = FakeRun::new(4);
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    assert_eq!(tab.eval("document.body.textContent.includes('Normalised')").await, false);
    let network = json!({
        "matches": {"exact": 6, "normalised": 1, "scored": 1, "missed": 2}, "recorded": 0,
        "misses": [{"method": "GET", "url": "https://shop.example/<b>a.js", "score": 0.25}],
    });
    run.report_network(2, serde_json::from_value(network).unwrap());
    run.finish(2, Outcome::ReplayMiss);
    tab.wait_until(&chip("lost", 1)).await;
    let row = "wiki.example1060 %10 %10 %20 %";
    tab.wait_until(&format!(
        "[...document.querySelectorAll('.side tr')].some((row) => row.textContent === '{row}')"
    ))
    .await;
    tab.eval("location.hash = '#task=2'").await;
    tab.reload().await;
    tab.wait_until("document.querySelector('.drawer .misses')").await;
    let text = tab.text(".drawer").await;
    for expected in [
        "not in the archive",
        "replay: 6 exact, 1 normalised, 1 scored, 2 missed",
        "GET https://shop.example/<b>a.js",
        "most similar recording: 0.25",
        "and 1 more",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    }
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_shown_per_node() {
    common::require_built_pages();
    let run = FakeRun::new(4);
    let mut monitored = run.monitored();
    monitored.farm =
        Some(fake_run::farm(&[("http://10.0.0.1:8080", 8, 6), ("http://10.0.0.2:8080", 4, 4)]).await);
    let monitor = Monitor::start(monitored, ([127, 0, 0, 1], 0).into(), None).await.unwrap();
    let tab = open(&monitor).await;
    tab.wait_until("document.querySelectorAll('.nodes li').length === 2").await;
    let expected = json!("http://10.0.0.1:80806 in use · 2 free · 8 slots");
    tab.wait_until(&format!("document.querySelector('.nodes li').textContent === {expected}")).await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cell_is_reachable_by_keyboard() {
    common::require_built_pages();
    let run = FakeRun::new(40);
    run.enter_stage(2, 3, Stage::Policy);
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    tab.wait_until(&painted(2, "policy")).await;
    tab.press("g").await;
    tab.wait_until("document.activeElement.className === 'grid-box'").await;
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.wait_until("document.querySelector('[aria-live]').textContent.startsWith('Task 2: step 3, policy')")
        .await;
    tab.press("Enter").await;
    tab.wait_until("document.activeElement.textContent === 'Task 2'").await;
    tab.press("Escape").await;
    tab.wait_until("document.activeElement.className === 'grid-box'").await;
    tab.press("v").await;
    tab.wait_until("document.querySelector('.task-table')").await;
    tab.press("?").await;
    tab.wait_until("document.querySelector('dialog').open").await;
    tab.press("Escape").await;
    tab.wait_until("!document.querySelector('dialog').open").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_not_interpreted() {
    common::require_built_pages();
    let attack = "</script><img src=x onerror=\"window.taken=1\"><svg onload=window.taken=1>\u{202e}txet";
    let mut tasks: Vec<_> = (0..5).map(task).collect();
    for task in &mut tasks {
        task.task_name = attack.into();
        task.domain = attack.into();
        task.website = "javascript:window.taken=1".into();
    }
    let run = FakeRun::of(&tasks);
    run.record_page(1, &format!("https://a.example/?{attack}"), "nowhere.png");
    run.record_decision(1, attack, attack);
    run.record_failure(1, attack);
    run.enter_stage(1, 1, Stage::Policy);
    let monitor = run.monitor().await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#task=1&words={}", monitor.link(), "%3Cimg%20src=x%20onerror=window.taken=1%3E"))
        .await;
    for selector in [".drawer .action", ".drawer .task-name"] {
        tab.wait_until(&format!(
            "document.querySelector({}).textContent === {}",
            json!(selector),
            json!(attack)
        ))
        .await;
    }
    tab.visit(&format!("{}#as=table", monitor.link())).await;
    tab.reload().await;
    tab.wait_until("document.querySelectorAll('.task-table tbody tr').length === 5").await;
    tab.wait_until(&format!(
        "document.querySelector('.task-table tbody bdi').textContent === {}",
        json!(attack)
    ))
    .await;
    let injected = tab.eval("[typeof window.taken, document.querySelectorAll('img[src=x], .task-table svg, a[href^=javascript]').length]").await;
    assert_eq!(injected, json!(["undefined", 0]));
    // Characters that change the text direction affect only their own element.
    assert_eq!(
        tab.eval("getComputedStyle(document.querySelector('.task-table bdi')).unicodeBidi").await,
        "isolate"
    );
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_task_links_to_its_live_view() {
    common::require_built_pages();
    let run = FakeRun::new(3);
    let address = "http://127.0.0.1:7000/live/u:9000.secret";
    run.set_browser(1, Some(address));
    run.set_browser(2, Some("javascript:window.taken=1"));
    run.enter_stage(1, 1, Stage::Policy);
    run.enter_stage(2, 1, Stage::Policy);
    let monitor = run.monitor().await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#task=1", monitor.link())).await;
    tab.wait_until("document.querySelector('.drawer a.live')").await;
    let link = "(({ href, target, rel }) => [href, target, rel])(document.querySelector('.drawer a.live'))";
    assert_eq!(tab.eval(link).await, json!([address, "_blank", "noopener noreferrer"]));
    tab.assert_accessible("task with a live view").await;
    run.set_browser(1, None);
    run.enter_stage(1, 1, Stage::Reward);
    tab.wait_until("!document.querySelector('.drawer a.live')").await;
    tab.visit(&format!("{}#task=2", monitor.link())).await;
    tab.reload().await;
    tab.wait_until("document.querySelector('.drawer .task-name')").await;
    assert_eq!(tab.eval("document.querySelectorAll('.drawer a.live').length").await, 0, "not a web address");
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_no_serious_accessibility_violations() {
    common::require_built_pages();
    let folder = tempfile::tempdir().unwrap();
    let screenshot = folder.path().join("step_000.png");
    std::fs::write(&screenshot, STANDARD.decode(RED_PIXEL).unwrap()).unwrap();
    let run = FakeRun::new(60);
    for index in 0..30 {
        run.enter_stage(index, index, Stage::ALL[index % 13]);
    }
    run.record_page(6, "https://shop.example/", &screenshot);
    run.record_decision(6, "Click [7]", "the lamp is there");
    run.finish(0, Outcome::Success);
    let monitor = run.monitor().await;
    let tab = open(&monitor).await;
    for scheme in ["light", "dark"] {
        tab.set_colour_scheme(scheme).await;
        tab.visit("about:blank").await;
        tab.visit(&monitor.link()).await;
        tab.wait_until("document.querySelector('.run')").await;
        tab.assert_accessible(&format!("grid, {scheme}")).await;
        tab.press("v").await;
        tab.wait_until("document.querySelector('.task-table')").await;
        tab.assert_accessible(&format!("table, {scheme}")).await;
        tab.click(".task-table tbody tr:nth-child(7) button").await;
        tab.wait_until("document.querySelector('.drawer .screenshot')").await;
        tab.assert_accessible(&format!("task, {scheme}")).await;
        tab.set_size(390, 844, 1.0).await;
        tab.assert_accessible(&format!("phone, {scheme}")).await;
        tab.set_size(1280, 900, 1.0).await;
    }
    tab.assert_no_errors();
    tab.close().await;
}

async fn status(url: &str, bearer: Option<&str>) -> u16 {
    let mut request = client::http::client(url).unwrap().get(url);
    if let Some(token) = bearer {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_required_outside_loopback() {
    common::require_built_pages();
    let run = FakeRun::new(3);
    let monitor = Monitor::start(run.monitored(), ([0, 0, 0, 0], 0).into(), None).await.unwrap();
    let (_, token) = monitor
        .link()
        .split_once("?token=")
        .map(|(link, token)| (link.to_owned(), token.to_owned()))
        .unwrap();
    let root = format!("http://127.0.0.1:{}", monitor.address().port());
    for path in [
        "/",
        "/api/events",
        "/api/tasks",
        "/api/task/0",
        "/api/task/0/screenshot",
        "/metrics",
        "/status",
        "/assets/theme.js",
    ] {
        assert_eq!(status(&format!("{root}{path}"), None).await, 401, "{path}");
        assert_eq!(status(&format!("{root}{path}"), Some("wrong")).await, 401, "{path}");
    }
    assert_eq!(status(&format!("{root}/healthz"), None).await, 200);
    assert_eq!(status(&format!("{root}/metrics"), Some(&token)).await, 200);
    // The link signs the browser in, and the token is removed from the address bar.
    let tab = Tab::open().await;
    tab.visit(&format!("{root}/?token={token}")).await;
    tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab.wait_until("location.search === ''").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_works_behind_proxy_with_path_prefix() {
    common::require_built_pages();
    let run = FakeRun::new(12);
    let remote =
        Monitor::start(run.monitored(), ([127, 0, 0, 1], 0).into(), Some("secret-1".into())).await.unwrap();
    assert!(remote.link().ends_with("/?token=secret-1"));
    // The routes of `webgym monitor --url`, behind a proxy that removes the path prefix.
    let inner = relay(&remote.link(), None).unwrap();
    let proxy = Router::new().fallback(async move |mut request: Request| {
        let uri = request.uri().to_string();
        let Some(rest) = uri.strip_prefix("/tools/mon/") else {
            return axum::http::StatusCode::NOT_FOUND.into_response();
        };
        *request.uri_mut() = format!("/{rest}").parse().unwrap();
        inner.clone().oneshot(request).await.unwrap()
    });
    let server = server::serve(([127, 0, 0, 1], 0).into(), None, proxy).await.unwrap();
    let tab = Tab::open().await;
    tab.visit(&format!("{}tools/mon/", server.link())).await;
    tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab.wait_until(&chip("idle", 12)).await;
    run.record_decision(4, "Click [1]", "");
    run.enter_stage(4, 1, Stage::Execute);
    tab.wait_until(&chip("browser", 1)).await;
    tab.eval("location.hash = 'task=4'").await;
    tab.reload().await;
    tab.wait_until("document.querySelector('.drawer .action')?.textContent === 'Click [1]'").await;
    tab.assert_no_errors();
    // A raw socket, because HTTP clients normalise the path.
    let mut raw = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let request = "GET /tools/mon/api/%2e%2e/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    raw.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    raw.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    tab.close().await;
}
