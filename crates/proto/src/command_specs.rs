//! The table of browser commands: their wire names, the arguments they accept, and how these are parsed.

use crate::{
    args::Args,
    command::{
        Command, CommandError, Direction, Drag, Fill, MouseButton, MouseClick, Point, Scroll, Target, Wheel,
    },
    page::InteractionMode,
};

type Parser = fn(&Args<'_>) -> Result<Command, CommandError>;

/// How one command is spelled and parsed.
pub(crate) struct CommandSpec {
    pub(crate) name: &'static str,
    pub(crate) accepted: &'static [&'static str],
    pub(crate) parse: Parser,
}

const FILL_COORDS: &[&str] = &["x", "y", "value", "press_enter", "delete_existing"];
const FILL_ID: &[&str] = &["id", "value", "press_enter", "delete_existing"];
const SCROLL: &[&str] = &["amount", "full_page"];

/// All commands: the single source for names, accepted arguments and parsing.
pub(crate) const SPECS: &[CommandSpec] = &[
    CommandSpec {
        name: "visit_page",
        accepted: &["url"],
        parse: |a| Ok(Command::VisitPage { url: a.text("url")? }),
    },
    CommandSpec { name: "back", accepted: &[], parse: |_| Ok(Command::Back) },
    CommandSpec { name: "forward", accepted: &[], parse: |_| Ok(Command::Forward) },
    CommandSpec { name: "list_tabs", accepted: &[], parse: |_| Ok(Command::ListTabs) },
    CommandSpec {
        name: "open_tab",
        accepted: &["url"],
        parse: |a| Ok(Command::OpenTab { url: a.optional_text("url")? }),
    },
    CommandSpec { name: "switch_tab", accepted: &["id"], parse: |a| Ok(Command::SwitchTab { id: a.id()? }) },
    CommandSpec {
        name: "close_tab",
        accepted: &["id"],
        parse: |a| Ok(Command::CloseTab { id: a.optional_id()? }),
    },
    CommandSpec {
        name: "click_coords",
        accepted: &["x", "y"],
        parse: |a| Ok(Command::ClickCoords { point: point(a)? }),
    },
    CommandSpec { name: "click_id", accepted: &["id"], parse: |a| Ok(Command::ClickId { id: a.id()? }) },
    CommandSpec {
        name: "fill_coords",
        accepted: FILL_COORDS,
        parse: |a| Ok(Command::FillCoords { point: point(a)?, fill: fill(a)? }),
    },
    CommandSpec {
        name: "fill_id",
        accepted: FILL_ID,
        parse: |a| Ok(Command::FillId { id: a.id()?, fill: fill(a)? }),
    },
    CommandSpec {
        name: "select_option",
        accepted: &["id"],
        parse: |a| Ok(Command::SelectOption { id: a.id()? }),
    },
    CommandSpec {
        name: "hover_coords",
        accepted: &["x", "y"],
        parse: |a| Ok(Command::HoverCoords { point: point(a)? }),
    },
    CommandSpec { name: "hover_id", accepted: &["id"], parse: |a| Ok(Command::HoverId { id: a.id()? }) },
    CommandSpec { name: "page_down", accepted: SCROLL, parse: |a| Ok(Command::PageDown(scroll(a)?)) },
    CommandSpec { name: "page_up", accepted: SCROLL, parse: |a| Ok(Command::PageUp(scroll(a)?)) },
    CommandSpec {
        name: "scroll_id",
        accepted: &["id", "direction"],
        parse: |a| Ok(Command::ScrollId { id: a.id()?, direction: direction(a, None)? }),
    },
    CommandSpec {
        name: "scroll_coords",
        accepted: &["x", "y", "direction"],
        parse: |a| Ok(Command::ScrollCoords { point: point(a)?, direction: direction(a, None)? }),
    },
    CommandSpec {
        name: "hover_and_scroll_coords",
        accepted: &["x", "y", "direction"],
        parse: |a| {
            Ok(Command::HoverAndScrollCoords {
                point: point(a)?,
                direction: direction(a, Some(Direction::Down))?,
            })
        },
    },
    CommandSpec {
        name: "keypress",
        accepted: &["keys"],
        parse: |a| Ok(Command::Keypress { keys: a.keys()? }),
    },
    CommandSpec {
        name: "set_files",
        accepted: &["files", "id", "x", "y"],
        parse: |a| Ok(Command::SetFiles { files: a.names("files", 1..=20)?, target: target(a)? }),
    },
    CommandSpec { name: "tab_and_enter", accepted: &[], parse: |_| Ok(Command::TabAndEnter) },
    CommandSpec {
        name: "mouse_click",
        accepted: &["x", "y", "button", "clicks", "keys"],
        parse: |a| {
            let (point, button, keys) = (point(a)?, button(a)?, a.keys_or_none()?);
            Ok(Command::MouseClick(MouseClick { point, button, clicks: clicks(a)?, keys }))
        },
    },
    CommandSpec {
        name: "mouse_down",
        accepted: &["x", "y", "button"],
        parse: |a| Ok(Command::MouseDown { point: point(a)?, button: button(a)? }),
    },
    CommandSpec {
        name: "mouse_move",
        accepted: &["x", "y"],
        parse: |a| Ok(Command::MouseMove { point: point(a)? }),
    },
    CommandSpec {
        name: "mouse_up",
        accepted: &["x", "y", "button"],
        parse: |a| Ok(Command::MouseUp { point: point(a)?, button: button(a)? }),
    },
    CommandSpec {
        name: "mouse_wheel",
        accepted: &["x", "y", "dx", "dy", "keys"],
        parse: |a| {
            let (dx, dy) = (wheel_turn(a, "dx")?, wheel_turn(a, "dy")?);
            Ok(Command::MouseWheel(Wheel { point: point(a)?, dx, dy, keys: a.keys_or_none()? }))
        },
    },
    CommandSpec {
        name: "drag",
        accepted: &["path", "button", "keys"],
        parse: |a| {
            let path =
                a.points("path", 2..=500, "a list of 2 to 500 points, each [x, y] or {\"x\", \"y\"}")?;
            Ok(Command::Drag(Drag { path, button: button(a)?, keys: a.keys_or_none()? }))
        },
    },
    CommandSpec {
        name: "type_text",
        accepted: &["text"],
        parse: |a| {
            Ok(Command::TypeText {
                text: a.bounded_text("text", 100_000, "a string of at most 100000 characters")?,
            })
        },
    },
    CommandSpec {
        name: "key_down",
        accepted: &["key"],
        parse: |a| Ok(Command::KeyDown { key: a.text("key")? }),
    },
    CommandSpec { name: "key_up", accepted: &["key"], parse: |a| Ok(Command::KeyUp { key: a.text("key")? }) },
    CommandSpec {
        name: "sleep",
        accepted: &["duration"],
        parse: |a| Ok(Command::Sleep { seconds: seconds(a)? }),
    },
    CommandSpec { name: "get_page_metadata", accepted: &[], parse: |_| Ok(Command::GetPageMetadata) },
    CommandSpec {
        name: "get_webpage_text",
        accepted: &["n_lines"],
        parse: |a| Ok(Command::GetWebpageText { n_lines: a.count_or("n_lines", 100)? }),
    },
    CommandSpec { name: "get_interactive_rects", accepted: &[], parse: |_| Ok(Command::GetInteractiveRects) },
    CommandSpec { name: "get_screenshot_info", accepted: &[], parse: |_| Ok(Command::GetScreenshotInfo) },
    CommandSpec {
        name: "screenshot",
        accepted: &["interaction_mode"],
        parse: |a| {
            let mode = a.parsed(
                "interaction_mode",
                "\"set_of_marks\" or \"coordinates\"",
                Some(InteractionMode::default()),
            )?;
            Ok(Command::Screenshot { mode })
        },
    },
];

fn point(args: &Args<'_>) -> Result<Point, CommandError> {
    Ok(Point { x: args.number("x")?, y: args.number("y")? })
}

fn fill(args: &Args<'_>) -> Result<Fill, CommandError> {
    Ok(Fill {
        value: args.text("value")?,
        press_enter: args.flag_or("press_enter", true)?,
        delete_existing: args.flag_or("delete_existing", false)?,
    })
}

fn scroll(args: &Args<'_>) -> Result<Scroll, CommandError> {
    Ok(Scroll { amount: args.number_or("amount", 200.0)?, full_page: args.flag_or("full_page", false)? })
}

fn direction(args: &Args<'_>, default: Option<Direction>) -> Result<Direction, CommandError> {
    args.parsed("direction", "\"up\", \"down\", \"left\" or \"right\"", default)
}

/// Returns the element or the point that a command names, if it names one.
fn target(args: &Args<'_>) -> Result<Option<Target>, CommandError> {
    if let Some(id) = args.optional_id()? {
        if args.has("x") || args.has("y") {
            return Err(args.refuse("id", "left out if x and y are given"));
        }
        return Ok(Some(Target::Id(id)));
    }
    if args.has("x") || args.has("y") {
        return Ok(Some(Target::Point(point(args)?)));
    }
    Ok(None)
}

fn button(args: &Args<'_>) -> Result<MouseButton, CommandError> {
    args.parsed("button", "\"left\", \"middle\" or \"right\"", Some(MouseButton::Left))
}

fn clicks(args: &Args<'_>) -> Result<u8, CommandError> {
    args.small_count("clicks", 1, 1..=3, "1, 2 or 3")
}

fn wheel_turn(args: &Args<'_>, name: &'static str) -> Result<f64, CommandError> {
    args.number_within(name, 0.0, -100_000.0..=100_000.0, "a number from -100000 to 100000")
}

fn seconds(args: &Args<'_>) -> Result<f64, CommandError> {
    Ok(args.number("duration")?.max(0.0))
}
