//! Deterministic sessions: the same actions give the same observations, whatever else the machine does meanwhile.

use browser::{Determinism, Instance, ObserveRequest, Options};
use proto::{Command, InteractionMode};
use serde_json::{Value, json};

use crate::common::{
    fixture::{Fixture, session_options, with_fixture},
    tester::Tester,
    virtual_site,
};

const START_MS: f64 = 1_700_000_000_000.0;

fn options(session: &Value, seed: u32) -> Options {
    Options { determinism: Some(Determinism { start_ms: START_MS, seed }), ..session_options(session) }
}

async fn tester(fixture: &'static Fixture, session: &Value, seed: u32) -> Tester {
    let instance = fixture.host.instance(&options(session, seed)).await.expect("an instance");
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

/// Runs the actions; between them the session of `noise` works, which takes an arbitrary time.
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
        let started = std::time::Instant::now();
        tester.run(command.clone()).await;
        println!("{:?} {:p} {command}", started.elapsed(), std::ptr::from_ref(tester));
        seen.push(see(&mut tester.instance, &command.to_string()).await);
        for _ in 0..index % 3 {
            noise.visit("/course/settle/raf").await;
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
        let runs = repeat(fixture, &json!({}), ACTIONS).await;
        let text = |seen: &Seen| seen.text["text"].as_str().unwrap_or_default().to_owned();
        for seen in &runs[0] {
            println!("--- {}\n{}\n{}", seen.action, text(seen), seen.tree);
        }
        for other in &runs[1..] {
            assert_same(&runs[0], other);
        }
    });
}

#[test]
fn scratch() {
    with_fixture(async |fixture| {
        let actions: Vec<(String, String)> =
            serde_json::from_str(&std::env::var("VT").unwrap_or("[]".into())).unwrap();
        let actions: Vec<Action> = actions.into_iter().map(|(a, b)| (&*a.leak(), &*b.leak())).collect();
        let site = virtual_site::start().await.port().to_string();
        let mut noise = Tester::new(
            fixture.host.instance(&Options::default()).await.expect("an instance"),
            &fixture.sites,
        );
        let mut tester = tester(fixture, &json!({}), 7).await;
        run(&mut tester, &site, &actions, &mut noise).await;
    });
}
