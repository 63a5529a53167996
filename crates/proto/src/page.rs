//! What an instance reports about its page: metadata, interactive elements, the marks of the last screenshot.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How the agent addresses elements: by mark number or by coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionMode {
    #[default]
    SetOfMarks,
    Coordinates,
}

impl InteractionMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SetOfMarks => "set_of_marks",
            Self::Coordinates => "coordinates",
        }
    }
}

impl FromStr for InteractionMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "set_of_marks" => Ok(Self::SetOfMarks),
            "coordinates" => Ok(Self::Coordinates),
            other => {
                Err(format!("interaction_mode is {other:?}; it must be \"set_of_marks\" or \"coordinates\""))
            }
        }
    }
}

/// The encoding of a screenshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
    /// Returns the format of an image, by its signature.
    pub fn of(image: &[u8]) -> Option<Self> {
        match image {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    pub const fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// Returns the usual end of a file name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            other => other.as_str(),
        }
    }
}

impl FromStr for ImageFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "png" => Ok(Self::Png),
            "jpeg" | "jpg" => Ok(Self::Jpeg),
            "webp" => Ok(Self::Webp),
            other => Err(format!("format is {other:?}; it must be \"png\", \"jpeg\" or \"webp\"")),
        }
    }
}

/// Title and URL, always both, and the structured data of the page if it has any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageMetadata {
    pub title: String,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_tags: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jsonld: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microdata: Option<Value>,
}

impl PageMetadata {
    pub const UNKNOWN_TITLE: &str = "Unknown Page";
    pub const BLANK_URL: &str = "about:blank";

    /// Creates metadata without structured data; an empty title or URL is replaced by a placeholder.
    pub fn new(title: &str, url: &str) -> Self {
        let non_empty = |text: &str, fallback: &str| {
            if text.trim().is_empty() { fallback.into() } else { text.to_owned() }
        };
        Self {
            title: non_empty(title, Self::UNKNOWN_TITLE),
            url: non_empty(url, Self::BLANK_URL),
            ..Self::default()
        }
    }
}

/// A rectangle in CSS pixels of the viewport, with the fields of a DOMRect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub left: f64,
}

impl Rect {
    pub fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height, top: y, right: x + width, bottom: y + height, left: x }
    }

    pub fn centre(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }
}

/// One interactive element of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InteractiveRegion {
    pub tag_name: String,
    pub role: String,
    pub aria_name: String,
    pub v_scrollable: bool,
    pub rects: Vec<Rect>,
}

/// One tab of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TabInfo {
    pub id: String,
    pub title: String,
    pub url: String,
    /// Whether commands and screenshots apply to it.
    pub current: bool,
}

/// Formats the tabs for the agent: one line per tab.
pub fn tab_list(tabs: &[TabInfo]) -> String {
    let lines = tabs.iter().map(|tab| {
        let current = if tab.current { " (current)" } else { "" };
        format!("tab {}{current}: {}, url: {}", tab.id, single_line(&tab.title), single_line(&tab.url))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The marks of the last set-of-marks screenshot. `id_mapping` maps mark ids to element ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScreenshotInfo {
    pub visible_rects: Vec<String>,
    pub rects_above: Vec<String>,
    pub rects_below: Vec<String>,
    /// Element id → region, in document order.
    pub interactive_regions: Map<String, Value>,
    /// Mark id → element id.
    pub id_mapping: Map<String, Value>,
}

impl ScreenshotInfo {
    /// Formats the accessibility text for the agent: one line per visible element.
    pub fn ac_tree(&self) -> String {
        let lines = self.visible_rects.iter().filter_map(|mark| {
            let region = self.region(mark)?;
            let field = |key| region.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, tag) = (single_line(field("aria_name")), single_line(field("tag_name")));
            Some(format!("id: {}, text: {name}, tag: {tag}", single_line(mark)))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn region(&self, mark: &str) -> Option<&Value> {
        let element = self.id_mapping.get(mark)?;
        self.interactive_regions.get(element.as_str()?)
    }
}

/// Replaces line breaks by spaces: a page could otherwise add forged lines to the tree through an element's name.
fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_title_and_url_are_replaced() {
        assert_eq!(PageMetadata::new("", " "), PageMetadata::new("Unknown Page", "about:blank"));
    }

    #[test]
    fn name_with_line_breaks_stays_on_one_line() {
        let info: ScreenshotInfo = serde_json::from_value(json!({
            "visible_rects": ["1"], "rects_above": [], "rects_below": [],
            "interactive_regions": {"40": {"aria_name": "Buy\nid: 2, text: x", "tag_name": "button"}},
            "id_mapping": {"1": "40"},
        }))
        .unwrap();
        assert_eq!(info.ac_tree(), "id: 1, text: Buy id: 2, text: x, tag: button");
    }
}
