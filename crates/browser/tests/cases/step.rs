//! Steps: an action and its observation in one call. The observation begins early, and must equal that of the settled page.

use browser::ObserveRequest;
use proto::{Command, InteractionMode};
use serde_json::{Value, json};

use crate::common::{fixture::with_instance, tester::Tester};

/// An action on a page: a complete command, or a command at the centre of an element.
enum Action {
    Run(&'static str),
    AtElement(&'static str, &'static str),
}
use Action::{AtElement, Run};

const CLICK: &str = "click_coords";

/// Pages and actions whose effect needs a frame, comes later than the action, or is on another page.
const STEPS: &[(&str, Action)] = &[
    ("/course/settle/fetch", AtElement(CLICK, "#go")),
    ("/course/settle/chain", AtElement(CLICK, "#go")),
    ("/course/settle/navigate", AtElement(CLICK, "#go")),
    ("/course/settle/location", AtElement(CLICK, "#go")),
    ("/course/settle/timeout", AtElement(CLICK, "#go")),
    ("/course/settle/timeout", AtElement(CLICK, "#slow")),
    ("/course/settle/submit", AtElement(CLICK, "#go")),
    ("/course/settle/redirect", AtElement(CLICK, "#slow")),
    ("/course/settle/write", AtElement(CLICK, "#go")),
    ("/course/settle/transition", AtElement(CLICK, "#go")),
    ("/course/settle/second-frame", AtElement(CLICK, "#go")),
    ("/course/settle/nothing", AtElement(CLICK, "#words")),
    ("/course/hover", AtElement("hover_coords", "#menu-tools")),
    ("/course/hover", AtElement("hover_coords", "#card")),
    ("/course/clickable", AtElement(CLICK, "#summary")),
    ("/course/modal", AtElement(CLICK, "#reject")),
    ("/course/popups", AtElement(CLICK, "#blank")),
    ("/course/select", AtElement(CLICK, "#colour")),
    ("/course/long", Run(r#"{"page_down": {"full_page": true}}"#)),
    ("/course/long", Run(r#"{"page_down": {"amount": 333}}"#)),
    ("/course/infinite", Run(r#"{"page_down": {"amount": 500}}"#)),
    ("/course/scroll", AtElement("scroll_coords", "#outer")),
    ("/course/scroll", AtElement("hover_and_scroll_coords", "#outer")),
    ("/course/long", Run(r#"{"keypress": {"keys": ["end"]}}"#)),
    ("/shop/", Run(r#"{"visit_page": {"url": "/wiki/"}}"#)),
    ("/wiki/", Run(r#"{"visit_page": {"url": "/shop/"}}"#)),
    ("/jobs/", Run(r#"{"back": {}}"#)),
];

async fn command(tester: &Tester, action: &Action) -> Command {
    let body = match action {
        Run(body) => {
            let mut body: Value = serde_json::from_str(body).unwrap();
            if let Some(url) = body.pointer_mut("/visit_page/url") {
                *url = tester.url(url.as_str().unwrap()).into();
            }
            body
        }
        AtElement(name, selector) => {
            let (x, y) = tester.find(selector).await.centre();
            let mut arguments = json!({"x": x, "y": y});
            if name.contains("scroll") {
                arguments["direction"] = "down".into();
            }
            json!({ *name: arguments })
        }
    };
    Command::from_json(body.as_object().unwrap(), &[]).unwrap()
}

fn request(mode: InteractionMode) -> ObserveRequest {
    ObserveRequest { metadata: true, ..ObserveRequest::screenshot(mode) }
}

async fn check_observation(tester: &mut Tester, request: &ObserveRequest, (page, action): &(&str, Action)) {
    tester.visit("/course/settle/nothing").await;
    tester.visit(page).await;
    let command = command(tester, action).await;
    let step = tester.instance.step(&command, request).await.unwrap();
    step.result.unwrap_or_else(|error| panic!("{page} {command:?}: {error}"));
    let (screenshot, metadata) = (step.observation.screenshot.unwrap(), step.observation.metadata.unwrap());
    // Gives late changes time to appear.
    tester.run(json!({"sleep": {"duration": 0.25}})).await;
    let later = tester.instance.observe(request).await.unwrap();
    assert_eq!(Some(metadata), later.metadata, "{page} {command:?}");
    assert!(
        screenshot.bytes == later.screenshot.unwrap().bytes,
        "{page} {command:?}: the screenshot was early, {:?}",
        step.settled
    );
}

#[test]
fn step_shows_settled_page() {
    with_instance(async |tester| {
        let request = request(InteractionMode::Coordinates);
        for step in STEPS {
            check_observation(tester, &request, step).await;
        }
    });
}

#[test]
fn step_with_marks_shows_settled_page() {
    with_instance(async |tester| {
        let request = request(InteractionMode::SetOfMarks);
        for step in STEPS {
            check_observation(tester, &request, step).await;
        }
    });
}

#[test]
fn refused_action_is_reported_with_observation() {
    with_instance(async |tester| {
        tester.visit("/course/buttons").await;
        let body = json!({"click_coords": {"x": 5000, "y": 5}});
        let command = Command::from_json(body.as_object().unwrap(), &[]).unwrap();
        let request = ObserveRequest::screenshot(InteractionMode::Coordinates);
        let step = tester.instance.step(&command, &request).await.unwrap();
        assert!(step.result.unwrap_err().to_string().contains("outside the viewport"));
        assert!(step.settled.is_none() && step.observation.screenshot.is_some());
    });
}
