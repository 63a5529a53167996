//! A model server's answer: a text no longer than a message may be, whatever surrounds it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use client::chat::Completion;
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    let read = Completion::of_body(body);
    if let Some(completion) = &read {
        assert!(completion.text.len() <= 4 << 20);
    }
    let Ok(plain) = serde_json::from_slice::<Value>(body) else { return };
    let content = plain.pointer("/choices/0/message/content").and_then(Value::as_str);
    if let (Some(content), Some(completion)) = (content, read) {
        let text = String::from_utf8_lossy(body);
        // Names that come twice, or spelt with escapes, are read differently by strict and lax readers.
        if !text.contains("\\u") && ["choices", "message", "content"].iter().all(|name| text.matches(name).count() == 1) {
            assert!(completion.text.contains(content), "{content} in {}", completion.text);
        }
    }
});
