//! Messages of a viewer of a live view: what is passed on is input to the page or a visit, and points are inside the viewport.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &str| {
    let Some((method, params)) = farm::live_message_for_fuzzing(message, (1280, 768)) else { return };
    let known = ["Input.dispatchMouseEvent", "Input.dispatchKeyEvent", "Input.insertText", "Page.reload"];
    assert!(known.contains(&method.as_str()), "{method}");
    let is_inside = |field: &str, size: f64| {
        params.get(field).is_none_or(|at| at.as_f64().is_some_and(|at| (0.0..size).contains(&at)))
    };
    assert!(is_inside("x", 1280.0) && is_inside("y", 768.0), "{params}");
    assert!(params.get("modifiers").is_none_or(|bits| bits.as_u64().is_some_and(|bits| bits < 16)), "{params}");
    assert!(params.get("key").is_none_or(|key| key.as_str().is_some_and(|key| key.chars().count() <= 32)));
});
