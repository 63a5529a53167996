//! The page as an agent sees it after a step.

use base64::{Engine, engine::general_purpose::STANDARD};
use client::farm::{Observation, Screenshot};
use proto::ImageFormat;
use serde_json::Value;

/// What the last observation of the page showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) title: String,
    /// One line per numbered element; absent without set-of-marks.
    pub(crate) ac_tree: Option<String>,
    pub(crate) screenshot: Option<Screenshot>,
    /// The result of the last command, if it has one.
    pub(crate) result: Option<Value>,
    /// Why the last action failed although the page was observed.
    pub(crate) failure: Option<String>,
}

impl Page {
    /// Takes what the farm observed.
    pub(crate) fn of(observation: Observation) -> Self {
        let metadata = observation.metadata.unwrap_or_default();
        Self {
            url: metadata.url,
            title: metadata.title,
            ac_tree: observation.ac_tree,
            screenshot: observation.screenshot,
            result: observation.result,
            failure: observation.failure.map(|failure| failure.to_string()),
        }
    }

    /// Returns the numbered elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        self.ac_tree.as_deref().unwrap_or_default().lines().filter_map(Element::parse)
    }

    /// Formats the elements as BrowserGym formats an accessibility tree: `[12] button 'Submit'`. Names are quoted, so that a page
    /// cannot add elements to the tree.
    pub(crate) fn axtree(&self) -> String {
        let line = |Element { id, tag, name }: Element<'_>| {
            format!("[{id}] {tag} '{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
        };
        self.elements().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the screenshot in base64 and its format.
    pub(crate) fn encoded_screenshot(&self) -> Option<(String, ImageFormat)> {
        self.screenshot.as_ref().map(|screenshot| (STANDARD.encode(&screenshot.data), screenshot.format))
    }
}

/// One numbered element of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) id: &'a str,
    pub(crate) tag: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Element<'a> {
    /// Parses a line `id: 12, text: Submit, tag: button`.
    fn parse(line: &'a str) -> Option<Self> {
        let (id, rest) = line.strip_prefix("id: ")?.split_once(", text: ")?;
        let (name, tag) = rest.rsplit_once(", tag: ")?;
        Some(Self { id, tag, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_formatted_like_an_accessibility_tree() {
        let tree = "id: 1, text: Buy, tag: button\nid: 2, text: it's, tag: x, tag: a";
        let page = Page { ac_tree: Some(tree.into()), ..Page::default() };
        assert_eq!(page.axtree(), "[1] button 'Buy'\n[2] a 'it\\'s, tag: x'");
        assert_eq!(Page::default().axtree(), "");
    }
}
