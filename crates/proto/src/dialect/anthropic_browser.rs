//! Anthropic's browser toolset: the computer actions with other arguments, and actions on tabs. There are no references to
//! elements, only coordinates.

use serde_json::{Value, json};

use super::{
    Failure, Step, Steps, anthropic, click, command, hold, keys,
    output::PageState,
    raw::{self, RawAction},
    screen::Pointer,
    unknown, unsupported, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Direction, Drag, MouseButton, Point, Target},
};

const ACTIONS: &[&str] = &[
    "navigate",
    "list_tabs",
    "new_tab",
    "switch_tab",
    "close_tab",
    "read_page",
    "get_page_text",
    "read_console",
    "read_network",
    "find",
    "form_input",
    "file_upload",
    "scroll_to",
    "screenshot",
    "zoom",
    "left_click",
    "right_click",
    "middle_click",
    "double_click",
    "triple_click",
    "hover",
    "left_click_drag",
    "left_mouse_down",
    "left_mouse_up",
    "mouse_move",
    "scroll",
    "type",
    "key",
    "hold_key",
    "wait",
    "javascript_exec",
];

/// The tab of a session with a single page.
const ONLY_TAB: &str = "1";
/// The longest id of a tab.
const MAX_ID_CHARS: usize = 20;
/// The most lines of a page's text.
const MAX_LINES: usize = 2000;

const NO_REFERENCES: &str = "a session has no element references; use coordinates";
const NO_SCRIPTS: &str = "scripts of a model do not run in the page";
const NO_DEVTOOLS: &str = "console and network are not available to actions";
const NO_DOCUMENTS: &str = "a session has no documents, only the files that were uploaded to it";

pub(super) fn action(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let mut steps = act(action, pointer)?;
    let manages_tabs = matches!(action.name.as_str(), "switch_tab" | "close_tab");
    // An action on another tab brings it to the front.
    if !manages_tabs && action.fields.contains_key("tab_id") {
        // A number is accepted like a string.
        let id =
            action.fields.get("tab_id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
        let id = id.unwrap_or_default();
        steps.insert(0, Step::Command(Command::SwitchTab { id }));
    }
    Ok(steps)
}

fn act(action: &RawAction, pointer: &mut Pointer) -> Steps {
    match action.name.as_str() {
        "navigate" => navigate(action),
        "list_tabs" => action.args("list_tabs", &[]).map(|_| vec![Step::Screenshot]),
        "new_tab" => action.args("new_tab", &[]).and_then(|_| command(Command::OpenTab { url: None })),
        "switch_tab" => {
            let args = action.args("switch_tab", &["tab_id"])?;
            command(Command::SwitchTab { id: tab_id(&args)? })
        }
        "close_tab" => {
            let args = action.args("close_tab", &["tab_id"])?;
            command(Command::CloseTab { id: Some(tab_id(&args)?) })
        }
        "read_page" => unsupported("read_page", NO_REFERENCES),
        "find" => unsupported("find", NO_REFERENCES),
        "form_input" => unsupported("form_input", NO_REFERENCES),
        "scroll_to" => unsupported("scroll_to", NO_REFERENCES),
        "file_upload" => file_upload(action, pointer),
        "read_console" => unsupported("read_console", NO_DEVTOOLS),
        "read_network" => unsupported("read_network", NO_DEVTOOLS),
        "javascript_exec" => unsupported("javascript_exec", NO_SCRIPTS),
        "get_page_text" => {
            tab(&action.args("get_page_text", &["tab_id"])?)?;
            command(Command::GetWebpageText { n_lines: MAX_LINES })
        }
        "screenshot" => {
            tab(&action.args("screenshot", &["tab_id"])?)?;
            Ok(vec![Step::Screenshot])
        }
        "zoom" => {
            let args = action.args("zoom", &["region", "tab_id"])?;
            tab(&args)?;
            anthropic::zoom(&args, pointer)
        }
        "type" => {
            let args = action.args("type", &["text", "tab_id"])?;
            tab(&args)?;
            command(Command::TypeText { text: args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)? })
        }
        "key" => key(action),
        "hold_key" => {
            let args = action.args("hold_key", &["text", "duration", "tab_id"])?;
            tab(&args)?;
            hold(&keys::chord("text", [args.text("text")?.as_str()])?, duration(&args)?)
        }
        "wait" => {
            let args = action.args("wait", &["duration", "tab_id"])?;
            tab(&args)?;
            wait(duration(&args)?)
        }
        _ => mouse(action, pointer),
    }
}

fn mouse(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let clicked = |name, button, clicks, pointer: &mut Pointer| {
        let args = action.args(name, &["target", "modifiers", "tab_id"])?;
        tab(&args)?;
        let held = if args.has("modifiers") { args.text("modifiers")? } else { String::new() };
        let held = keys::modifiers("modifiers", [held.as_str()])?;
        click(target(action, name, "target", pointer)?, button, clicks, held)
    };
    let at_target = |name: &'static str, pointer: &mut Pointer| {
        tab(&action.args(name, &["target", "tab_id"])?)?;
        target(action, name, "target", pointer)
    };
    match action.name.as_str() {
        "left_click" => clicked("left_click", MouseButton::Left, 1, pointer),
        "right_click" => clicked("right_click", MouseButton::Right, 1, pointer),
        "middle_click" => clicked("middle_click", MouseButton::Middle, 1, pointer),
        "double_click" => clicked("double_click", MouseButton::Left, 2, pointer),
        "triple_click" => clicked("triple_click", MouseButton::Left, 3, pointer),
        "hover" => command(Command::MouseMove { point: at_target("hover", pointer)? }),
        "mouse_move" => command(Command::MouseMove { point: at_target("mouse_move", pointer)? }),
        "left_mouse_down" => {
            let point = at_target("left_mouse_down", pointer)?;
            command(Command::MouseDown { point, button: MouseButton::Left })
        }
        "left_mouse_up" => {
            let point = at_target("left_mouse_up", pointer)?;
            command(Command::MouseUp { point, button: MouseButton::Left })
        }
        "left_click_drag" => {
            tab(&action.args("left_click_drag", &["from", "target", "tab_id"])?)?;
            let path = ["from", "target"].map(|name| target(action, "left_click_drag", name, pointer));
            let path = path.into_iter().collect::<Result<Vec<_>, _>>()?;
            command(Command::Drag(Drag { path, button: MouseButton::Left, keys: Vec::new() }))
        }
        "scroll" => {
            let args = action.args("scroll", &["target", "scroll_direction", "scroll_amount", "tab_id"])?;
            tab(&args)?;
            let direction: Direction =
                args.parsed("scroll_direction", "\"up\", \"down\", \"left\" or \"right\"", None)?;
            let amount = args.wheel_notches("scroll_amount", Some(3.0))?;
            let point = target(action, "scroll", "target", pointer)?;
            let (dx, dy) = anthropic::notches(direction, amount);
            wheel(point, dx, dy, Vec::new())
        }
        other => unknown(other, ACTIONS),
    }
}

fn navigate(action: &RawAction) -> Steps {
    let args = action.args("navigate", &["url", "tab_id"])?;
    tab(&args)?;
    let url = args.bounded_text("url", super::MAX_URL, super::URL)?;
    match url.trim() {
        "back" => command(Command::Back),
        "forward" => command(Command::Forward),
        "reload" => {
            unsupported("navigate to \"reload\"", "a page cannot be reloaded; navigate to its address")
        }
        url => command(Command::VisitPage { url: super::with_scheme(url) }),
    }
}

/// The paths name files that were uploaded to the session; it has no folders.
fn file_upload(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("file_upload", &["target", "paths", "document_ids", "tab_id"])?;
    tab(&args)?;
    if args.has("document_ids") {
        return unsupported("file_upload of document_ids", NO_DOCUMENTS);
    }
    let point = target(action, "file_upload", "target", pointer)?;
    let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let files = args.names("paths", 1..=20)?.into_iter().map(name).collect();
    command(Command::SetFiles { files, target: Some(Target::Point(point)) })
}

/// Several chords are separated by spaces.
fn key(action: &RawAction) -> Steps {
    let args = action.args("key", &["text", "repeat", "tab_id"])?;
    tab(&args)?;
    let text = args.text("text")?;
    let chords: Vec<Vec<String>> =
        text.split_whitespace().map(|chord| keys::chord("text", [chord])).collect::<Result<_, _>>()?;
    let repeat = args.small_count("repeat", 1, 1..=100, "a whole number from 1 to 100")?;
    if chords.is_empty() || chords.len() > 100 {
        return Err(Failure::Invalid(format!("text has {} chords; it must have 1 to 100", chords.len())));
    }
    let presses = (0..repeat).flat_map(|_| &chords);
    Ok(presses.map(|keys| Step::Command(Command::Keypress { keys: keys.clone() })).collect())
}

fn duration(args: &Args<'_>) -> Result<f64, Failure> {
    args.number("duration")?;
    Ok(args.number_within("duration", 0.0, 0.0..=30.0, "a number of seconds from 0 to 30")?)
}

/// Checks the tab that an action is for, if it names one.
fn tab(args: &Args<'_>) -> Result<(), Failure> {
    if args.has("tab_id") { tab_id(args).map(drop) } else { Ok(()) }
}

fn tab_id(args: &Args<'_>) -> Result<String, Failure> {
    Ok(args.bounded_text("tab_id", MAX_ID_CHARS, "a string of at most 20 characters")?)
}

fn target(
    action: &RawAction,
    name: &'static str,
    argument: &'static str,
    pointer: &mut Pointer,
) -> Result<Point, Failure> {
    let invalid = || {
        Failure::Invalid(format!(
            "{name}: {argument} must be {{\"type\": \"coordinate\", \"x\": a number, \"y\": a number}}"
        ))
    };
    let target = action.fields.get(argument).and_then(Value::as_object).ok_or_else(invalid)?;
    match target.get("type").and_then(Value::as_str) {
        Some("coordinate") => {
            let number = |name: &str| target.get(name).and_then(Value::as_f64).ok_or_else(invalid);
            pointer.move_to(number("x")?, number("y")?)
        }
        Some("ref") => {
            Err(Failure::Unsupported { action: format!("{name} of a ref"), reason: NO_REFERENCES })
        }
        _ => Err(invalid()),
    }
}

/// Describes the tabs.
pub(super) fn state(page: &PageState) -> Value {
    let tab = |id: &str, title: &str, url: &str, active: bool| json!({"tab_id": id, "title": title, "url": url, "active": active});
    let tabs: Vec<Value> = match page.tabs.as_slice() {
        [] => vec![tab(ONLY_TAB, &page.title, &page.url, true)],
        tabs => tabs.iter().map(|one| tab(&one.id, &one.title, &one.url, one.current)).collect(),
    };
    json!({"type": "browser_state", "tabs": tabs})
}
