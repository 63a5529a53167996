//! Deterministic sessions: the same actions give the same observations, whatever else the machine does meanwhile.

use browser::{DETERMINISM_FLAG, Determinism, Host, Instance, Launch, ObserveRequest, Options};
use proto::{Command, InteractionMode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::common::{
    fixture::{Fixture, executable, session_options, with_fixture},
    tester::Tester,
    virtual_site,
};

const START_MS: f64 = 1_700_000_000_000.0;

fn options(session: &Value, seed: u32) -> Options {
    Options { determinism: Some(Determinism { start_ms: START_MS, seed }), ..session_options(session) }
}

/// The browser of these tests. It ends with the test binary, like that of the others.
async fn host() -> &'static Host {
    static HOST: OnceCell<Host> = OnceCell::const_new();
    let launch = || async {
        let mut launch = Launch::new(executable(crate::KIND));
        launch.extra_flags.push(DETERMINISM_FLAG.to_owned());
        Host::launch(&launch).await.expect("the browser starts")
    };
    HOST.get_or_init(launch).await
}

async fn tester(fixture: &'static Fixture, session: &Value, seed: u32) -> Tester {
    let instance = host().await.instance(&options(session, seed)).await.expect("an instance");
    Tester::new(instance, &fixture.sites)
}

/// What an agent sees.
#[derive(PartialEq)]
struct Seen {
    action: String,
    tree: String,
    text: Value,
    metadata: Value,
    screenshot: Vec<u8>,
}

async fn see(instance: &mut Instance, action: &str) -> Seen {
    let request = ObserveRequest {
        metadata: true,
        elements: true,
        ..ObserveRequest::screenshot(InteractionMode::Coordinates)
    };
    let observation = instance.observe(&request).await.expect("an observation");
    let text = instance.execute(&Command::GetWebpageText { n_lines: 200 }).await.expect("text");
    Seen {
        action: action.to_owned(),
        tree: observation.elements.expect("elements").ac_tree(),
        text,
        metadata: serde_json::to_value(observation.metadata).expect("metadata"),
        screenshot: observation.screenshot.expect("a screenshot").bytes.to_vec(),
    }
}

/// An action: a command as JSON, and the selector of the element that it acts on, if any.
type Action = (&'static str, &'static str);

/// Runs the actions; between them the session of `noise` works, which takes an arbitrary time. Once it takes so long that
/// the virtual clock falls behind the real one.
async fn run(tester: &mut Tester, site: &str, actions: &[Action], noise: &mut Tester) -> Vec<Seen> {
    let mut seen = Vec::new();
    for (index, (command, selector)) in actions.iter().enumerate() {
        let mut command: Value =
            serde_json::from_str(&command.replace("SITE", site)).expect("a command as JSON");
        if !selector.is_empty() {
            let id = tester.mark(selector).await;
            let arguments = command.as_object_mut().and_then(|command| command.values_mut().next());
            arguments.expect("arguments")["id"] = id.into();
        }
        tester.run(command.clone()).await;
        seen.push(see(&mut tester.instance, &command.to_string()).await);
        let page = if index == 2 { "/course/settle/raf" } else { "/course/settle/nothing" };
        for _ in 0..index % 3 {
            noise.visit(page).await;
        }
    }
    seen
}

fn assert_same(first: &[Seen], second: &[Seen]) {
    assert_eq!(first.len(), second.len());
    for (first, second) in first.iter().zip(second) {
        assert_eq!(first.text, second.text, "{}", first.action);
        assert_eq!(first.tree, second.tree, "{}", first.action);
        assert_eq!(first.metadata, second.metadata, "{}", first.action);
        if first.screenshot != second.screenshot {
            let folder = std::env::temp_dir();
            for (name, seen) in [("first.png", first), ("second.png", second)] {
                std::fs::write(folder.join(name), &seen.screenshot).expect("writing a screenshot");
            }
            panic!("the screenshots differ after {}; see {}", first.action, folder.display());
        }
    }
}

const VISIT: &str = r#"{"visit_page": {"url": "http://127.0.0.1:SITE/"}}"#;
const ACTIONS: &[Action] = &[
    (VISIT, ""),
    (r#"{"click_id": {}}"#, "#go"),
    (r#"{"fill_id": {"value": "hello", "press_enter": false}}"#, "#field"),
    (r#"{"click_id": {}}"#, "#go"),
    (r#"{"sleep": {"duration": 2.5}}"#, ""),
    (r#"{"click_id": {}}"#, "#jump"),
    (r#"{"page_up": {"full_page": true}}"#, ""),
    (r#"{"keypress": {"keys": ["home"]}}"#, ""),
    (r#"{"click_id": {}}"#, "#away"),
    (r#"{"click_id": {}}"#, "#more"),
    (r#"{"back": {}}"#, ""),
    (r#"{"click_id": {}}"#, "#go"),
];

/// Runs the actions in several sessions, some of them at the same time.
async fn repeat(fixture: &'static Fixture, session: &Value, actions: &[Action]) -> Vec<Vec<Seen>> {
    let site = virtual_site::start().await.port().to_string();
    let mut runs = Vec::new();
    for _ in 0..2 {
        let concurrent = async || {
            let mut noise = Tester::new(
                fixture.host.instance(&Options::default()).await.expect("an instance"),
                &fixture.sites,
            );
            let mut tester = tester(fixture, session, 7).await;
            let seen = run(&mut tester, &site, actions, &mut noise).await;
            tester.instance.dispose().await.expect("disposing");
            noise.instance.dispose().await.expect("disposing");
            seen
        };
        let (first, second) = tokio::join!(concurrent(), concurrent());
        runs.extend([first, second]);
    }
    runs
}

#[test]
fn same_actions_give_same_observations() {
    with_fixture(async |fixture| {
        let runs = Box::pin(repeat(fixture, &json!({}), ACTIONS)).await;
        for other in &runs[1..] {
            assert_same(&runs[0], other);
        }
        let last = runs[0].last().expect("observations").text.to_string();
        for part in [
            "random 0.",
            "uuid ",
            "Nov 14 2023",
            "GMT+0000",
            "[native code]",
            "data of /data?0.",
            "worker go ",
            "worker later",
            "width ended at",
            "idle 17",
        ] {
            assert!(last.contains(part), "{part:?} is not in {last}");
        }
        let filled = runs[0][2].text.to_string();
        assert!(filled.contains("field hello") && filled.contains("faded at"), "{filled}");
        assert!(runs[0][5].text.to_string().contains("seen true"), "smooth scrolling ends at once");
    });
}

#[test]
fn open_event_stream_does_not_stop_the_clock() {
    const ACTIONS: &[Action] = &[
        (r#"{"visit_page": {"url": "http://127.0.0.1:SITE/stream"}}"#, ""),
        (r#"{"click_id": {}}"#, "#go"),
        (r#"{"sleep": {"duration": 2}}"#, ""),
    ];
    with_fixture(async |fixture| {
        let runs = Box::pin(repeat(fixture, &json!({}), ACTIONS)).await;
        for other in &runs[1..] {
            assert_same(&runs[0], other);
        }
        let last = runs[0].last().expect("observations").text.to_string();
        assert!(last.contains("first\\ndata of /data?0.") && last.contains("data of /data?click"), "{last}");
    });
}

#[test]
fn frames_keep_their_times_after_requests() {
    const SCRIPT: &str = "globalThis.times = [];
        const frame = () => { times.push(Date.now() % 16); requestAnimationFrame(frame); };
        setTimeout(frame, 5); setTimeout(() => fetch('/data'), 55); setTimeout(() => fetch('/data'), 95)";
    with_fixture(async |fixture| {
        let site = virtual_site::start().await;
        let mut tester = tester(fixture, &json!({}), 7).await;
        tester.run(json!({"visit_page": {"url": format!("http://{site}/frame")}})).await;
        tester.js(SCRIPT).await;
        tester.run(json!({"sleep": {"duration": 1}})).await;
        let times = tester.js("[times.length > 50, times.slice(-50).every((time) => time === 0)]").await;
        assert_eq!(times, json!([true, true]), "each request has added 10 ms");
        tester.instance.dispose().await.expect("disposing");
    });
}

#[test]
fn unanswered_request_does_not_stop_the_clock() {
    with_fixture(async |fixture| {
        let site = virtual_site::start().await;
        let mut tester = tester(fixture, &json!({}), 7).await;
        tester.run(json!({"visit_page": {"url": format!("http://{site}/frame")}})).await;
        tester.js("void fetch('/never')").await;
        for _ in 0..2 {
            tester.run(json!({"sleep": {"duration": 1}})).await;
        }
        assert_eq!(tester.js("Date.now()").await.as_f64(), Some(START_MS + 5000.0));
        tester.instance.dispose().await.expect("disposing");
    });
}

#[test]
fn seed_changes_random_numbers_only() {
    with_fixture(async |fixture| {
        let site = virtual_site::start().await;
        let values = async |seed| {
            let mut tester = tester(fixture, &json!({}), seed).await;
            tester.run(json!({"visit_page": {"url": format!("http://{site}/frame")}})).await;
            let random = tester
                .js("[Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(9)).join()]");
            let values = (random.await, tester.js("[Date.now(), performance.timeOrigin]").await);
            tester.instance.dispose().await.expect("disposing");
            values
        };
        let (first, again, other) = (values(1).await, values(1).await, values(2).await);
        assert_eq!(first, again);
        for index in 0..3 {
            assert_ne!(first.0[index], other.0[index]);
        }
        assert_eq!(first.1, other.1, "the clock does not depend on the seed");
    });
}

#[test]
fn windows_and_tabs_share_the_clock() {
    const ACTIONS: &[Action] = &[
        (VISIT, ""),
        (r#"{"click_id": {}}"#, "#tab"),
        (r#"{"click_id": {}}"#, "#more"),
        (r#"{"switch_tab": {"id": "1"}}"#, ""),
        (r#"{"click_id": {}}"#, "#go"),
        (r#"{"open_tab": {"url": "http://127.0.0.1:SITE/frame"}}"#, ""),
        (r#"{"close_tab": {}}"#, ""),
    ];
    with_fixture(async |fixture| {
        for session in [json!({"tabs": "many"}), json!({})] {
            let actions = if session == json!({}) { &ACTIONS[..3] } else { ACTIONS };
            let runs = Box::pin(repeat(fixture, &session, actions)).await;
            for other in &runs[1..] {
                assert_same(&runs[0], other);
            }
            let tab = runs[0][2].text.to_string();
            assert!(tab.contains("?tab 0.") && tab.contains("More 17"), "{tab}");
        }
    });
}

#[test]
fn service_worker_is_seeded() {
    const START: &str = "void (async () => {
        window.messages = [];
        navigator.serviceWorker.onmessage = (event) => messages.push(event.data);
        await navigator.serviceWorker.register('/service.js');
        (await navigator.serviceWorker.ready).active.postMessage('hello');
    })()";
    with_fixture(async |fixture| {
        let site = virtual_site::start().await;
        let mut runs = Vec::new();
        for _ in 0..2 {
            let mut tester = tester(fixture, &json!({}), 7).await;
            tester.run(json!({"visit_page": {"url": format!("http://{site}/frame")}})).await;
            tester.js(START).await;
            // A worker starts in real time.
            let mut messages = Vec::new();
            for _ in 0..200 {
                tester.run(json!({"sleep": {"duration": 0.1}})).await;
                messages =
                    serde_json::from_value::<Vec<String>>(tester.js("messages").await).expect("messages");
                if messages.len() == 1 {
                    break;
                }
            }
            runs.push(messages);
            tester.instance.dispose().await.expect("disposing");
        }
        let random = |messages: &[String]| {
            messages
                .iter()
                .map(|text| text.rsplit_once(' ').expect("a date").0.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(runs[0].len(), 1, "{runs:?}");
        assert_eq!(random(&runs[0]), random(&runs[1]));
    });
}
