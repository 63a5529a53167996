//! The live view in a real browser: a person watches a session, types into it and sees the result.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

#[path = "../../web/tests/common/mod.rs"]
mod common;

use common::Tab;
use serde_json::{Value, json};
use testkit::{Farm, Lease, Webgym};

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// A page whose title and background follow what is typed. Its texts look like markup.
const SESSION_PAGE: &str = "data:text/html,<title><img src=x onerror=parent.hacked=1></title><body style='margin:0;background:white'>\
     <input autofocus style='width:100%25;height:200px' oninput='document.title=this.value;document.body.style.background=`rgb(0,128,0)`'>\
     <script>console.log('<b>bold</b>'); console.error('broken')</script>";

async fn start() -> (Webgym, Farm, Lease) {
    let arguments = "serve 1 --master-port 0 --node-port 0 --allow-private-network";
    let webgym = Webgym::start(WEBGYM, &arguments.split(' ').collect::<Vec<_>>()).await;
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.execute(&lease, json!({"visit_page": {"url": SESSION_PAGE}})).await.ok();
    (webgym, farm, lease)
}

/// The colour at a place of the screencast, both from 0 to 1.
fn pixel(x: f64, y: f64) -> String {
    format!(
        "(() => {{ const screen = document.getElementById('screen'); \
         const copy = new OffscreenCanvas(1, 1).getContext('2d', {{ willReadFrequently: true }}); \
         copy.drawImage(screen, -Math.round(screen.width * {x}), -Math.round(screen.height * {y})); \
         return Array.from(copy.getImageData(0, 0, 1, 1).data); }})()"
    )
}

async fn click_screen(tab: &Tab, x: f64, y: f64) {
    let point = tab
        .eval(&format!(
            "(() => {{ const box = document.getElementById('screen').getBoundingClientRect(); \
             return [box.x + box.width * {x}, box.y + box.height * {y}]; }})()"
        ))
        .await;
    tab.click_at(point[0].as_f64().unwrap(), point[1].as_f64().unwrap()).await;
}

/// Waits until the last command of the bar has ended. Until then another one is refused, although the page may be there.
async fn wait_for_command(tab: &Tab) {
    tab.wait_until("!document.getElementById('bar').classList.contains('busy')").await;
}

/// Types an address into the bar.
async fn go_to(tab: &Tab, url: &str) {
    wait_for_command(tab).await;
    let script = "document.getElementById('url').focus(); document.getElementById('url').value = ";
    tab.eval(&format!("{script}{}", json!(url))).await;
    tab.press("Enter").await;
}

async fn metadata(farm: &Farm, lease: &Lease) -> Value {
    farm.execute(lease, json!({"get_page_metadata": {}})).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn person_types_into_a_session_and_sees_the_result() {
    let ((_webgym, farm, lease), tab) = tokio::join!(start(), Tab::open());
    tab.visit(&farm.live_control_url(&lease).await).await;
    tab.wait_until("document.getElementById('state').textContent === 'live'").await;
    tab.wait_until("document.getElementById('mode').textContent === 'you have control'").await;
    tab.wait_until("document.getElementById('title').textContent === '<img src=x onerror=parent.hacked=1>'")
        .await;
    tab.wait_until(&format!("{}.slice(0, 3).every((part) => part > 250)", pixel(0.5, 0.9))).await;
    click_screen(&tab, 0.5, 0.1).await;
    for key in ["h", "e", "l", "l", "o"] {
        tab.press(key).await;
    }
    tab.wait_until("document.getElementById('title').textContent === 'hello'").await;
    tab.wait_until(&format!(
        "(([red, green, blue]) => red < 40 && green > 90 && blue < 40)({})",
        pixel(0.5, 0.9)
    ))
    .await;
    assert_eq!(metadata(&farm, &lease).await["title"], "hello", "the session got the keys");
    go_to(&tab, "data:text/html,<title>second</title>").await;
    tab.wait_until("document.getElementById('title').textContent === 'second'").await;
    wait_for_command(&tab).await;
    tab.click("#back").await;
    tab.wait_until("document.getElementById('url').value.includes('autofocus')").await;
    // The address bar follows the rules of visits.
    go_to(&tab, "file:///etc/passwd").await;
    tab.wait_until("document.getElementById('notice').textContent.includes('file:')").await;
    farm.reset(&lease).await.ok();
    tab.wait_until("document.getElementById('state').textContent === 'ended'").await;
    tab.wait_until("document.getElementById('notice').textContent.includes('the lease has ended')").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_page_is_accessible_and_shows_text_as_text() {
    let ((_webgym, farm, lease), tab) = tokio::join!(start(), Tab::open());
    tab.visit(&farm.live_url(&lease).await).await;
    tab.wait_until("document.querySelectorAll('#console li').length >= 2").await;
    let console = "Array.from(document.querySelectorAll('#console li .untrusted:first-child'), (one) => one.textContent)";
    assert_eq!(tab.eval(console).await, json!(["<b>bold</b>", "broken"]));
    assert_eq!(tab.eval("document.querySelectorAll('#console b, #title img').length").await, 0);
    assert_eq!(tab.eval("window.hacked === undefined").await, true);
    tab.wait_until("document.getElementById('mode').textContent === 'read only'").await;
    assert_eq!(
        tab.eval("document.getElementById('url').readOnly && document.getElementById('back').disabled").await,
        true
    );
    click_screen(&tab, 0.5, 0.1).await;
    tab.press("x").await;
    for scheme in ["light", "dark"] {
        tab.set_colour_scheme(scheme).await;
        tab.assert_accessible(&format!("live view, {scheme}")).await;
    }
    tab.set_size(390, 844, 1.0).await;
    tab.assert_accessible("live view, phone").await;
    assert_eq!(
        metadata(&farm, &lease).await["title"],
        "<img src=x onerror=parent.hacked=1>",
        "nothing was typed"
    );
    tab.assert_no_errors();
    tab.close().await;
}
