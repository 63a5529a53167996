//! The table of browser commands: their wire names, the arguments they accept, and how these are parsed.

use crate::{
    args::Args,
    command::{Command, CommandError, Direction, Fill, Point, Scroll},
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
        parse: |a| Ok(Command::Keypress { keys: a.string_list("keys")? }),
    },
    CommandSpec { name: "tab_and_enter", accepted: &[], parse: |_| Ok(Command::TabAndEnter) },
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

fn seconds(args: &Args<'_>) -> Result<f64, CommandError> {
    Ok(args.number("duration")?.max(0.0))
}
