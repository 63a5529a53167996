//! An action and a look in one go: the picture is taken early, so it must be shown to be the picture of the page at rest.

use browser::ObserveRequest;
use proto::{Command, InteractionMode};
use serde_json::{Value, json};

use crate::common::{stage::with_instance, tester::Tester};

/// What to do on a page: a command that needs no point, or one that takes the middle of an element.
enum Do {
    Run(&'static str),
    At(&'static str, &'static str),
}
use Do::{At, Run};

const CLICK: &str = "click_coords";

/// Whatever shows only by drawing, later than the action, or on another page.
const STEPS: &[(&str, Do)] = &[
    ("/course/settle/fetch", At(CLICK, "#go")),
    ("/course/settle/chain", At(CLICK, "#go")),
    ("/course/settle/navigate", At(CLICK, "#go")),
    ("/course/settle/location", At(CLICK, "#go")),
    ("/course/settle/timeout", At(CLICK, "#go")),
    ("/course/settle/timeout", At(CLICK, "#slow")),
    ("/course/settle/submit", At(CLICK, "#go")),
    ("/course/settle/redirect", At(CLICK, "#slow")),
    ("/course/settle/write", At(CLICK, "#go")),
    ("/course/settle/transition", At(CLICK, "#go")),
    ("/course/settle/second-frame", At(CLICK, "#go")),
    ("/course/settle/nothing", At(CLICK, "#words")),
    ("/course/hover", At("hover_coords", "#menu-tools")),
    ("/course/hover", At("hover_coords", "#card")),
    ("/course/clickable", At(CLICK, "#summary")),
    ("/course/modal", At(CLICK, "#reject")),
    ("/course/popups", At(CLICK, "#blank")),
    ("/course/long", Run(r#"{"page_down": {"full_page": true}}"#)),
    ("/course/long", Run(r#"{"page_down": {"amount": 333}}"#)),
    ("/course/infinite", Run(r#"{"page_down": {"amount": 500}}"#)),
    ("/course/scroll", At("scroll_coords", "#outer")),
    ("/course/scroll", At("hover_and_scroll_coords", "#outer")),
    ("/course/long", Run(r#"{"keypress": {"keys": ["end"]}}"#)),
    ("/shop/", Run(r#"{"visit_page": {"url": "/wiki/"}}"#)),
    ("/wiki/", Run(r#"{"visit_page": {"url": "/shop/"}}"#)),
    ("/jobs/", Run(r#"{"back": {}}"#)),
];

async fn command(tester: &Tester, doing: &Do) -> Command {
    let body = match doing {
        Run(body) => {
            let mut body: Value = serde_json::from_str(body).unwrap();
            if let Some(url) = body.pointer_mut("/visit_page/url") {
                *url = tester.address(url.as_str().unwrap()).into();
            }
            body
        }
        At(name, selector) => {
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

async fn shows_the_page_at_rest(tester: &mut Tester, request: &ObserveRequest, (page, doing): &(&str, Do)) {
    tester.visit("/course/settle/nothing").await;
    tester.visit(page).await;
    let command = command(tester, doing).await;
    let stepped = tester.instance.step(&command, request).await.unwrap();
    stepped.result.unwrap_or_else(|error| panic!("{page} {command:?}: {error}"));
    let seen = stepped.observation.screenshot.unwrap();
    // Whatever might still come has time to come.
    tester.run(json!({"sleep": {"duration": 0.25}})).await;
    let later = tester.instance.observe(request).await.unwrap().screenshot.unwrap();
    assert!(seen.bytes == later.bytes, "{page} {command:?}: the picture was early, {:?}", stepped.settled);
}

#[test]
fn the_picture_of_a_step_shows_the_page_at_rest() {
    with_instance(async |tester| {
        let request = ObserveRequest::screenshot(InteractionMode::Coordinates);
        for step in STEPS {
            shows_the_page_at_rest(tester, &request, step).await;
        }
    });
}

#[test]
fn so_does_one_with_marks() {
    with_instance(async |tester| {
        let request = ObserveRequest::screenshot(InteractionMode::SetOfMarks);
        for step in STEPS {
            shows_the_page_at_rest(tester, &request, step).await;
        }
    });
}

#[test]
fn a_refused_action_is_told_and_looked_at() {
    with_instance(async |tester| {
        tester.visit("/course/buttons").await;
        let body = json!({"click_coords": {"x": 5000, "y": 5}});
        let command = Command::from_json(body.as_object().unwrap(), &[]).unwrap();
        let request = ObserveRequest::screenshot(InteractionMode::Coordinates);
        let stepped = tester.instance.step(&command, &request).await.unwrap();
        assert!(stepped.result.unwrap_err().to_string().contains("outside the viewport"));
        assert!(stepped.settled.is_none() && stepped.observation.screenshot.is_some());
    });
}
