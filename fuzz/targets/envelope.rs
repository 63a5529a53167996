//! Messages from the browser: whatever comes, what is routed on has a payload that is JSON, and a reply that any strict
//! reader would take is not lost nor given to another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|message: &[u8]| {
    let routed = cdp::route(message);
    let Ok(Value::Object(plain)) = serde_json::from_slice::<Value>(message) else { return };
    if let Ok((_, payload)) = &routed {
        // A payload that is missing reads as an empty object.
        cdp::parse_params::<Value>(payload).expect("the payload is JSON");
    }
    let text = String::from_utf8_lossy(message);
    let once = |name: &str| text.matches(&format!("\"{name}\"")).count() <= 1;
    let Some(id) = plain.get("id").and_then(Value::as_u64).filter(|_| once("id") && once("result")) else { return };
    let odd = ["method", "sessionId"].iter().any(|name| plain.get(*name).is_some_and(|value| !value.is_string() && !value.is_null()));
    // Escapes can spell a field's name a second time.
    let twice = ["params", "error", "method", "sessionId"].iter().any(|name| !once(name)) || text.contains("\\u");
    if odd || twice {
        return;
    }
    let (to, payload) = routed.expect("a reply is not lost");
    assert_eq!(to, Some(id));
    if let Some(result) = plain.get("result").filter(|result| !result.is_null() && !plain.contains_key("error")) {
        assert_eq!(&cdp::parse_params::<Value>(&payload).expect("it is JSON"), result);
    }
});
