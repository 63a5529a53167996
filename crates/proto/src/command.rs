//! The browser commands of `/execute` and their JSON form. See "Browser commands" in `docs/contract.md`.

use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::{
    args::{Args, join_names},
    command_specs::SPECS,
    page::InteractionMode,
};

/// The number of a mark on the last set-of-marks screenshot.
pub type MarkId = String;

/// A point of the viewport, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// What to enter into a field, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    pub value: String,
    pub press_enter: bool,
    pub delete_existing: bool,
}

/// How far `page_down` and `page_up` scroll.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scroll {
    /// In CSS pixels; ignored if `full_page` is set.
    pub amount: f64,
    pub full_page: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
    Left,
    Right,
}

impl Direction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

impl FromStr for Direction {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "up" => Ok(Self::Up),
            "down" => Ok(Self::Down),
            "left" => Ok(Self::Left),
            "right" => Ok(Self::Right),
            _ => Err(()),
        }
    }
}

/// An element by its mark, or a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Id(MarkId),
    Point(Point),
}

/// A button of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MouseButton {
    #[default]
    Left,
    Middle,
    Right,
}

impl MouseButton {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }
}

impl FromStr for MouseButton {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "left" => Ok(Self::Left),
            "middle" => Ok(Self::Middle),
            "right" => Ok(Self::Right),
            _ => Err(()),
        }
    }
}

/// A click with any button, up to three times, with modifier keys held.
#[derive(Clone, Debug, PartialEq)]
pub struct MouseClick {
    pub point: Point,
    pub button: MouseButton,
    pub clicks: u8,
    pub keys: Vec<String>,
}

/// A drag: the button is pressed at the first point, moved along the path and released at the last point.
#[derive(Clone, Debug, PartialEq)]
pub struct Drag {
    pub path: Vec<Point>,
    pub button: MouseButton,
    pub keys: Vec<String>,
}

/// A turn of the mouse wheel, in CSS pixels; positive is to the right and down.
#[derive(Clone, Debug, PartialEq)]
pub struct Wheel {
    pub point: Point,
    pub dx: f64,
    pub dy: f64,
    pub keys: Vec<String>,
}

/// A browser command, as sent to `/execute`.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    VisitPage {
        url: String,
    },
    Back,
    Forward,
    /// Lists the tabs of the session.
    ListTabs,
    OpenTab {
        url: Option<String>,
    },
    SwitchTab {
        id: String,
    },
    /// Closes a tab; without an id, the current one.
    CloseTab {
        id: Option<String>,
    },
    ClickCoords {
        point: Point,
    },
    ClickId {
        id: MarkId,
    },
    FillCoords {
        point: Point,
        fill: Fill,
    },
    FillId {
        id: MarkId,
        fill: Fill,
    },
    SelectOption {
        id: MarkId,
    },
    HoverCoords {
        point: Point,
    },
    HoverId {
        id: MarkId,
    },
    PageDown(Scroll),
    PageUp(Scroll),
    ScrollId {
        id: MarkId,
        direction: Direction,
    },
    ScrollCoords {
        point: Point,
        direction: Direction,
    },
    HoverAndScrollCoords {
        point: Point,
        direction: Direction,
    },
    Keypress {
        keys: Vec<String>,
    },
    /// Chooses uploaded files in a file chooser: the one that a click on the target opens, or the one that is open.
    SetFiles {
        files: Vec<String>,
        target: Option<Target>,
    },
    TabAndEnter,
    MouseClick(MouseClick),
    MouseDown {
        point: Point,
        button: MouseButton,
    },
    MouseMove {
        point: Point,
    },
    MouseUp {
        point: Point,
        button: MouseButton,
    },
    MouseWheel(Wheel),
    Drag(Drag),
    /// Types into the focused element, without a click.
    TypeText {
        text: String,
    },
    KeyDown {
        key: String,
    },
    KeyUp {
        key: String,
    },
    Sleep {
        seconds: f64,
    },
    GetPageMetadata,
    GetWebpageText {
        n_lines: usize,
    },
    GetInteractiveRects,
    GetScreenshotInfo,
    Screenshot {
        mode: InteractionMode,
    },
}

/// Why a request body is not a valid command. The message names the problem and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("no command given; send exactly one of: {accepted}")]
    None { accepted: String },
    #[error("{count} commands given at once ({names}); send exactly one")]
    Several { count: usize, names: String },
    #[error("unknown command {name:?}; accepted: {accepted}")]
    Unknown { name: String, accepted: String },
    #[error("the arguments of {command} must be a JSON object; it accepts: {accepted}")]
    NotAnObject { command: &'static str, accepted: String },
    #[error("{command} has no argument {argument:?}; it accepts: {accepted}")]
    UnknownArgument { command: &'static str, argument: String, accepted: String },
    #[error("{command} needs the argument {argument:?}; it accepts: {accepted}")]
    MissingArgument { command: &'static str, argument: &'static str, accepted: String },
    #[error("{command}: {argument} must be {expected}, not {got}")]
    InvalidArgument { command: &'static str, argument: &'static str, expected: &'static str, got: String },
}

impl Command {
    /// The wire names of all commands.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SPECS.iter().map(|spec| spec.name)
    }

    /// The address that the command visits.
    pub fn visited_url(&self) -> Option<&str> {
        match self {
            Self::VisitPage { url } | Self::OpenTab { url: Some(url) } => Some(url),
            _ => None,
        }
    }

    /// The argument names a command accepts; empty for an unknown command.
    pub fn accepted_arguments(name: &str) -> &'static [&'static str] {
        SPECS.iter().find(|spec| spec.name == name).map_or(&[], |spec| spec.accepted)
    }

    /// Parses `{"<command>": {…args}}`. Keys listed in `other_keys` may be present too and are skipped.
    pub fn from_json(body: &Map<String, Value>, other_keys: &[&str]) -> Result<Self, CommandError> {
        let mut given = body.iter().filter(|(key, _)| !other_keys.contains(&key.as_str()));
        let accepted = || Self::names().collect::<Vec<_>>().join(", ");
        let Some((name, args)) = given.next() else {
            return Err(CommandError::None { accepted: accepted() });
        };
        if given.next().is_some() {
            let is_command = |key: &&str| !other_keys.contains(key);
            let names: Vec<_> = body.keys().map(String::as_str).filter(is_command).collect();
            return Err(CommandError::Several { count: names.len(), names: names.join(", ") });
        }
        let spec = SPECS
            .iter()
            .find(|spec| spec.name == name)
            .ok_or_else(|| CommandError::Unknown { name: name.clone(), accepted: accepted() })?;
        let empty = Map::new();
        let given = match args {
            Value::Object(map) => map,
            Value::Null if spec.accepted.is_empty() => &empty,
            _ => {
                return Err(CommandError::NotAnObject {
                    command: spec.name,
                    accepted: join_names(spec.accepted),
                });
            }
        };
        (spec.parse)(&Args::new(spec.name, spec.accepted, given)?)
    }

    /// The command's name on the wire.
    pub fn name(&self) -> &'static str {
        self.wire().0
    }

    /// Formats the command as `{"<name>": {…args}}`.
    pub fn to_json(&self) -> Map<String, Value> {
        let (name, args) = self.wire();
        Map::from_iter([(name.to_owned(), args)])
    }

    fn wire(&self) -> (&'static str, Value) {
        match self {
            Self::VisitPage { url } => ("visit_page", json!({ "url": url })),
            Self::Back => ("back", json!({})),
            Self::Forward => ("forward", json!({})),
            Self::ListTabs => ("list_tabs", json!({})),
            Self::OpenTab { url } => ("open_tab", json!({ "url": url })),
            Self::SwitchTab { id } => ("switch_tab", json!({ "id": id })),
            Self::CloseTab { id } => ("close_tab", json!({ "id": id })),
            Self::ClickCoords { point } => ("click_coords", json!({"x": point.x, "y": point.y})),
            Self::ClickId { id } => ("click_id", json!({ "id": id })),
            Self::FillCoords { point, fill } => (
                "fill_coords",
                json!({"x": point.x, "y": point.y, "value": fill.value, "press_enter": fill.press_enter, "delete_existing": fill.delete_existing}),
            ),
            Self::FillId { id, fill } => (
                "fill_id",
                json!({"id": id, "value": fill.value, "press_enter": fill.press_enter, "delete_existing": fill.delete_existing}),
            ),
            Self::SelectOption { id } => ("select_option", json!({ "id": id })),
            Self::HoverCoords { point } => ("hover_coords", json!({"x": point.x, "y": point.y})),
            Self::HoverId { id } => ("hover_id", json!({ "id": id })),
            Self::PageDown(scroll) => {
                ("page_down", json!({"amount": scroll.amount, "full_page": scroll.full_page}))
            }
            Self::PageUp(scroll) => {
                ("page_up", json!({"amount": scroll.amount, "full_page": scroll.full_page}))
            }
            Self::ScrollId { id, direction } => {
                ("scroll_id", json!({"id": id, "direction": direction.as_str()}))
            }
            Self::ScrollCoords { point, direction } => {
                ("scroll_coords", json!({"x": point.x, "y": point.y, "direction": direction.as_str()}))
            }
            Self::HoverAndScrollCoords { point, direction } => (
                "hover_and_scroll_coords",
                json!({"x": point.x, "y": point.y, "direction": direction.as_str()}),
            ),
            Self::Keypress { keys } => ("keypress", json!({ "keys": keys })),
            Self::SetFiles { files, target } => {
                let mut args = json!({ "files": files });
                match target {
                    Some(Target::Id(id)) => args["id"] = id.as_str().into(),
                    Some(Target::Point(Point { x, y })) => (args["x"], args["y"]) = (json!(x), json!(y)),
                    None => {}
                }
                ("set_files", args)
            }
            Self::TabAndEnter => ("tab_and_enter", json!({})),
            Self::MouseClick(click) => (
                "mouse_click",
                json!({"x": click.point.x, "y": click.point.y, "button": click.button.as_str(), "clicks": click.clicks, "keys": click.keys}),
            ),
            Self::MouseDown { point, button } => {
                ("mouse_down", json!({"x": point.x, "y": point.y, "button": button.as_str()}))
            }
            Self::MouseMove { point } => ("mouse_move", json!({"x": point.x, "y": point.y})),
            Self::MouseUp { point, button } => {
                ("mouse_up", json!({"x": point.x, "y": point.y, "button": button.as_str()}))
            }
            Self::MouseWheel(wheel) => (
                "mouse_wheel",
                json!({"x": wheel.point.x, "y": wheel.point.y, "dx": wheel.dx, "dy": wheel.dy, "keys": wheel.keys}),
            ),
            Self::Drag(drag) => {
                let path: Vec<[f64; 2]> = drag.path.iter().map(|point| [point.x, point.y]).collect();
                ("drag", json!({"path": path, "button": drag.button.as_str(), "keys": drag.keys}))
            }
            Self::TypeText { text } => ("type_text", json!({ "text": text })),
            Self::KeyDown { key } => ("key_down", json!({ "key": key })),
            Self::KeyUp { key } => ("key_up", json!({ "key": key })),
            Self::Sleep { seconds } => ("sleep", json!({ "duration": seconds })),
            Self::GetPageMetadata => ("get_page_metadata", json!({})),
            Self::GetWebpageText { n_lines } => ("get_webpage_text", json!({ "n_lines": n_lines })),
            Self::GetInteractiveRects => ("get_interactive_rects", json!({})),
            Self::GetScreenshotInfo => ("get_screenshot_info", json!({})),
            Self::Screenshot { mode } => ("screenshot", json!({"interaction_mode": mode.as_str()})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Value) -> Result<Command, String> {
        Command::from_json(body.as_object().unwrap(), &[]).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_as_strings_and_integer_ids_are_accepted() {
        assert_eq!(
            parse(&json!({"click_coords": {"x": "10", "y": 20.5}})),
            Ok(Command::ClickCoords { point: Point { x: 10.0, y: 20.5 } })
        );
        assert_eq!(parse(&json!({"click_id": {"id": 15}})), Ok(Command::ClickId { id: "15".into() }));
        assert_eq!(parse(&json!({"click_id": {"id": "15"}})), Ok(Command::ClickId { id: "15".into() }));
    }

    #[test]
    fn chords_are_split_into_keys() {
        let cases: [(Value, &[&str]); 6] = [
            (json!("ctrl+a"), &["ctrl", "a"]),
            (json!("Control+Shift+ArrowLeft"), &["Control", "Shift", "ArrowLeft"]),
            (json!("ctrl++"), &["ctrl", "+"]),
            (json!("+"), &["+"]),
            (json!(["ctrl", "+"]), &["ctrl", "+"]),
            (json!(["ctrl+shift", "a"]), &["ctrl", "shift", "a"]),
        ];
        for (given, keys) in cases {
            let keys = keys.iter().map(|&key| key.to_owned()).collect();
            assert_eq!(parse(&json!({"keypress": {"keys": given}})), Ok(Command::Keypress { keys }));
        }
    }

    #[test]
    fn points_of_a_path_are_pairs_or_objects() {
        let path = vec![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.5 }];
        let drag = Drag { path, button: MouseButton::Left, keys: Vec::new() };
        let body = json!({"drag": {"path": [[1, "2"], {"x": 3, "y": 4.5}]}});
        assert_eq!(parse(&body), Ok(Command::Drag(drag)));
    }

    #[test]
    fn omitted_arguments_take_contract_defaults() {
        let fill = Fill { value: "a".into(), press_enter: true, delete_existing: false };
        assert_eq!(
            parse(&json!({"fill_id": {"id": 1, "value": "a"}})),
            Ok(Command::FillId { id: "1".into(), fill })
        );
        let scroll = Scroll { amount: 200.0, full_page: false };
        assert_eq!(parse(&json!({"page_down": {}})), Ok(Command::PageDown(scroll)));
        assert_eq!(parse(&json!({"get_webpage_text": {}})), Ok(Command::GetWebpageText { n_lines: 100 }));
        assert_eq!(
            parse(&json!({"screenshot": {}})),
            Ok(Command::Screenshot { mode: InteractionMode::SetOfMarks })
        );
        assert_eq!(parse(&json!({"back": null})), Ok(Command::Back));
    }

    #[test]
    fn invalid_commands_report_what_is_accepted() {
        let cases = [
            (json!({}), "no command given"),
            (json!({"back": {}, "sleep": {"duration": 1}}), "2 commands given at once (back, sleep)"),
            (json!({"clik": {}}), "unknown command \"clik\"; accepted: visit_page"),
            (json!({"click_coords": {"x": 1}}), "click_coords needs the argument \"y\"; it accepts: x, y"),
            (json!({"click_coords": {"x": "a", "y": 1}}), "click_coords: x must be a number, not \"a\""),
            (json!({"click_coords": {"x": "NaN", "y": 1}}), "x must be a number"),
            (json!({"click_id": {"id": 1, "jd": 2}}), "click_id has no argument \"jd\"; it accepts: id"),
            (json!({"click_id": {"id": 1.5}}), "id must be the number of an element"),
            (json!({"scroll_id": {"id": 1, "direction": "away"}}), "direction must be \"up\", \"down\""),
            (
                json!({"keypress": {"keys": 1}}),
                "keys must be a chord such as \"ctrl+a\", or a list of key names",
            ),
            (json!({"keypress": {"keys": []}}), "keys must be a list with at least one key name"),
            (json!({"keypress": {"keys": ""}}), "keys must be a list with at least one key name"),
            (json!({"set_files": {"files": ["a"], "id": "1", "x": 1, "y": 1}}), "id must be left out"),
            (json!({"mouse_click": {"x": 1, "y": 1, "clicks": 4}}), "clicks must be 1, 2 or 3"),
            (json!({"mouse_click": {"x": 1, "y": 1, "button": "fourth"}}), "button must be \"left\""),
            (json!({"drag": {"path": [[1, 2]]}}), "path must be a list of 2 to 500 points"),
            (json!({"drag": {"path": [[1, 2], [3]]}}), "path must be a list of 2 to 500 points"),
            (
                json!({"mouse_wheel": {"x": 1, "y": 1, "dy": 1e9}}),
                "dy must be a number from -100000 to 100000",
            ),
            (
                json!({"type_text": {"text": "x".repeat(100_001)}}),
                "text must be a string of at most 100000 characters",
            ),
            (json!({"visit_page": "x"}), "must be a JSON object; it accepts: url"),
            (json!({"get_webpage_text": {"n_lines": -1}}), "n_lines must be a whole number"),
        ];
        for (body, expected) in cases {
            let got = parse(&body).unwrap_err();
            assert!(got.contains(expected), "{body}: {got}");
        }
    }

    #[test]
    fn every_command_round_trips_through_json() {
        let args = json!({
            "url": "https://a.test/", "x": 1.5, "y": 2, "id": "7", "value": "v", "press_enter": false,
            "delete_existing": true, "amount": 3, "full_page": true, "direction": "left", "keys": ["ctrl", "a"],
            "duration": 0.5, "n_lines": 9, "interaction_mode": "coordinates", "button": "middle", "clicks": 2,
            "dx": -5, "dy": 7.5, "path": [[1, 2], [3, 4]], "text": "typed", "key": "shift",
            "files": ["a.txt"],
        });
        for spec in SPECS {
            // An element is named by its id or by a point.
            let is_point = |key: &str| key == "x" || key == "y";
            let keys = spec.accepted.iter().filter(|key| !(is_point(key) && spec.accepted.contains(&"id")));
            let given: Map<_, _> = keys.map(|key| ((*key).to_owned(), args[*key].clone())).collect();
            let body = json!({ spec.name: given });
            let command = parse(&body).unwrap();
            assert_eq!(command.name(), spec.name);
            assert_eq!(Command::from_json(&command.to_json(), &[]), Ok(command));
        }
    }

    #[test]
    fn other_keys_are_not_parsed_as_commands() {
        let body = json!({"node": "n", "instance_id": "i", "back": {}});
        assert_eq!(
            Command::from_json(body.as_object().unwrap(), &["node", "instance_id"]),
            Ok(Command::Back)
        );
    }
}
