//! The interactive elements of a page, as the page script reports them, and the marks they get.

use proto::page::{InteractiveRegion, Rect, ScreenshotInfo};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Page,
    frames::{CrossOriginFrame, FrameTransform},
    script::join_element_id,
};
use crate::error::BrowserError;

/// The interactive elements of one document, and the cross-origin frames in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CollectedElements {
    pub(crate) elements: Vec<Element>,
    #[serde(default)]
    pub(crate) cross_origin_frames: Vec<CrossOriginFrame>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Element {
    id: String,
    tag_name: String,
    role: String,
    aria_name: String,
    v_scrollable: bool,
    rects: Vec<ElementRect>,
    position: ViewportPosition,
    /// The rectangle to mark, if the element is visible.
    mark: Option<ElementRect>,
    option: Option<DropdownOption>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ViewportPosition {
    Visible,
    Above,
    Below,
}

/// An option of the open drop-down. It has no box on the page, so its row must be drawn.
#[derive(Clone, Copy, Debug, Deserialize)]
struct DropdownOption {
    selected: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct ElementRect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl From<ElementRect> for Rect {
    fn from(rect: ElementRect) -> Self {
        Self::new(rect.x, rect.y, rect.width, rect.height)
    }
}

/// One mark of a set-of-marks screenshot.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) number: usize,
    pub(crate) rect: Rect,
    /// Set for an option of the open drop-down, whose row must be drawn under the mark.
    pub(crate) row: Option<RowText>,
}

/// The content of a drop-down row.
#[derive(Clone, Debug)]
pub(crate) struct RowText {
    pub(crate) text: String,
    pub(crate) selected: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct OpenRow {
    text: String,
    selected: bool,
    rect: ElementRect,
}

impl OpenRow {
    pub(super) fn into_row(self) -> (Rect, RowText) {
        (self.rect.into(), RowText { text: self.text, selected: self.selected })
    }
}

impl Page {
    /// Returns the visible rows of the open drop-down, which every screenshot must show.
    pub(crate) async fn open_dropdown_rows(&self) -> Result<Vec<(Rect, RowText)>, BrowserError> {
        let rows: Vec<OpenRow> = self.call_script("openDropdownRows", &json!([])).await?;
        Ok(rows.into_iter().map(OpenRow::into_row).collect())
    }
}

impl ElementRect {
    fn transformed(self, transform: FrameTransform) -> Self {
        Self {
            x: transform.x + self.x * transform.scale_x,
            y: transform.y + self.y * transform.scale_y,
            width: self.width * transform.scale_x,
            height: self.height * transform.scale_y,
        }
    }
}

impl Element {
    /// Gives an element of a cross-origin frame its page-wide id. Returns `None` if it is not visible.
    pub(crate) fn into_frame_element(self, context: i64) -> Option<Self> {
        let visible = self.position == ViewportPosition::Visible && self.mark.is_some();
        visible.then(|| Self { id: join_element_id(context, &self.id), ..self })
    }

    /// Converts the rectangles to the coordinates of the surrounding document.
    pub(crate) fn transformed(self, transform: FrameTransform) -> Self {
        let rects = self.rects.iter().map(|rect| rect.transformed(transform)).collect();
        Self { rects, mark: self.mark.map(|mark| mark.transformed(transform)), ..self }
    }

    /// The centre of the mark.
    pub(crate) fn centre(&self) -> (f64, f64) {
        self.mark.map_or((0.0, 0.0), |mark| Rect::from(mark).centre())
    }

    fn row(&self) -> Option<RowText> {
        self.option.map(|option| RowText { text: self.aria_name.clone(), selected: option.selected })
    }

    fn region(&self) -> Value {
        let region = InteractiveRegion {
            tag_name: self.tag_name.clone(),
            role: self.role.clone(),
            aria_name: self.aria_name.clone(),
            v_scrollable: self.v_scrollable,
            rects: self.rects.iter().copied().map(Rect::from).collect(),
        };
        serde_json::to_value(region).unwrap_or_default()
    }
}

impl CollectedElements {
    /// Element id → region, in document order.
    pub(crate) fn regions(&self) -> Map<String, Value> {
        self.elements.iter().map(|element| (element.id.clone(), element.region())).collect()
    }

    /// Numbers the visible elements from 1 and lists the others by their position.
    pub(crate) fn number(&self) -> (ScreenshotInfo, Vec<Mark>) {
        let mut info = ScreenshotInfo { interactive_regions: self.regions(), ..ScreenshotInfo::default() };
        let mut marks = Vec::new();
        for element in &self.elements {
            match (element.position, element.mark) {
                (ViewportPosition::Above, _) => info.rects_above.push(element.id.clone()),
                (ViewportPosition::Below, _) => info.rects_below.push(element.id.clone()),
                (ViewportPosition::Visible, rect) => {
                    let number = info.visible_rects.len() + 1;
                    info.visible_rects.push(number.to_string());
                    info.id_mapping.insert(number.to_string(), element.id.clone().into());
                    marks.extend(rect.map(|rect| Mark { number, rect: rect.into(), row: element.row() }));
                }
            }
        }
        (info, marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_elements_are_numbered_and_mapped() {
        let element = |id: &str, position: &str| {
            json!({"id": id, "tag_name": "a", "role": "link", "aria_name": id, "v_scrollable": false,
                   "rects": [{"x": 1, "y": 2, "width": 3, "height": 4}], "position": position,
                   "mark": {"x": 1, "y": 2, "width": 3, "height": 4}})
        };
        let collected: CollectedElements = serde_json::from_value(json!({"elements": [
            element("10", "above"), element("11", "visible"), element("12", "below"), element("13", "visible")]}))
        .unwrap();
        let (info, marks) = collected.number();
        assert_eq!(info.visible_rects, ["1", "2"]);
        assert_eq!((info.rects_above, info.rects_below), (vec!["10".to_owned()], vec!["12".to_owned()]));
        assert_eq!(Value::from(info.id_mapping), json!({"1": "11", "2": "13"}));
        assert_eq!(marks.iter().map(|mark| mark.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(info.interactive_regions["11"]["rects"][0]["right"], 4.0);
    }
}
