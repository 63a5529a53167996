//! Console messages as text: what a page writes with `console`, its uncaught exceptions, and the browser's own messages about
//! it.

use std::fmt::Write;

use cdp::protocol as p;
use serde::Deserialize;
use serde_json::Value;

/// Longer messages are cut off.
const MAX_TEXT_CHARS: usize = 1000;
const MAX_URL_CHARS: usize = 300;
/// Further arguments and properties are left out.
const MAX_PARTS: usize = 20;

/// One message of the console. The texts are the page's.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsoleEntry {
    /// `error`, `warning`, `info` or `debug`.
    pub level: &'static str,
    pub text: String,
    /// Where it comes from.
    pub url: String,
    pub line: u32,
    /// When it was written, in seconds since 1970.
    pub time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiCall {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    timestamp: f64,
    #[serde(default)]
    stack_trace: StackTrace,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StackTrace {
    #[serde(default)]
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    #[serde(default)]
    timestamp: f64,
    exception_details: Exception,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exception {
    #[serde(default)]
    text: String,
    #[serde(default)]
    exception: Value,
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: u32,
}

#[derive(Deserialize)]
struct LogEvent {
    entry: LogEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    #[serde(default)]
    level: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: u32,
    #[serde(default)]
    timestamp: f64,
}

/// Converts an event of the console; `None` if it has nothing to show.
pub(super) fn parse(method: &str, params: &[u8]) -> Option<ConsoleEntry> {
    match method {
        p::RUNTIME_CONSOLE_API_CALLED => cdp::parse_params(params).ok().and_then(from_api_call),
        p::RUNTIME_EXCEPTION_THROWN => cdp::parse_params(params).ok().map(from_exception),
        p::LOG_ENTRY_ADDED => cdp::parse_params(params).ok().map(|LogEvent { entry }| from_log(&entry)),
        _ => None,
    }
}

fn from_api_call(call: ApiCall) -> Option<ConsoleEntry> {
    let level = match call.kind.as_str() {
        "error" | "assert" => "error",
        "warning" => "warning",
        "debug" => "debug",
        "clear" | "endGroup" | "profile" | "profileEnd" => return None,
        _ => "info",
    };
    let arguments: Vec<String> = call.args.iter().take(MAX_PARTS).map(describe).collect();
    let frame = call.stack_trace.call_frames.into_iter().next();
    let (url, line) = frame.map_or((String::new(), 0), |frame| (frame.url, frame.line_number + 1));
    Some(entry(level, &arguments.join(" "), &url, line, call.timestamp))
}

fn from_exception(thrown: Thrown) -> ConsoleEntry {
    let Exception { text, exception, url, line_number } = thrown.exception_details;
    let description = exception["description"].as_str().map(str::to_owned);
    let description = description.unwrap_or_else(|| describe(&exception));
    entry("error", &format!("{text} {description}"), &url, line_number + 1, thrown.timestamp)
}

fn from_log(log: &LogEntry) -> ConsoleEntry {
    let level = match log.level.as_str() {
        "error" => "error",
        "warning" => "warning",
        "verbose" => "debug",
        _ => "info",
    };
    entry(level, &log.text, &log.url, log.line_number, log.timestamp)
}

fn entry(level: &'static str, text: &str, url: &str, line: u32, milliseconds: f64) -> ConsoleEntry {
    let cut = |text: &str, max: usize| text.trim().chars().take(max).collect();
    ConsoleEntry {
        level,
        text: cut(text, MAX_TEXT_CHARS),
        url: cut(url, MAX_URL_CHARS),
        line,
        time: milliseconds / 1000.0,
    }
}

/// Describes a value as a console does, without asking the page for more.
fn describe(object: &Value) -> String {
    match &object["value"] {
        Value::String(text) => return text.clone(),
        Value::Null if object["subtype"] == "null" => return "null".to_owned(),
        Value::Null => {}
        value => return value.to_string(),
    }
    if let Some(text) = object["unserializableValue"].as_str() {
        return text.to_owned();
    }
    let description = object["description"].as_str().or(object["type"].as_str()).unwrap_or_default();
    let Some(properties) = object["preview"]["properties"].as_array().filter(|list| !list.is_empty()) else {
        return description.to_owned();
    };
    let is_list = object["subtype"] == "array";
    let mut text = String::new();
    for (number, property) in properties.iter().take(MAX_PARTS).enumerate() {
        let (name, value) = (property["name"].as_str(), property["value"].as_str());
        let separator = if number > 0 { ", " } else { "" };
        let _ = match name.filter(|_| !is_list) {
            Some(name) => write!(text, "{separator}{name}: {}", value.unwrap_or("…")),
            None => write!(text, "{separator}{}", value.unwrap_or("…")),
        };
    }
    if is_list { format!("[{text}]") } else { format!("{{{text}}}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_json(method: &str, params: &Value) -> Option<ConsoleEntry> {
        parse(method, params.to_string().as_bytes())
    }

    #[test]
    fn arguments_are_described_as_in_a_console() {
        let object = json!({"type": "object", "description": "Object", "preview": {"properties": [
            {"name": "a", "type": "number", "value": "1"}, {"name": "b", "type": "string", "value": "x"},
        ]}});
        let list = json!({"type": "object", "subtype": "array", "preview": {"properties": [{"name": "0", "value": "7"}]}});
        let call = json!({
            "type": "warning", "timestamp": 2000.0,
            "args": [{"type": "string", "value": "hello"}, {"type": "number", "value": 5}, {"type": "undefined"},
                {"type": "object", "subtype": "null", "value": null}, {"type": "number", "unserializableValue": "NaN"}, object, list],
            "stackTrace": {"callFrames": [{"url": "https://a.test/x.js", "lineNumber": 6}]},
        });
        let entry = parse_json(p::RUNTIME_CONSOLE_API_CALLED, &call).unwrap();
        assert_eq!(entry.text, "hello 5 undefined null NaN {a: 1, b: x} [7]");
        assert_eq!((entry.level, entry.url.as_str(), entry.line), ("warning", "https://a.test/x.js", 7));
        assert!((entry.time - 2.0).abs() < 1e-9);
        assert_eq!(parse_json(p::RUNTIME_CONSOLE_API_CALLED, &json!({"type": "clear"})), None);
    }

    #[test]
    fn exceptions_and_log_entries_are_messages() {
        let thrown = json!({"timestamp": 1.0, "exceptionDetails": {"text": "Uncaught", "lineNumber": 1,
            "exception": {"type": "object", "description": "Error: no\n    at f"}}});
        let entry = parse_json(p::RUNTIME_EXCEPTION_THROWN, &thrown).unwrap();
        assert_eq!((entry.level, entry.text.as_str()), ("error", "Uncaught Error: no\n    at f"));
        let log = json!({"entry": {"level": "error", "text": "404", "url": "https://a.test/"}});
        assert_eq!(parse_json(p::LOG_ENTRY_ADDED, &log).unwrap().url, "https://a.test/");
    }

    #[test]
    fn long_messages_are_cut_off() {
        let call =
            json!({"type": "log", "args": vec![json!({"type": "string", "value": "é".repeat(900)}); 30]});
        let entry = parse_json(p::RUNTIME_CONSOLE_API_CALLED, &call).unwrap();
        assert_eq!(entry.text.chars().count(), MAX_TEXT_CHARS);
    }
}
