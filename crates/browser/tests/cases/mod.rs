//! The cases by topic. Most are rows of a table; a case that a row cannot express is a test below its table.

mod click_and_hover;
mod clipboard;
mod crashes;
mod determinism;
mod files;
mod isolation;
mod marks;
mod mouse;
mod navigation;
mod reading;
mod scrolling;
mod select;
mod session;
mod settling;
mod step;
mod tabs;
mod typing;
mod view;
mod windows;

use std::collections::BTreeSet;

use crate::common::table::{Case, Step};

const TABLES: &[&[Case]] = &[
    click_and_hover::TABLE,
    marks::TABLE,
    mouse::TABLE,
    navigation::TABLE,
    reading::TABLE,
    scrolling::TABLE,
    select::TABLE,
    settling::TABLE,
    typing::TABLE,
    windows::TABLE,
];

/// Paths and commands of the tests that are not in a table.
const OTHER_TESTS: &[(&str, &str)] = &[
    ("/course/metadata", "get_page_metadata"),
    ("/course/text", "get_webpage_text"),
    ("/course/inputs", "get_interactive_rects"),
    ("/course/long", "get_screenshot_info"),
    ("/course/big-title", "get_page_metadata"),
    ("/course/captcha", "screenshot"),
    ("/course/never", "visit_page"),
    ("/course/never-body", "click_id"),
    ("/course/never-image", "click_id"),
    ("/course/spin", "click_id"),
    ("/course/storage", "visit_page"),
    ("/course/service-worker/", "click_id"),
    ("/course/settle/nothing", "click_coords"),
    ("/course/hidden", "click_id"),
    ("/course/clipboard", "keypress"),
    ("/", "set_files"),
    ("/", "list_tabs"),
    ("/", "open_tab"),
    ("/", "switch_tab"),
    ("/", "close_tab"),
];

#[test]
fn all_commands_and_obstacles_are_covered() {
    let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let cases = || TABLES.iter().copied().flatten();
    let commands: BTreeSet<String> = cases()
        .flat_map(|case| case.steps.iter().filter_map(Step::command))
        .chain(OTHER_TESTS.iter().map(|(_, command)| (*command).to_owned()))
        .collect();
    let all: BTreeSet<String> = proto::Command::names().map(str::to_owned).collect();
    assert_eq!(commands, all);
    let visited: BTreeSet<String> = cases()
        .flat_map(|case| case.steps.iter().filter_map(Step::visited_path).chain([case.path]))
        .chain(OTHER_TESTS.iter().map(|(path, _)| *path))
        .map(without_query)
        .collect();
    let uncovered: Vec<&str> = practice::course::obstacles()
        .map(|obstacle| obstacle.path)
        .filter(|path| !visited.contains(&without_query(path)))
        .collect();
    assert_eq!(uncovered, Vec::<&str>::new(), "obstacles without a test");
}
