//! Pending calls when their session ends: each fails at once with the reason, and none stays registered.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use cdp::{CallError, NoParams, SessionEnd, protocol as p};
use common::{KINDS, MAX_WAIT, PROMPT_TIMEOUT, TestBrowser, evaluate, main_process, renderers, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn killed_browser_fails_pending_and_later_calls() {
    for kind in KINDS {
        let browser = TestBrowser::start(kind).await;
        let calls: Vec<_> = (0..20).map(|_| browser.call_busy_loop()).collect();
        signal(main_process(&browser.process), Signal::KILL);
        let killed = Instant::now();
        for call in calls {
            let error = call.within(MAX_WAIT).await.unwrap_err();
            assert!(matches!(error.session_end(), Some(SessionEnd::BrowserExited(_))), "{error}");
        }
        assert!(killed.elapsed() < PROMPT_TIMEOUT, "{kind}: {:?}", killed.elapsed());
        for session in [browser.page.clone(), browser.process.connection().root()] {
            let error = evaluate(&session, "1").await.unwrap_err();
            assert!(matches!(error.session_end(), Some(SessionEnd::BrowserExited(_))), "{error}");
        }
        assert!(browser.process.connection().close_reason().is_some());
        assert!(matches!(browser.process.connection().wait_closed().await, SessionEnd::BrowserExited(_)));
        assert_eq!(browser.process.connection().pending_calls(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_renderer_fails_only_its_page() {
    for kind in KINDS {
        for by_signal in [false, true] {
            let browser = TestBrowser::start(kind).await;
            let call = if by_signal { browser.call_busy_loop() } else { browser.call_unresolved_promise() };
            if by_signal {
                for pid in renderers(&browser.process) {
                    signal(pid, Signal::KILL);
                }
            } else {
                browser.page.send_no_reply(p::PAGE_CRASH, &json!({}));
            }
            let killed = Instant::now();
            let error = call.within(MAX_WAIT).await.unwrap_err();
            assert_eq!(error.session_end(), Some(&SessionEnd::Crashed), "{kind}: {error}");
            assert!(killed.elapsed() < PROMPT_TIMEOUT, "{kind}: {:?}", killed.elapsed());
            let error = evaluate(&browser.page, "1").await.unwrap_err();
            assert_eq!(error.session_end(), Some(&SessionEnd::Crashed), "{kind}: {error}");
            let root = browser.process.connection().root();
            root.call::<_, Value>(p::BROWSER_GET_VERSION, &NoParams {}).await.unwrap();
            browser.process.kill().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_target_fails_its_pending_calls() {
    for kind in KINDS {
        let browser = TestBrowser::start(kind).await;
        let root = browser.process.connection().root();
        let call = browser.call_unresolved_promise();
        // A second page, because the full browser exits with its last window.
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        root.send_no_reply(p::TARGET_CLOSE_TARGET, &json!({"targetId": browser.target}));
        let error = call.within(PROMPT_TIMEOUT).await.unwrap_err();
        assert!(
            matches!(error.session_end(), Some(SessionEnd::Detached)) || error.rejection().is_some(),
            "{kind}: {error}"
        );
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            match evaluate(&browser.page, "1").await {
                Err(error) if error.session_end() == Some(&SessionEnd::Detached) => break,
                other => assert!(Instant::now() < deadline, "{kind}: {other:?}"),
            }
        }
        browser.process.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_browser_fails_calls_at_deadline() {
    for kind in KINDS {
        let browser = TestBrowser::start(kind).await;
        let pid = main_process(&browser.process);
        signal(pid, Signal::STOP);
        let started = Instant::now();
        let timeout = Duration::from_millis(400);
        let call = browser.page.send(p::RUNTIME_EVALUATE, &json!({"expression": "1"}));
        let error = call.within(timeout).await.unwrap_err();
        assert!(matches!(error, CallError::Deadline { .. }), "{error}");
        assert!(
            started.elapsed() >= timeout && started.elapsed() < timeout + PROMPT_TIMEOUT,
            "{:?}",
            started.elapsed()
        );
        signal(pid, Signal::CONT);
        let reply = evaluate(&browser.page, "6 * 7").await.unwrap();
        assert_eq!(reply["result"]["value"], 42, "the late reply was taken for this one");
        assert_eq!(browser.process.connection().pending_calls(), 0);
        browser.process.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_calls_are_removed() {
    let browser = TestBrowser::start(KINDS[0]).await;
    let connection = browser.process.connection().clone();
    let before = connection.pending_calls();
    let calls: Vec<_> = (0..10).map(|_| browser.call_busy_loop()).collect();
    assert_eq!(connection.pending_calls(), before + 10);
    drop(calls);
    assert_eq!(connection.pending_calls(), before);
    let waiting = tokio::spawn(browser.call_busy_loop().within(MAX_WAIT));
    while connection.pending_calls() == before {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    let _ = waiting.await;
    assert_eq!(connection.pending_calls(), before);
    browser.process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejection_contains_browser_message() {
    let browser = TestBrowser::start(KINDS[0]).await;
    let error = browser.page.run(p::PAGE_NAVIGATE, &json!({"url": 5})).await.unwrap_err();
    assert!(matches!(error, CallError::Rejected { .. }) && error.rejection().is_some(), "{error}");
    assert!(error.to_string().contains("Page.navigate"), "{error}");
    browser.process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_replies_and_invalid_text_arrive() {
    for kind in KINDS {
        let browser = TestBrowser::start(kind).await;
        let reply = evaluate(&browser.page, "'x'.repeat(20_000_000) + '\\ud83c' + 'é🌍'").await.unwrap();
        let text = reply["result"]["value"].as_str().unwrap();
        assert_eq!(text.len(), 20_000_000 + 3 + 2 + 4);
        assert!(text.ends_with("x\u{fffd}é🌍"));
        browser.process.kill().await;
    }
}
