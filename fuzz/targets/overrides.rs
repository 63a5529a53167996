//! Command-line overrides: each is accepted or refused with an error, and an accepted value that is written as an
//! override gives the same value.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use hydra::SearchPath;
use serde_json::Value;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("base.yaml"), "a: {b: 1, c: [1, 2, {d: x}]}\ne: null\nf: text\n").expect("write a file");
    folder
});

fn compose(overrides: &[String]) -> Option<Value> {
    hydra::compose("base", &SearchPath::folder(FOLDER.path()), overrides, &|_| None).ok()
}

/// Writes a value in the grammar of overrides.
fn to_override(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let mut out = String::from("'");
            let mut backslashes = 0;
            for character in text.chars() {
                if character == '\'' {
                    out.extend(std::iter::repeat_n('\\', backslashes + 1));
                }
                backslashes = if character == '\\' { backslashes + 1 } else { 0 };
                out.push(character);
            }
            out.extend(std::iter::repeat_n('\\', backslashes));
            out + "'"
        }
        Value::Array(list) => format!("[{}]", list.iter().map(to_override).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}:{}", to_override(&Value::from(key.as_str())), to_override(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let overrides: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Some(config) = compose(&overrides) else { return };
    assert!(config.is_object());
    // A resolved interpolation cannot be written back, and JSON has no infinity or NaN.
    if text.contains('$') || text.contains("inf") || text.contains("nan") || text.contains("Inf") || text.contains("NaN") {
        return;
    }
    for value in config.as_object().into_iter().flat_map(|map| map.values()) {
        if value.to_string().contains("${") || value.to_string().contains("???") {
            continue;
        }
        let recomposed = compose(&[format!("+value={}", to_override(value))]).unwrap_or_else(|| panic!("{} is refused", to_override(value)));
        assert_eq!(&recomposed["value"], value, "{}", to_override(value));
    }
});
