//! The cases, by theme. Most are rows of a table; what a row cannot say is a test below its table.

mod choosing;
mod failures;
mod faults;
mod marks;
mod pointing;
mod reading;
mod scrolling;
mod settling;
mod stepping;
mod tenants;
mod typing;
mod windows;

use std::collections::BTreeSet;

use crate::common::table::{Case, Step};

const TABLES: &[&[Case]] = &[
    choosing::TABLE,
    failures::TABLE,
    marks::TABLE,
    pointing::TABLE,
    reading::TABLE,
    scrolling::TABLE,
    settling::TABLE,
    typing::TABLE,
    windows::TABLE,
];

/// What the tests below the tables send besides, and where.
const BESIDES: &[(&str, &str)] = &[
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
];

#[test]
fn every_command_and_every_obstacle_is_in_the_tables() {
    let plain = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    let cases = || TABLES.iter().copied().flatten();
    let commands: BTreeSet<String> = cases()
        .flat_map(|case| case.steps.iter().filter_map(Step::command))
        .chain(BESIDES.iter().map(|(_, command)| (*command).to_owned()))
        .collect();
    let all: BTreeSet<String> = proto::Command::names().map(str::to_owned).collect();
    assert_eq!(commands, all);
    let visited: BTreeSet<String> = cases()
        .flat_map(|case| case.steps.iter().filter_map(Step::address).chain([case.path]))
        .chain(BESIDES.iter().map(|(path, _)| *path))
        .map(plain)
        .collect();
    let missed: Vec<&str> = practice::course::obstacles()
        .map(|obstacle| obstacle.path)
        .filter(|path| !visited.contains(&plain(path)))
        .collect();
    assert_eq!(missed, Vec::<&str>::new(), "obstacles that no test gets past");
}
