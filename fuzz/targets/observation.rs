//! Responses of a farm, ours or the Python system's: an observation or an error, and one line per element in the tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use client::farm::{Observation, read_screenshot_info};
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    let body = body.to_vec().into();
    drop(Observation::read(&body, "application/msgpack"));
    drop(Observation::read(&body, "application/json"));
    let Ok(value) = serde_json::from_slice::<Value>(&body) else { return };
    let Some(info) = read_screenshot_info(&value) else { return };
    let tree = info.ac_tree();
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines.len() <= info.visible_rects.len(), "{tree}");
    assert!(lines.iter().all(|line| line.starts_with("id: ")), "{tree}");
});
