//! Turns of models in every dialect: each is refused with an error, or has bounded, valid commands and an output.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::{
    Command,
    command::Point,
    dialect::{self, CallResult, Dialect, Image, MAX_CALLS, MAX_COMMANDS, PageState, ParseOptions, Screen, Size},
};
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let as_text = Value::String(text.to_owned());
    let as_json = serde_json::from_str::<Value>(text).ok();
    let viewport = Size { width: 1280, height: 768 };
    let display = Size { width: 640, height: 384 };
    let screen = Screen { viewport, display, cursor: Point { x: 640.0, y: 384.0 } };
    for dialect in Dialect::ALL {
        for version in dialect.versions().map(Some).chain([None]) {
            for action in std::iter::once(&as_text).chain(&as_json) {
                let options = ParseOptions { dialect, version, screen, acknowledge_safety_checks: input.len() % 2 == 0 };
                match dialect::parse(action, &options) {
                    Err(error) => assert!(error.to_string().len() < 1000, "{error}"),
                    Ok(turn) => check(&turn),
                }
            }
        }
    }
});

fn check(turn: &dialect::Turn) {
    assert!(turn.calls.len() <= MAX_CALLS);
    let commands: Vec<&Command> = turn.calls.iter().flat_map(dialect::Call::commands).collect();
    assert!(commands.len() <= MAX_COMMANDS);
    for command in commands {
        assert_eq!(Command::from_json(&command.to_json(), &[]).as_ref(), Ok(command));
    }
    for failure in turn.calls.iter().filter_map(|call| call.failure.as_ref()) {
        assert!(failure.to_string().len() < 2000, "{failure}");
    }
    let inside = |value: f64, size: u32| (0.0..f64::from(size)).contains(&value);
    assert!(inside(turn.cursor.x, 1280) && inside(turn.cursor.y, 768), "{:?}", turn.cursor);
    let image = Image { media_type: "image/png", data: String::new() };
    let results = vec![CallResult::default(); turn.calls.len()];
    turn.output(&results, &PageState::default(), &image);
}
