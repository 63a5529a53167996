//! A configuration file: composed or refused in words, whatever it holds, in bounded memory.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use hydra::SearchPath;
use rollout::config::load;
use serde_json::Value;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// JSON is YAML but for a few things: characters that YAML must not hold as they are, long keys, and numbers such as `1e16`,
/// which are words there.
fn is_yaml(value: &Value, text: &str) -> bool {
    let odd = |letter: char| matches!(letter, '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    !text.contains(odd) && is_plain(value)
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
    std::fs::write(FOLDER.path().join("it.yaml"), bytes).expect("a file");
    let search = SearchPath::folder(FOLDER.path());
    let environment = |name: &str| (name == "A").then(|| "value".to_owned());
    if let Ok(value) = hydra::compose("it", &search, &[], &environment) {
        // What was composed is a configuration: it can be written as YAML (JSON is) and is the same again.
        let text = value.to_string();
        if text.contains("${") || text.contains("???") || text.contains("defaults") || !is_yaml(&value, &text) {
            return;
        }
        std::fs::write(FOLDER.path().join("again.yaml"), &text).expect("a file");
        let again = hydra::compose("again", &search, &[], &environment).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        assert_eq!(again, value);
    }
    drop(load("it", &search, &[], &environment));
});
