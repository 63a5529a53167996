//! Checks that every method and event in use is in the protocol description that the browser serves.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;

use cdp::{Launch, protocol as p};
use common::{KINDS, executable};
use serde_json::Value;

fn names(protocol: &Value, kind: &str) -> BTreeSet<String> {
    let domains = protocol["domains"].as_array().unwrap();
    let named = |domain: &Value| -> Vec<String> {
        let entries = domain[kind].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = domain["domain"].as_str().unwrap();
        entries.iter().map(|entry| format!("{name}.{}", entry["name"].as_str().unwrap())).collect()
    };
    domains.iter().flat_map(named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_knows_all_methods_and_events() {
    for kind in KINDS {
        let protocol = Launch::new(executable(kind)).protocol_description().await.unwrap();
        let (methods, events) = (names(&protocol, "commands"), names(&protocol, "events"));
        assert!(methods.len() > 300 && events.len() > 100, "{} {}", methods.len(), events.len());
        let unknown: Vec<&str> = p::METHODS
            .iter()
            .map(|method| method.name())
            .filter(|name| !methods.contains(*name))
            .chain(p::EVENTS.iter().copied().filter(|name| !events.contains(*name)))
            .collect();
        assert_eq!(unknown, Vec::<&str>::new(), "unknown to {kind}");
    }
}
