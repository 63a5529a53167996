//! Actions on elements and points that the page script carries out: locating, selecting options, setting values,
//! scrolling. Mouse and keyboard are in [`crate::input`].

use proto::command::{Direction, Point};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Page, script::split_element_id};
use crate::{
    error::BrowserError,
    options::{DROPDOWN_TIMEOUT, LOCATE_TIMEOUT},
};

/// An element that a command addresses.
#[derive(Clone, Copy)]
pub(crate) struct ElementRef<'a> {
    /// The mark id that the client sent, for error messages.
    pub(crate) mark: &'a str,
    /// The id that the page script assigned.
    pub(crate) id: &'a str,
}

impl ElementRef<'_> {
    fn not_found(&self, reason: String) -> BrowserError {
        BrowserError::ElementNotFound { id: self.mark.to_owned(), reason }
    }

    fn check_present(&self, missing: Option<String>) -> Result<(), BrowserError> {
        missing.map_or(Ok(()), |reason| Err(self.not_found(reason)))
    }
}

/// How to act on an element.
pub(crate) enum Location {
    /// Click this point of the page.
    Point(Point),
    /// The element is an option of a drop-down: it can be selected but not clicked.
    Option,
}

/// What became of a value for the focused field.
pub(crate) enum SetValue {
    /// An option of a select was selected.
    Selected,
    /// The value of a picker was set.
    Set,
    /// The field takes text: type it.
    MustType,
    /// The picker takes keys only: type them into it and call [`Page::finish_picker`].
    MustTypeKeys,
}

#[derive(Deserialize)]
struct LocateReply {
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
    #[serde(default)]
    option: bool,
    missing: Option<String>,
}

#[derive(Deserialize)]
struct ActionReply {
    missing: Option<String>,
    #[serde(default)]
    click: bool,
    #[serde(default)]
    wheel: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetValueReply {
    #[serde(default)]
    type_keys: bool,
    set: Option<String>,
    refused: Option<String>,
}

impl Page {
    /// Finds the point at which to click an element; scrolls it into view if needed.
    pub(crate) async fn locate(&self, element: ElementRef<'_>) -> Result<Location, BrowserError> {
        let reply: LocateReply =
            self.call_script_on_element(LOCATE_TIMEOUT, "locate", element.id, &[]).await?;
        element.check_present(reply.missing)?;
        if reply.option {
            return Ok(Location::Option);
        }
        match self.to_page_point(element.id, (reply.x, reply.y)).await? {
            Some((x, y)) => Ok(Location::Point(Point { x, y })),
            None => Err(element.not_found("its frame is gone".into())),
        }
    }

    /// Selects an option of a select. Returns false if the element is not one; then it must be clicked.
    pub(crate) async fn choose_option(&self, element: ElementRef<'_>) -> Result<bool, BrowserError> {
        let reply: ActionReply =
            self.call_script_on_element(LOCATE_TIMEOUT, "chooseOption", element.id, &[]).await?;
        element.check_present(reply.missing)?;
        Ok(!reply.click)
    }

    /// Moves the focus to an element, unless it or an element inside it has the focus.
    pub(crate) async fn focus_element(&self, element: ElementRef<'_>) -> Result<(), BrowserError> {
        let timeout = self.options.operation_timeout;
        let _: Value = self.call_script_on_element(timeout, "focusElement", element.id, &[]).await?;
        Ok(())
    }

    /// Sets the value of the focused field, if it is a select or a picker. `element` selects the frame; `None` is
    /// the page.
    pub(crate) async fn set_focused_value(
        &self,
        value: &str,
        element: Option<ElementRef<'_>>,
    ) -> Result<SetValue, BrowserError> {
        self.call_set_value("setFocusedValue", value, element).await
    }

    /// Checks that the keys typed into a picker have made a complete value; otherwise its old value is restored.
    pub(crate) async fn finish_picker(
        &self,
        value: &str,
        element: Option<ElementRef<'_>>,
    ) -> Result<(), BrowserError> {
        self.call_set_value("finishPicker", value, element).await.map(drop)
    }

    async fn call_set_value(
        &self,
        function: &str,
        value: &str,
        element: Option<ElementRef<'_>>,
    ) -> Result<SetValue, BrowserError> {
        let context = element.and_then(|element| split_element_id(element.id).0);
        let timeout = self.options.operation_timeout;
        let reply: SetValueReply =
            self.call_script_in_context(timeout, function, context, &json!([value])).await?;
        if let Some(reason) = reply.refused {
            return Err(BrowserError::BadArgument(format!("cannot fill this field: {reason}")));
        }
        Ok(match reply.set.as_deref() {
            Some("select") => SetValue::Selected,
            Some(_) => SetValue::Set,
            None if reply.type_keys => SetValue::MustTypeKeys,
            None => SetValue::MustType,
        })
    }

    /// Scrolls the nearest scrollable ancestor of an element by its own size.
    pub(crate) async fn scroll_element(
        &self,
        element: ElementRef<'_>,
        direction: Direction,
    ) -> Result<(), BrowserError> {
        let arguments = [direction.as_str().into()];
        let timeout = self.options.operation_timeout;
        let reply: ActionReply =
            self.call_script_on_element(timeout, "scrollElement", element.id, &arguments).await?;
        element.check_present(reply.missing)
    }

    /// Scrolls the nearest scrollable element at a point. Returns false if that is the page itself; then the mouse wheel
    /// must be used.
    pub(crate) async fn scroll_at(&self, point: Point, direction: Direction) -> Result<bool, BrowserError> {
        let reply: ActionReply =
            self.call_script("scrollAt", &json!([point.x, point.y, direction.as_str()])).await?;
        Ok(!reply.wheel)
    }

    /// Selects the row of an open drop-down at a point. Returns false if there is none.
    pub(crate) async fn click_dropdown_row(&self, point: Point) -> Result<bool, BrowserError> {
        let arguments = json!([point.x, point.y]);
        match self.call_script_within(DROPDOWN_TIMEOUT, "clickDropdownRow", &arguments).await {
            Err(BrowserError::Timeout { .. }) => Ok(false),
            selected => selected,
        }
    }

    /// Scrolls the open drop-down at a point. Returns false if there is none.
    pub(crate) async fn scroll_dropdown_at(
        &self,
        point: Point,
        direction: Direction,
    ) -> Result<bool, BrowserError> {
        self.call_script("scrollDropdownAt", &json!([point.x, point.y, direction.as_str()])).await
    }
}
