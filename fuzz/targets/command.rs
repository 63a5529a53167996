//! A client's command: refused in words, or understood, and then understood the same when it is sent on. Ids likewise.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::{Command, InstanceId};
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    if let Ok(Value::Object(body)) = serde_json::from_slice(body)
        && let Ok(command) = Command::from_json(&body, &["node", "instance_id"])
    {
        let again = Command::from_json(&command.to_json(), &[]);
        assert_eq!(again.as_ref(), Ok(&command));
    }
    if let Ok(text) = std::str::from_utf8(body)
        && let Ok(id) = text.parse::<InstanceId>()
    {
        assert_eq!(id.to_string().parse::<InstanceId>(), Ok(id));
    }
});
