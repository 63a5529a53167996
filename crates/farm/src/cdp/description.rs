//! The protocol description that clients get (`/json/protocol`): the browser's own, reduced to what the endpoint answers.

use serde_json::{Map, Value};

use super::policy::{self, Decision};

/// Removes the commands that are refused and the events that no client gets. A domain that has neither commands nor types
/// left is removed.
pub(crate) fn reduce(mut description: Value) -> Value {
    if let Some(domains) = description["domains"].as_array_mut() {
        for domain in domains.iter_mut().filter_map(Value::as_object_mut) {
            let name = domain.get("domain").and_then(Value::as_str).unwrap_or_default().to_owned();
            retain(domain, "commands", |command| {
                !matches!(policy::decide(&format!("{name}.{command}")), Decision::Refuse(_))
            });
            retain(domain, "events", |event| {
                name == "Target" || policy::allows_event(&format!("{name}.{event}"))
            });
        }
        let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        domains.retain(|domain| !is_empty(&domain["commands"]) || !is_empty(&domain["types"]));
    }
    description
}

fn retain(domain: &mut Map<String, Value>, list: &str, is_kept: impl Fn(&str) -> bool) {
    if let Some(entries) = domain.get_mut(list).and_then(Value::as_array_mut) {
        entries.retain(|entry| entry["name"].as_str().is_some_and(&is_kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refused_methods_are_not_described() {
        let named =
            |names: &[&str]| json!(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>());
        let description = json!({"version": {"major": "1"}, "domains": [
            {"domain": "Page", "commands": named(&["navigate", "crash", "unknown"]), "events": named(&["loadEventFired"])},
            {"domain": "SystemInfo", "commands": named(&["getInfo"]), "types": [{"id": "GPUDevice"}]},
            {"domain": "Tracing", "commands": named(&["start"]), "events": named(&["dataCollected"])},
        ]});
        let expected = json!({"version": {"major": "1"}, "domains": [
            {"domain": "Page", "commands": named(&["navigate"]), "events": named(&["loadEventFired"])},
            {"domain": "SystemInfo", "commands": [], "types": [{"id": "GPUDevice"}]},
        ]});
        assert_eq!(reduce(description), expected);
        assert_eq!(reduce(json!({})), json!({"domains": null}));
    }
}
