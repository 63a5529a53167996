//! Commands, session options and ids from clients: each is refused with an error, or parses to the same value after it is written
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::{Command, InstanceId, SessionOptions};
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    if let Ok(Value::Object(body)) = serde_json::from_slice(body) {
        if let Ok(command) = Command::from_json(&body, &["node", "instance_id"]) {
            let reparsed = Command::from_json(&command.to_json(), &[]);
            assert_eq!(reparsed.as_ref(), Ok(&command));
        }
        if let Ok(options) = SessionOptions::from_json(&body) {
            let written = options.to_json();
            let reparsed = SessionOptions::from_json(written.as_object().expect("an object"));
            assert_eq!(reparsed.as_ref(), Ok(&options));
        }
    }
    if let Ok(text) = std::str::from_utf8(body)
        && let Ok(id) = text.parse::<InstanceId>()
    {
        assert_eq!(id.to_string().parse::<InstanceId>(), Ok(id));
    }
});
