//! Responses of model servers: the text is bounded, and it contains the content of the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use client::chat::Completion;
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    let completion = Completion::of_body(body);
    if let Some(completion) = &completion {
        assert!(completion.text.len() <= 4 << 20);
    }
    let Ok(json) = serde_json::from_slice::<Value>(body) else { return };
    let content = json.pointer("/choices/0/message/content").and_then(Value::as_str);
    if let (Some(content), Some(completion)) = (content, completion) {
        let text = String::from_utf8_lossy(body);
        // Parsers disagree about duplicate names and about names written with escapes.
        if !text.contains("\\u") && ["choices", "message", "content"].iter().all(|name| text.matches(name).count() == 1) {
            assert!(completion.text.contains(content), "{content} in {}", completion.text);
        }
    }
});
