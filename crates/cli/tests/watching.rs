//! Watching the real thing: the monitor of a demo run while it goes on, the same from elsewhere, and the farm's own page.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

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

/// The address in the first line that has these words; what follows is read on, so that nobody waits for us.
async fn address(stream: impl AsyncRead + Unpin + Send + 'static, words: &str) -> String {
    let mut lines = BufReader::new(stream).lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains(words) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return line.split_whitespace().last().unwrap().to_owned();
        }
        said.push(line);
    }
    panic!("nobody said {words:?}: {said:?}");
}

fn webgym(arguments: &[&str]) -> Child {
    let mut command = Command::new(WEBGYM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).spawn().unwrap()
}

async fn live(tab: &Tab, link: &str) {
    tab.visit(link).await;
    tab.wait_until("document.querySelector('[data-status=live]') && document.querySelector('.run')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_run_is_watched_while_it_goes_on_here_and_from_elsewhere() {
    common::require_built_pages();
    let folder = tempfile::tempdir().unwrap();
    let tab = Tab::open().await;
    let mut demo =
        webgym(&["demo", "--out", folder.path().to_str().unwrap(), "--tasks", "16", "--instances", "2"]);
    let link = address(demo.stderr.take().unwrap(), "watch this run at").await;
    live(&tab, &format!("{link}#task=0")).await;
    // The first task's own screenshots arrive, and its steps.
    tab.wait_until("document.querySelector('.drawer .screenshot')?.naturalWidth > 500").await;
    tab.wait_until("document.querySelectorAll('.steps li').length > 0").await;
    tab.wait_until("document.querySelectorAll('.nodes li').length === 1").await;
    tab.wait_until("Number(document.querySelector('[role=progressbar]').ariaValueNow) >= 2").await;
    let mut elsewhere = webgym(&["monitor", "--url", &link, "--port", "0"]);
    let passed_on = address(elsewhere.stdout.take().unwrap(), "Watching").await;
    assert_ne!(passed_on, link);
    live(&tab, &passed_on).await;
    tab.wait_until("Number(document.querySelector('[role=progressbar]').ariaValueNow) >= 4").await;
    tab.assert_no_errors();
    tab.close().await;
    elsewhere.kill().await.unwrap();
    demo.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_has_a_page_of_its_own() {
    let farm = Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0"]).await;
    let tab = Tab::open().await;
    tab.visit(&farm.url("master")).await;
    tab.wait_until("document.getElementById('state').textContent === 'live'").await;
    tab.wait_until("document.querySelectorAll('#nodes tr').length === 1").await;
    let row = tab.text("#nodes tr").await;
    assert!(row.starts_with(&farm.url("node")) && row.ends_with("healthy"), "{row}");
    assert!(row.contains(env!("CARGO_PKG_VERSION")), "{row}");
    tab.assert_accessible("the farm's page").await;
    tab.assert_no_errors();
    tab.close().await;
}
