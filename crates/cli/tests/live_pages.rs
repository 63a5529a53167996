//! Pages in a real browser: the monitor of a running demo, locally and through `webgym monitor`, the master's page, and the description of the API.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

#[path = "../../web/tests/common/mod.rs"]
mod common;

use std::process::Stdio;

use common::Tab;
use testkit::Webgym;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
};

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// Returns the URL in the first line with this text. The rest is read too, so that the process does not block on output.
async fn find_url(stream: impl AsyncRead + Unpin + Send + 'static, text: &str) -> String {
    let mut lines = BufReader::new(stream).lines();
    let mut output = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains(text) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return line.split_whitespace().last().unwrap().to_owned();
        }
        output.push(line);
    }
    panic!("no line with {text:?} in {output:?}");
}

fn webgym(arguments: &[&str]) -> Child {
    let mut command = Command::new(WEBGYM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).spawn().unwrap()
}

async fn open_monitor(tab: &Tab, link: &str) {
    tab.visit(link).await;
    tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_run_is_shown_live_locally_and_remotely() {
    common::require_built_pages();
    let folder = tempfile::tempdir().unwrap();
    let tab = Tab::open().await;
    let mut demo =
        webgym(&["demo", "--out", folder.path().to_str().unwrap(), "--tasks", "16", "--instances", "2"]);
    let link = find_url(demo.stderr.take().unwrap(), "watch this run at").await;
    open_monitor(&tab, &format!("{link}#task=0")).await;
    // The screenshots and steps of the first task arrive.
    tab.wait_until("document.querySelector('.drawer .screenshot')?.naturalWidth > 500").await;
    tab.wait_until("document.querySelectorAll('.steps li').length > 0").await;
    tab.wait_until("document.querySelectorAll('.nodes li').length === 1").await;
    tab.wait_until("Number(document.querySelector('[role=progressbar]').ariaValueNow) >= 2").await;
    let mut proxy = webgym(&["monitor", "--url", &link, "--port", "0"]);
    let proxied = find_url(proxy.stdout.take().unwrap(), "Watching").await;
    assert_ne!(proxied, link);
    open_monitor(&tab, &proxied).await;
    tab.wait_until("Number(document.querySelector('[role=progressbar]').ariaValueNow) >= 4").await;
    tab.assert_no_errors();
    tab.close().await;
    proxy.kill().await.unwrap();
    demo.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn master_page_shows_its_nodes() {
    let farm = Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0"]).await;
    let tab = Tab::open().await;
    tab.visit(&farm.url("master")).await;
    tab.wait_until("document.getElementById('state').textContent === 'live'").await;
    tab.wait_until("document.querySelectorAll('#nodes tr').length === 1").await;
    let row = tab.text("#nodes tr").await;
    assert!(row.starts_with(&farm.url("node")) && row.ends_with("healthy"), "{row}");
    assert!(row.contains(env!("CARGO_PKG_VERSION")), "{row}");
    tab.assert_accessible("the master's page").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_pages_describe_every_call() {
    let farm = Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0"]).await;
    let tab = Tab::open().await;
    for tier in [farm.master(), farm.node()] {
        let api = tier.http.get("/openapi.json", &[]).await.ok();
        let methods = api["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
        let calls = methods.sum::<usize>();
        tab.visit(&format!("{}/docs", tier.http.base())).await;
        tab.wait_until(&format!("document.querySelectorAll('details').length === {calls}")).await;
        let described = tab.text("#main").await;
        assert!(described.contains("/step") && described.contains("/files/{name}"), "{described}");
    }
    tab.assert_no_errors();
    tab.close().await;
}
