//! Target filters of the protocol: which types of targets a client wants to see or attach to.

use serde::Deserialize;

/// The first entry that matches a type decides; a type that no entry matches is excluded.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct TargetFilter(Vec<FilterEntry>);

#[derive(Clone, Debug, Deserialize)]
struct FilterEntry {
    #[serde(default)]
    exclude: bool,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

impl Default for TargetFilter {
    /// The filter of the protocol for clients that send none.
    fn default() -> Self {
        let exclude = |kind: &str| FilterEntry { exclude: true, kind: Some(kind.to_owned()) };
        Self(vec![exclude("browser"), exclude("tab"), FilterEntry { exclude: false, kind: None }])
    }
}

impl TargetFilter {
    pub(crate) fn matches(&self, kind: &str) -> bool {
        let entry = self.0.iter().find(|entry| entry.kind.as_deref().is_none_or(|own| own == kind));
        entry.is_some_and(|entry| !entry.exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_matching_entry_decides() {
        let filter = |json: &str| serde_json::from_str::<TargetFilter>(json).unwrap();
        let puppeteer = filter(r#"[{"type":"page","exclude":true},{}]"#);
        assert!(!puppeteer.matches("page") && puppeteer.matches("tab"));
        assert!(TargetFilter::default().matches("page") && !TargetFilter::default().matches("tab"));
        assert!(!filter("[]").matches("page"));
        assert!(!filter(r#"[{"type":"tab"}]"#).matches("page"));
    }
}
