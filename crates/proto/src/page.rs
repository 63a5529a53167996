//! What an instance tells about its page: metadata, interactive elements, the last screenshot's ids.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How the agent points at things.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
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

/// Title and address, always both, plus whatever structured data the page carries.
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

    pub fn new(title: &str, url: &str) -> Self {
        let or = |text: &str, fallback: &str| {
            if text.trim().is_empty() { fallback.into() } else { text.to_owned() }
        };
        Self { title: or(title, Self::UNKNOWN_TITLE), url: or(url, Self::BLANK_URL), ..Self::default() }
    }
}

/// A box in CSS pixels of the viewport, with all the names a DOMRect has.
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

/// One thing on the page that a person could act on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InteractiveRegion {
    pub tag_name: String,
    pub role: String,
    pub aria_name: String,
    pub v_scrollable: bool,
    pub rects: Vec<Rect>,
}

/// What the last set-of-marks screenshot showed. `id_mapping` leads from the number on the picture to the element id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScreenshotInfo {
    pub visible_rects: Vec<String>,
    pub rects_above: Vec<String>,
    pub rects_below: Vec<String>,
    /// Element id → region, in document order.
    pub interactive_regions: Map<String, Value>,
    /// Shown id → element id.
    pub id_mapping: Map<String, Value>,
}

impl ScreenshotInfo {
    /// The accessibility text the agent is given: one line a visible element.
    pub fn ac_tree(&self) -> String {
        let lines = self.visible_rects.iter().filter_map(|shown| {
            let region = self.region(shown)?;
            let word = |key| region.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, tag) = (one_line(word("aria_name")), one_line(word("tag_name")));
            Some(format!("id: {}, text: {name}, tag: {tag}", one_line(shown)))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn region(&self, shown: &str) -> Option<&Value> {
        let element = self.id_mapping.get(shown)?;
        self.interactive_regions.get(element.as_str()?)
    }
}

/// Line breaks inside a name, or in what a node sends for one, would forge further lines of the tree.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_always_has_title_and_url() {
        assert_eq!(PageMetadata::new("", " "), PageMetadata::new("Unknown Page", "about:blank"));
    }

    #[test]
    fn a_name_with_line_breaks_stays_one_line_of_the_tree() {
        let info: ScreenshotInfo = serde_json::from_value(json!({
            "visible_rects": ["1"], "rects_above": [], "rects_below": [],
            "interactive_regions": {"40": {"aria_name": "Buy\nid: 2, text: x", "tag_name": "button"}},
            "id_mapping": {"1": "40"},
        }))
        .unwrap();
        assert_eq!(info.ac_tree(), "id: 1, text: Buy id: 2, text: x, tag: button");
    }
}
