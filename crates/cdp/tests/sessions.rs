//! Calls on their way when the other side goes: each fails at once, with the reason, and nothing is left waiting.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use cdp::{CallError, Gone, NoParams, protocol as p};
use common::{AT_ONCE, IN_THE_END, KINDS, Stand, evaluate, main_process, renderers, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_fails_every_pending_call_and_every_later_one() {
    for kind in KINDS {
        let stand = Stand::start(kind).await;
        let calls: Vec<_> = (0..20).map(|_| stand.spin()).collect();
        signal(main_process(&stand.process), Signal::KILL);
        let killed = Instant::now();
        for call in calls {
            let error = call.within(IN_THE_END).await.unwrap_err();
            assert!(matches!(error.gone(), Some(Gone::Browser(_))), "{error}");
        }
        assert!(killed.elapsed() < AT_ONCE, "{kind}: {:?}", killed.elapsed());
        for session in [stand.page.clone(), stand.process.connection().root()] {
            let error = evaluate(&session, "1").await.unwrap_err();
            assert!(matches!(error.gone(), Some(Gone::Browser(_))), "{error}");
        }
        assert!(stand.process.connection().dead().is_some());
        assert!(matches!(stand.process.connection().died().await, Gone::Browser(_)));
        assert_eq!(stand.process.connection().pending(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_that_dies_fails_its_page_only() {
    for kind in KINDS {
        for by_hand in [false, true] {
            let stand = Stand::start(kind).await;
            let call = if by_hand { stand.spin() } else { stand.wait() };
            if by_hand {
                for pid in renderers(&stand.process) {
                    signal(pid, Signal::KILL);
                }
            } else {
                stand.page.tell(p::PAGE_CRASH, &json!({}));
            }
            let killed = Instant::now();
            let error = call.within(IN_THE_END).await.unwrap_err();
            assert_eq!(error.gone(), Some(&Gone::Crashed), "{kind}: {error}");
            assert!(killed.elapsed() < AT_ONCE, "{kind}: {:?}", killed.elapsed());
            let error = evaluate(&stand.page, "1").await.unwrap_err();
            assert_eq!(error.gone(), Some(&Gone::Crashed), "{kind}: {error}");
            let root = stand.process.connection().root();
            root.call::<_, Value>(p::BROWSER_GET_VERSION, &NoParams {}).await.unwrap();
            stand.process.kill().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_target_fails_what_waits_on_it() {
    for kind in KINDS {
        let stand = Stand::start(kind).await;
        let root = stand.process.connection().root();
        let call = stand.wait();
        // A second page, so that the full browser does not lose its last window.
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        root.tell(p::TARGET_CLOSE_TARGET, &json!({"targetId": stand.target}));
        let error = call.within(AT_ONCE).await.unwrap_err();
        assert!(matches!(error.gone(), Some(Gone::Detached)) || error.refusal().is_some(), "{kind}: {error}");
        let end = Instant::now() + IN_THE_END;
        loop {
            match evaluate(&stand.page, "1").await {
                Err(error) if error.gone() == Some(&Gone::Detached) => break,
                other => assert!(Instant::now() < end, "{kind}: {other:?}"),
            }
        }
        stand.process.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_stands_still_is_waited_for_until_the_deadline_and_no_longer() {
    for kind in KINDS {
        let stand = Stand::start(kind).await;
        let pid = main_process(&stand.process);
        signal(pid, Signal::STOP);
        let begun = Instant::now();
        let limit = Duration::from_millis(400);
        let call = stand.page.send(p::RUNTIME_EVALUATE, &json!({"expression": "1"}));
        let error = call.within(limit).await.unwrap_err();
        assert!(matches!(error, CallError::Deadline { .. }), "{error}");
        assert!(begun.elapsed() >= limit && begun.elapsed() < limit + AT_ONCE, "{:?}", begun.elapsed());
        signal(pid, Signal::CONT);
        let answer = evaluate(&stand.page, "6 * 7").await.unwrap();
        assert_eq!(answer["result"]["value"], 42, "the late answer is not mistaken for this one");
        assert_eq!(stand.process.connection().pending(), 0);
        stand.process.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_walks_away_leaves_nothing_behind() {
    let stand = Stand::start(KINDS[0]).await;
    let connection = stand.process.connection().clone();
    let before = connection.pending();
    let calls: Vec<_> = (0..10).map(|_| stand.spin()).collect();
    assert_eq!(connection.pending(), before + 10);
    drop(calls);
    assert_eq!(connection.pending(), before);
    let waiting = tokio::spawn(stand.spin().within(IN_THE_END));
    while connection.pending() == before {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    let _ = waiting.await;
    assert_eq!(connection.pending(), before);
    stand.process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_in_the_browsers_own_words() {
    let stand = Stand::start(KINDS[0]).await;
    let error = stand.page.run(p::PAGE_NAVIGATE, &json!({"url": 5})).await.unwrap_err();
    assert!(matches!(error, CallError::Rejected { .. }) && error.refusal().is_some(), "{error}");
    assert!(error.to_string().contains("Page.navigate"), "{error}");
    stand.process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_any_size_and_any_text_arrive() {
    for kind in KINDS {
        let stand = Stand::start(kind).await;
        let answer = evaluate(&stand.page, "'x'.repeat(20_000_000) + '\\ud83c' + 'é🌍'").await.unwrap();
        let text = answer["result"]["value"].as_str().unwrap();
        assert_eq!(text.len(), 20_000_000 + 3 + 2 + 4);
        assert!(text.ends_with("x\u{fffd}é🌍"));
        stand.process.kill().await;
    }
}
