//! Which browser command each action becomes, how grid coordinates become pixels, and the errors.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use proto::{
    Command,
    InteractionMode::{self, Coordinates, SetOfMarks},
    command::{Direction, Fill, Point, Scroll},
    trajectory::Action,
};
use rollout::policy::{ActionContext, ActionError, Reply, ResolvedAction, grid_to_pixel};
use serde_json::{Value, json};

const CONTEXT: ActionContext<'_> =
    ActionContext { mode: Coordinates, width: 1280, height: 768, start_url: "https://start.example" };

fn resolve(mode: InteractionMode, call: &Value) -> ResolvedAction {
    let reply = Reply::parse(&format!("<tool_call>{call}</tool_call>"), mode);
    assert_eq!(reply.problem, None, "{call}");
    ResolvedAction::resolve(&reply.action, &ActionContext { mode, ..CONTEXT }).unwrap()
}

#[test]
fn every_action_resolves_to_its_command() {
    let at = Point { x: 640.0, y: 384.0 };
    let page = Scroll { amount: 200.0, full_page: true };
    let fill = Fill { value: "t".into(), press_enter: true, delete_existing: true };
    let start = || Command::VisitPage { url: "https://start.example".into() };
    let rows = [
        (
            Coordinates,
            json!({"action": "click", "coordinate": [500, 500]}),
            Command::ClickCoords { point: at },
        ),
        (SetOfMarks, json!({"action": "click", "element_id": 7}), Command::ClickId { id: "7".into() }),
        (
            Coordinates,
            json!({"action": "type", "coordinate": [500, 500], "text": "t"}),
            Command::FillCoords { point: at, fill: fill.clone() },
        ),
        (
            SetOfMarks,
            json!({"action": "type", "element_id": 7, "text": "t"}),
            Command::FillId { id: "7".into(), fill },
        ),
        (
            Coordinates,
            json!({"action": "hover", "coordinate": [500, 500]}),
            Command::HoverCoords { point: at },
        ),
        (SetOfMarks, json!({"action": "hover", "element_id": 7}), Command::HoverId { id: "7".into() }),
        (Coordinates, json!({"action": "scroll", "direction": "down"}), Command::PageDown(page)),
        (Coordinates, json!({"action": "scroll", "direction": "up"}), Command::PageUp(page)),
        (SetOfMarks, json!({"action": "scroll", "direction": "up"}), Command::PageUp(page)),
        (
            Coordinates,
            json!({"action": "scroll", "coordinate": [500, 500], "direction": "up"}),
            Command::ScrollCoords { point: at, direction: Direction::Up },
        ),
        (
            SetOfMarks,
            json!({"action": "scroll", "element_id": 7, "direction": "right"}),
            Command::ScrollId { id: "7".into(), direction: Direction::Right },
        ),
        (
            Coordinates,
            json!({"action": "scroll", "direction": "left"}),
            Command::ScrollCoords { point: at, direction: Direction::Left },
        ),
        (
            Coordinates,
            json!({"action": "hover_and_scroll", "coordinate": [500, 500]}),
            Command::HoverAndScrollCoords { point: at, direction: Direction::Down },
        ),
        (Coordinates, json!({"action": "go_back"}), Command::Back),
        (SetOfMarks, json!({"action": "go_back", "goback_to": "homepage"}), start()),
        (
            Coordinates,
            json!({"action": "navigate", "url": "example.com"}),
            Command::VisitPage { url: "https://example.com".into() },
        ),
        (
            SetOfMarks,
            json!({"action": "navigate", "url": "http://example.com"}),
            Command::VisitPage { url: "http://example.com".into() },
        ),
        (Coordinates, json!({"action": "tab_and_enter"}), Command::TabAndEnter),
    ];
    for (mode, call, command) in rows {
        assert_eq!(resolve(mode, &call), ResolvedAction::Command(command), "{call}");
    }
    assert_eq!(resolve(Coordinates, &json!({"action": "wait"})), ResolvedAction::Wait { seconds: 2.0 });
    assert_eq!(
        resolve(Coordinates, &json!({"action": "wait", "time": 5})),
        ResolvedAction::Wait { seconds: 5.0 }
    );
    assert_eq!(
        resolve(Coordinates, &json!({"action": "wait", "time": 1e9})),
        ResolvedAction::Wait { seconds: 60.0 }
    );
    assert_eq!(
        resolve(Coordinates, &json!({"action": "answer", "text": "42"})),
        ResolvedAction::Answer("42".into())
    );
}

#[test]
fn grid_coordinates_become_pixels_inside_the_viewport() {
    for (size, grid, wanted) in [
        (1280, 0.0, 0.0),
        (1280, 1000.0, 1279.0),
        (1280, 2000.0, 1279.0),
        (768, -5.0, 0.0),
        (768, 333.0, 256.0),
        (768, 10.5, 8.0),
        (0, 5.0, 0.0),
    ] {
        assert!((grid_to_pixel(size, grid) - wanted).abs() < 1e-9, "{size} {grid}");
    }
    let boxed = resolve(Coordinates, &json!({"action": "click", "coordinate": [400, 400, 600, 600]}));
    assert_eq!(boxed, ResolvedAction::Command(Command::ClickCoords { point: Point { x: 640.0, y: 384.0 } }));
}

#[test]
fn unknown_action_is_an_error() {
    let action = |key: &str| Action {
        key: key.into(),
        arguments: serde_json::Map::new(),
        action_string: String::new(),
    };
    assert_eq!(
        ResolvedAction::resolve(&action("invalid_step"), &CONTEXT),
        Err(ActionError::Unknown("invalid_step".into()))
    );
    let missing = ActionError::Argument { action: "click".into(), argument: "coordinates" };
    assert_eq!(ResolvedAction::resolve(&action("click"), &CONTEXT), Err(missing));
}

/// Files of the Python system and of our earlier versions name some arguments differently.
#[test]
fn both_spellings_of_arguments_are_read() {
    let action = |key: &str, arguments: &Value| Action {
        key: key.into(),
        arguments: arguments.as_object().unwrap().clone(),
        action_string: String::new(),
    };
    let at = Point { x: 640.0, y: 384.0 };
    let fill = || Fill { value: "t".into(), press_enter: true, delete_existing: true };
    for name in ["coordinates", "coordinate"] {
        let click = ResolvedAction::resolve(&action("click", &json!({name: [500, 500]})), &CONTEXT);
        assert_eq!(click, Ok(ResolvedAction::Command(Command::ClickCoords { point: at })), "{name}");
    }
    for name in ["text", "content"] {
        let answer = ResolvedAction::resolve(&action("answer", &json!({name: "42"})), &CONTEXT);
        assert_eq!(answer, Ok(ResolvedAction::Answer("42".into())), "{name}");
        let typed = action("type", &json!({"coordinates": [500, 500], name: "t"}));
        let typed = ResolvedAction::resolve(&typed, &CONTEXT);
        let command = Command::FillCoords { point: at, fill: fill() };
        assert_eq!(typed, Ok(ResolvedAction::Command(command)), "{name}");
    }
}
