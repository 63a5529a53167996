//! Configuration files: every file is composed or refused with an error, in bounded memory.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use hydra::SearchPath;
use rollout::config::load;
use serde_json::Value;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

/// Whether JSON text is also YAML with the same meaning. Exceptions are some unescaped characters, long keys, and
/// numbers such as `1e16`, which are strings in YAML.
fn is_yaml(value: &Value, text: &str) -> bool {
    let is_excluded = |character: char| matches!(character, '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !text.contains(is_excluded) && is_plain(value)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.to_string().contains(['e', 'E']),
        Value::Array(list) => list.iter().all(is_plain),
        Value::Object(map) => map.iter().all(|(key, value)| key.len() < 900 && is_plain(value)),
        _ => true,
    }
}

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(FOLDER.path().join("input.yaml"), bytes).expect("write a file");
    let search = SearchPath::folder(FOLDER.path());
    let environment = |name: &str| (name == "A").then(|| "value".to_owned());
    if let Ok(value) = hydra::compose("input", &search, &[], &environment) {
        // The composed configuration, written as YAML (JSON is YAML), composes to itself.
        let text = value.to_string();
        if text.contains("${") || text.contains("???") || text.contains("defaults") || !is_yaml(&value, &text) {
            return;
        }
        std::fs::write(FOLDER.path().join("output.yaml"), &text).expect("write a file");
        let recomposed = hydra::compose("output", &search, &[], &environment).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(recomposed, value);
    }
    drop(load("input", &search, &[], &environment));
});
