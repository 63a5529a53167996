//! A message of the OpenEnv protocol: every defect has an error message that is valid JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(response) = env::fuzzing::openenv_message(text) {
        let response: serde_json::Value = serde_json::from_str(&response).expect("valid JSON");
        assert_eq!(response["type"], "error");
        assert!(response["data"]["code"].is_string());
    }
});
