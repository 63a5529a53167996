//! The interactive elements of a page, as its agent reports them, and the numbers that are shown for them.

use proto::page::{InteractiveRegion, Rect, ScreenshotInfo};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Page,
    frames::{Foreign, View, join},
};
use crate::error::BrowserError;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Collected {
    pub(crate) elements: Vec<Element>,
    #[serde(default)]
    pub(crate) foreign: Vec<Foreign>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Element {
    pub(crate) id: String,
    tag_name: String,
    role: String,
    pub(crate) aria_name: String,
    v_scrollable: bool,
    rects: Vec<Box>,
    place: Place,
    mark: Option<Box>,
    option: Option<DropDownOption>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Place {
    Shown,
    Above,
    Below,
}

/// An option of the drop-down that has the focus: it has no box on the page, so one is drawn for it.
#[derive(Clone, Copy, Debug, Deserialize)]
struct DropDownOption {
    chosen: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Box {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl From<Box> for Rect {
    fn from(given: Box) -> Self {
        Self::new(given.x, given.y, given.width, given.height)
    }
}

/// One mark of a set-of-marks picture.
#[derive(Clone, Debug)]
pub(crate) struct MarkedElement {
    pub(crate) shown: usize,
    pub(crate) rect: Rect,
    /// Text and state of a drop-down option, which must be painted too.
    pub(crate) row: Option<(String, bool)>,
}

/// A row of the open drop-down.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    text: String,
    chosen: bool,
    rect: Box,
}

impl Page {
    /// The rows of the drop-down that is open, which every picture has to show: text, whether chosen, place.
    pub(crate) async fn open_rows(&self) -> Result<Vec<(Rect, (String, bool))>, BrowserError> {
        let rows: Vec<Row> = self.ask("openRows", &json!([])).await?;
        Ok(rows.into_iter().map(|row| (row.rect.into(), (row.text, row.chosen))).collect())
    }
}

impl Box {
    fn moved(self, view: View) -> Self {
        Self {
            x: view.x + self.x * view.kx,
            y: view.y + self.y * view.ky,
            width: self.width * view.kx,
            height: self.height * view.ky,
        }
    }
}

impl Element {
    /// The element under the id it has outside its frame, if it is one to be shown.
    pub(crate) fn of_agent(self, context: i64) -> Option<Self> {
        let shown = self.place == Place::Shown && self.mark.is_some();
        shown.then(|| Self { id: join(context, &self.id), ..self })
    }

    /// The element as seen from the document around its own.
    pub(crate) fn moved(self, view: View) -> Self {
        let rects = self.rects.iter().map(|rect| rect.moved(view)).collect();
        Self { rects, mark: self.mark.map(|mark| mark.moved(view)), ..self }
    }

    pub(crate) fn centre(&self) -> (f64, f64) {
        self.mark.map_or((0.0, 0.0), |mark| Rect::from(mark).centre())
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

impl Collected {
    /// Element id → region, in document order.
    pub(crate) fn regions(&self) -> Map<String, Value> {
        self.elements.iter().map(|element| (element.id.clone(), element.region())).collect()
    }

    /// Numbers the visible ones from 1 and lists the others by where they are.
    pub(crate) fn number(&self) -> (ScreenshotInfo, Vec<MarkedElement>) {
        let mut info = ScreenshotInfo { interactive_regions: self.regions(), ..ScreenshotInfo::default() };
        let mut marks = Vec::new();
        for element in &self.elements {
            match (element.place, element.mark) {
                (Place::Above, _) => info.rects_above.push(element.id.clone()),
                (Place::Below, _) => info.rects_below.push(element.id.clone()),
                (Place::Shown, mark) => {
                    let shown = info.visible_rects.len() + 1;
                    info.visible_rects.push(shown.to_string());
                    info.id_mapping.insert(shown.to_string(), element.id.clone().into());
                    let row = element.option.map(|option| (element.aria_name.clone(), option.chosen));
                    marks.extend(mark.map(|rect| MarkedElement { shown, rect: rect.into(), row }));
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
    fn shown_ids_count_the_visible_and_lead_back_to_the_elements() {
        let element = |id: &str, place: &str| {
            json!({"id": id, "tag_name": "a", "role": "link", "aria_name": id, "v_scrollable": false,
                   "rects": [{"x": 1, "y": 2, "width": 3, "height": 4}], "place": place,
                   "mark": {"x": 1, "y": 2, "width": 3, "height": 4}})
        };
        let collected: Collected = serde_json::from_value(json!({"elements": [
            element("10", "above"), element("11", "shown"), element("12", "below"), element("13", "shown")]}))
        .unwrap();
        let (info, marks) = collected.number();
        assert_eq!(info.visible_rects, ["1", "2"]);
        assert_eq!((info.rects_above, info.rects_below), (vec!["10".to_owned()], vec!["12".to_owned()]));
        assert_eq!(Value::from(info.id_mapping), json!({"1": "11", "2": "13"}));
        assert_eq!(marks.iter().map(|mark| mark.shown).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(info.interactive_regions["11"]["rects"][0]["right"], 4.0);
    }
}
