//! Messages of a CDP client: what the filter lets through names no context or target of another tenant, opens no address that
//! pages may not open, and is a method that was reviewed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|message: &str| {
    // The filter of a client that owns nothing but the context "own" and the target "own".
    let Some((method, params)) = farm::filter_for_fuzzing(message) else { return };
    assert!(farm::is_reviewed(&method), "{method}");
    let params: Value = serde_json::from_str(&params).expect("what is passed on is JSON");
    for name in ["browserContextId", "targetId"] {
        assert!(params.get(name).is_none_or(|id| id.is_null() || id == "own"), "{method} {params}");
    }
    if ["Page.navigate", "Fetch.continueRequest", "Network.loadNetworkResource"].contains(&method.as_str()) {
        let url = params["url"].as_str().unwrap_or_default().to_ascii_lowercase();
        assert!(!url.trim_start().starts_with("file:") && !url.trim_start().starts_with("chrome:"), "{url}");
    }
});
