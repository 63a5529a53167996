//! Messages from the browser: the payload of every routed message is JSON, and every reply that a strict parser
//! accepts is routed to its caller.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|message: &[u8]| {
    let routed = cdp::route(message);
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(message) else { return };
    if let Ok((_, payload)) = &routed {
        // A missing payload is an empty object.
        cdp::parse_params::<Value>(payload).expect("the payload is JSON");
    }
    let text = String::from_utf8_lossy(message);
    let is_unique = |name: &str| text.matches(&format!("\"{name}\"")).count() <= 1;
    let Some(id) = fields.get("id").and_then(Value::as_u64).filter(|_| is_unique("id") && is_unique("result")) else { return };
    let has_invalid_type = ["method", "sessionId"].iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_string() && !value.is_null()));
    // Escapes can repeat the name of a field.
    let has_duplicate = ["params", "error", "method", "sessionId"].iter().any(|name| !is_unique(name)) || text.contains("\\u");
    if has_invalid_type || has_duplicate {
        return;
    }
    let (caller, payload) = routed.expect("the reply is routed");
    assert_eq!(caller, Some(id));
    if let Some(result) = fields.get("result").filter(|result| !result.is_null() && !fields.contains_key("error")) {
        assert_eq!(&cdp::parse_params::<Value>(&payload).expect("the payload is JSON"), result);
    }
});
