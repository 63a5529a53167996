//! The monitor in a real Chromium: it shows what happens while it happens, can be filtered, looked into and driven by keys,
//! keeps hostile text text, and lets in only who may look.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
#[path = "common/play.rs"]
mod play;

use axum::{Router, extract::Request, response::IntoResponse};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use common::Tab;
use play::{Play, task};
use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;
use web::{
    monitor::{Monitor, relay},
    page,
};

/// One red pixel.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

async fn open(monitor: &Monitor) -> Tab {
    let tab = Tab::open().await;
    tab.visit(&monitor.link()).await;
    tab.until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab
}

/// True when the chip of a kind says so many.
fn chip(kind: &str, count: usize) -> String {
    format!("document.querySelector('.chip[data-kind={kind}] b').textContent === '{count}'")
}

/// Whether the middle of a cell has the colour of a kind: the grid itself, not what stands beside it. Near the corner,
/// where no letter is.
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
async fn the_grid_shows_what_happens_while_it_happens() {
    common::pages_are_built();
    let play = Play::new(40);
    let monitor = play.monitor().await;
    let tab = open(&monitor).await;
    tab.until(&chip("idle", 40)).await;
    tab.until(&painted(3, "idle")).await;
    play.at(3, 2, Stage::Policy);
    play.took(Stage::Policy, 1500);
    tab.until(&chip("policy", 1)).await;
    tab.until(&painted(3, "policy")).await;
    tab.until("document.querySelector('[data-stage=policy]').textContent === 'apolicy11.5 s1.5 s'").await;
    play.decides(3, "answer", "");
    play.ends(3, Outcome::Success);
    play.ends(4, Outcome::InfraLost);
    tab.until(&chip("success", 1)).await;
    tab.until(&chip("lost", 1)).await;
    tab.until(&painted(3, "success")).await;
    tab.until("document.querySelector('[role=progressbar]').ariaValueText === '2 of 40 tasks are over'")
        .await;
    tab.assert_no_trouble();
    drop(monitor);
    tab.until("document.querySelector('[data-status=over]')").await;
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_are_filtered_by_state_domain_difficulty_and_words() {
    common::pages_are_built();
    let play = Play::new(50);
    (0..7).for_each(|index| play.at(index, 1, Stage::Policy));
    let monitor = play.monitor().await;
    let tab = open(&monitor).await;
    let shown =
        |count: usize| format!("document.querySelector('.grid-box').ariaLabel.startsWith('{count} tasks')");
    tab.until(&shown(50)).await;
    tab.click(".chip[data-kind=policy]").await;
    tab.until(&shown(7)).await;
    // Cells come and go with their state.
    play.at(20, 1, Stage::Policy);
    tab.until(&shown(8)).await;
    let choose = |label: &str, value: &str| {
        format!(
            "(() => {{ const select = [...document.querySelectorAll('label')].find((one) => one.textContent.startsWith('{label}')).querySelector('select'); \
             select.value = '{value}'; select.dispatchEvent(new Event('change', {{bubbles: true}})); return select.value; }})()"
        )
    };
    assert_eq!(tab.js(&choose("Domain", "Shopping")).await, "Shopping");
    tab.until(&shown(3)).await;
    tab.until("location.hash === '#state=policy&domain=Shopping'").await;
    // The address alone brings the same back.
    tab.reload().await;
    tab.until(&shown(3)).await;
    tab.click(".chip[data-kind=policy]").await;
    tab.until(&shown(10)).await;
    tab.js(&choose("Difficulty", "hard")).await;
    let hard = (0..50).map(task).filter(|task| task.domain == "Shopping" && task.difficulty >= 7).count();
    tab.until(&shown(hard)).await;
    tab.click(".views button:nth-child(2)").await;
    tab.until(&format!("document.querySelectorAll('.task-table tbody tr').length === {hard}")).await;
    tab.click("input[type=search]").await;
    tab.type_text("no such lamp").await;
    tab.until("document.querySelector('.pager').textContent.includes('No task passes the filter')").await;
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_opens_its_task_which_stays_live() {
    common::pages_are_built();
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("step_000.png");
    std::fs::write(&picture, STANDARD.decode(DOT).unwrap()).unwrap();
    let play = Play::new(40);
    play.sees(5, "https://shop.example/lamps", &picture);
    play.decides(5, "Click [7]", "the lamp is there");
    play.at(5, 1, Stage::Execute);
    let monitor = play.monitor().await;
    let tab = open(&monitor).await;
    tab.until(&painted(5, "browser")).await;
    let corner = tab.js("(() => { const box = document.querySelector('.grid-box canvas').getBoundingClientRect(); return [box.x, box.y]; })()").await;
    tab.click_at(corner[0].as_f64().unwrap() + 5.5 * 64.0, corner[1].as_f64().unwrap() + 32.0).await;
    tab.until("document.querySelector('.drawer .task-name')").await;
    let text = tab.text(".drawer").await;
    for words in [
        "Task 5",
        "step 1 · execute",
        "Find the 6th lamp",
        "https://shop.example/",
        "Click [7]",
        "the lamp is there",
        "waits for a browser",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    tab.until("document.querySelector('.drawer .screenshot').naturalWidth === 1").await;
    play.sees(5, "https://shop.example/lamps/7", &picture);
    play.decides(5, "Answer [39.90]", "");
    play.at(5, 2, Stage::Policy);
    tab.until("document.querySelectorAll('.steps li').length === 2 && document.querySelector('.drawer').textContent.includes('/lamps/7')").await;
    tab.until("document.querySelector('.drawer .screenshot').src.endsWith('picture?v=2')").await;
    play.ends(5, Outcome::Failure);
    tab.until("document.querySelector('.drawer .badge').textContent === 'not solved'").await;
    tab.press("Escape").await;
    tab.until("!document.querySelector('.drawer')").await;
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_shown_by_node() {
    common::pages_are_built();
    let play = Play::new(4);
    let mut watched = play.watched();
    watched.farm = Some(play::farm(&[("http://10.0.0.1:8080", 8, 6), ("http://10.0.0.2:8080", 4, 4)]).await);
    let monitor = Monitor::start(watched, ([127, 0, 0, 1], 0).into(), None).await.unwrap();
    let tab = open(&monitor).await;
    tab.until("document.querySelectorAll('.nodes li').length === 2").await;
    let said = json!("http://10.0.0.1:80806 in use · 2 free · 8 slots");
    tab.until(&format!("document.querySelector('.nodes li').textContent === {said}")).await;
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_alone_reach_every_cell() {
    common::pages_are_built();
    let play = Play::new(40);
    play.at(2, 3, Stage::Policy);
    let monitor = play.monitor().await;
    let tab = open(&monitor).await;
    tab.until(&painted(2, "policy")).await;
    tab.press("g").await;
    tab.until("document.activeElement.className === 'grid-box'").await;
    tab.press("ArrowRight").await;
    tab.press("ArrowRight").await;
    tab.until("document.querySelector('[aria-live]').textContent.startsWith('Task 2: step 3, policy')").await;
    tab.press("Enter").await;
    tab.until("document.activeElement.textContent === 'Task 2'").await;
    tab.press("Escape").await;
    tab.until("document.activeElement.className === 'grid-box'").await;
    tab.press("v").await;
    tab.until("document.querySelector('.task-table')").await;
    tab.press("?").await;
    tab.until("document.querySelector('dialog').open").await;
    tab.press("Escape").await;
    tab.until("!document.querySelector('dialog').open").await;
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_stays_text() {
    common::pages_are_built();
    let attack = "</script><img src=x onerror=\"window.taken=1\"><svg onload=window.taken=1>\u{202e}txet";
    let mut tasks: Vec<_> = (0..5).map(task).collect();
    for task in &mut tasks {
        task.task_name = attack.into();
        task.domain = attack.into();
        task.website = "javascript:window.taken=1".into();
    }
    let play = Play::of(&tasks);
    play.sees(1, &format!("https://a.example/?{attack}"), "nowhere.png");
    play.decides(1, attack, attack);
    play.board_trouble(1, attack);
    play.at(1, 1, Stage::Policy);
    let monitor = play.monitor().await;
    let tab = Tab::open().await;
    tab.visit(&format!("{}#task=1&words={}", monitor.link(), "%3Cimg%20src=x%20onerror=window.taken=1%3E"))
        .await;
    for place in [".drawer .action", ".drawer .task-name"] {
        tab.until(&format!("document.querySelector({}).textContent === {}", json!(place), json!(attack)))
            .await;
    }
    tab.visit(&format!("{}#as=table", monitor.link())).await;
    tab.reload().await;
    tab.until("document.querySelectorAll('.task-table tbody tr').length === 5").await;
    tab.until(&format!("document.querySelector('.task-table tbody bdi').textContent === {}", json!(attack)))
        .await;
    let inside = tab.js("[typeof window.taken, document.querySelectorAll('img[src=x], .task-table svg, a[href^=javascript]').length]").await;
    assert_eq!(inside, json!(["undefined", 0]));
    // What turns the direction of text does not get out of its own.
    assert_eq!(
        tab.js("getComputedStyle(document.querySelector('.task-table bdi')).unicodeBidi").await,
        "isolate"
    );
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_serious() {
    common::pages_are_built();
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("step_000.png");
    std::fs::write(&picture, STANDARD.decode(DOT).unwrap()).unwrap();
    let play = Play::new(60);
    for index in 0..30 {
        play.at(index, index, Stage::ALL[index % 13]);
    }
    play.sees(6, "https://shop.example/", &picture);
    play.decides(6, "Click [7]", "the lamp is there");
    play.ends(0, Outcome::Success);
    let monitor = play.monitor().await;
    let tab = open(&monitor).await;
    for scheme in ["light", "dark"] {
        tab.scheme(scheme).await;
        tab.visit("about:blank").await;
        tab.visit(&monitor.link()).await;
        tab.until("document.querySelector('.run')").await;
        tab.assert_accessible(&format!("the grid, {scheme}")).await;
        tab.press("v").await;
        tab.until("document.querySelector('.task-table')").await;
        tab.assert_accessible(&format!("the table, {scheme}")).await;
        tab.click(".task-table tbody tr:nth-child(7) button").await;
        tab.until("document.querySelector('.drawer .screenshot')").await;
        tab.assert_accessible(&format!("a task, {scheme}")).await;
        tab.size(390, 844, 1.0).await;
        tab.assert_accessible(&format!("on a phone, {scheme}")).await;
        tab.size(1280, 900, 1.0).await;
    }
    tab.assert_no_trouble();
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
async fn beyond_loopback_a_token_is_needed() {
    common::pages_are_built();
    let play = Play::new(3);
    let monitor = Monitor::start(play.watched(), ([0, 0, 0, 0], 0).into(), None).await.unwrap();
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
        "/api/task/0/picture",
        "/metrics",
        "/status",
        "/assets/theme.js",
    ] {
        assert_eq!(status(&format!("{root}{path}"), None).await, 401, "{path}");
        assert_eq!(status(&format!("{root}{path}"), Some("wrong")).await, 401, "{path}");
    }
    assert_eq!(status(&format!("{root}/healthz"), None).await, 200);
    assert_eq!(status(&format!("{root}/metrics"), Some(&token)).await, 200);
    // The link lets a browser in, and the token does not stay in its address.
    let tab = Tab::open().await;
    tab.visit(&format!("{root}/?token={token}")).await;
    tab.until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab.until("location.search === ''").await;
    tab.assert_no_trouble();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_elsewhere_is_shown_behind_a_proxy_under_a_path() {
    common::pages_are_built();
    let play = Play::new(12);
    let run =
        Monitor::start(play.watched(), ([127, 0, 0, 1], 0).into(), Some("secret-1".into())).await.unwrap();
    assert!(run.link().ends_with("/?token=secret-1"));
    // What `webgym monitor --url` serves, behind a proxy that takes its prefix away.
    let inner = relay(&run.link(), None).unwrap();
    let proxy = Router::new().fallback(async move |mut request: Request| {
        let uri = request.uri().to_string();
        let Some(rest) = uri.strip_prefix("/tools/mon/") else {
            return axum::http::StatusCode::NOT_FOUND.into_response();
        };
        *request.uri_mut() = format!("/{rest}").parse().unwrap();
        inner.clone().oneshot(request).await.unwrap()
    });
    let place = page::serve(([127, 0, 0, 1], 0).into(), None, proxy).await.unwrap();
    let tab = Tab::open().await;
    tab.visit(&format!("{}tools/mon/", place.link())).await;
    tab.until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
    tab.until(&chip("idle", 12)).await;
    play.decides(4, "Click [1]", "");
    play.at(4, 1, Stage::Execute);
    tab.until(&chip("browser", 1)).await;
    tab.js("location.hash = 'task=4'").await;
    tab.reload().await;
    tab.until("document.querySelector('.drawer .action')?.textContent === 'Click [1]'").await;
    tab.assert_no_trouble();
    // Not through a client that would tidy the path up first.
    let mut raw = tokio::net::TcpStream::connect(place.address()).await.unwrap();
    let request = "GET /tools/mon/api/%2e%2e/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    raw.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    raw.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    tab.close().await;
}
