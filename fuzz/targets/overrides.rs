//! Arguments of the command line: each is understood or refused in words, and a value that was understood is understood
//! the same when it is written out again.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use hydra::SearchPath;
use serde_json::Value;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("base.yaml"), "a: {b: 1, c: [1, 2, {d: x}]}\ne: null\nf: text\n").expect("a file");
    folder
});

fn compose(overrides: &[String]) -> Option<Value> {
    hydra::compose("base", &SearchPath::folder(FOLDER.path()), overrides, &|_| None).ok()
}

/// The value in the grammar's own words.
fn written(value: &Value) -> String {
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
        Value::Array(list) => format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}:{}", written(&Value::from(key.as_str())), written(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let overrides: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let Some(all) = compose(&overrides) else { return };
    assert!(all.is_object());
    // An interpolation is gone once it is resolved, and numbers have no end in JSON where they have one here.
    if text.contains('$') || text.contains("inf") || text.contains("nan") || text.contains("Inf") || text.contains("NaN") {
        return;
    }
    for value in all.as_object().into_iter().flat_map(|map| map.values()) {
        if value.to_string().contains("${") || value.to_string().contains("???") {
            continue;
        }
        let again = compose(&[format!("+again={}", written(value))]).unwrap_or_else(|| panic!("{} is understood", written(value)));
        assert_eq!(&again["again"], value, "{}", written(value));
    }
});
