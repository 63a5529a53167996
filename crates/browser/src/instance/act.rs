//! The commands that change the page, one function each. Elements are addressed by mark id: [`Instance::element`] maps it
//! to an element, [`crate::page::element_actions`] finds its point, and [`crate::input`] acts there.

use std::time::Duration;

use proto::{
    Command,
    command::{Direction, Fill, MouseButton, MouseClick, Point, Scroll},
};

use super::Instance;
use crate::{
    error::BrowserError,
    input::mouse::check_point,
    page::element_actions::{ElementRef, Location, SetValue},
};

/// Where the mouse wheel is turned to scroll the page.
const PAGE_WHEEL_POINT: Point = Point { x: 10.0, y: 10.0 };
/// How many pixels of the previous view stay visible after scrolling by a full page.
const PAGE_OVERLAP: f64 = 50.0;
/// How far the wheel is turned over an element that does not scroll by itself.
const WHEEL_STEP: f64 = 100.0;

impl Instance {
    pub(super) async fn act(&mut self, command: &Command) -> Result<(), BrowserError> {
        if sends_input(command) {
            self.page.connect_frames().await?;
        }
        match command {
            Command::VisitPage { url } => self.visit(url).await,
            Command::Back => self.page.back().await,
            Command::Forward => self.page.forward().await,
            Command::OpenTab { url } => self.open_tab(url.as_deref()).await,
            Command::SwitchTab { id } => self.switch_tab(id).await,
            Command::CloseTab { id } => self.close_tab(id.as_deref()).await,
            Command::ClickCoords { point } => self.click_point(*point).await,
            Command::ClickId { id } => self.click_id(id).await,
            Command::FillCoords { point, fill } => self.fill_point(*point, fill).await,
            Command::FillId { id, fill } => self.fill_id(id, fill).await,
            Command::SelectOption { id } => self.select_option(id).await,
            Command::HoverCoords { point } => self.page.input().hover(self.check_point(*point)?).await,
            Command::HoverId { id } => {
                let point = self.locate_point(id).await?;
                self.page.input().hover(point).await
            }
            Command::PageDown(scroll) => self.scroll_page(Direction::Down, *scroll).await,
            Command::PageUp(scroll) => self.scroll_page(Direction::Up, *scroll).await,
            Command::ScrollId { id, direction } => {
                self.page.scroll_element(self.element(id)?, *direction).await
            }
            Command::ScrollCoords { point, direction } => self.scroll_point(*point, *direction).await,
            Command::HoverAndScrollCoords { point, direction } => {
                self.hover_and_scroll(*point, *direction).await
            }
            Command::Keypress { keys } => {
                let names: Vec<&str> = keys.iter().map(String::as_str).collect();
                self.use_keyboard(keys.len() > 1, self.page.input().press(&names)).await
            }
            Command::SetFiles { files, target } => self.set_files(files, target.as_ref()).await,
            Command::TypeText { text } => self.use_keyboard(false, self.page.input().type_text(text)).await,
            Command::KeyDown { key } => self.use_keyboard(false, self.page.input().key_pressed(key)).await,
            Command::KeyUp { key } => self.page.input().key_released(key).await,
            Command::MouseClick(click) => self.mouse_click(click).await,
            Command::MouseDown { point, button } => {
                self.page.input().press_button(self.check_point(*point)?, *button).await
            }
            Command::MouseMove { point } => self.page.move_mouse(self.check_point(*point)?).await,
            Command::MouseUp { point, button } => {
                self.page.release_mouse(self.check_point(*point)?, *button).await
            }
            Command::MouseWheel(wheel) => {
                let point = self.check_point(wheel.point)?;
                let input = self.page.input();
                input.with_modifiers(&wheel.keys, input.wheel_by(point, wheel.dx, wheel.dy)).await
            }
            Command::Drag(drag) => {
                let path =
                    drag.path.iter().map(|point| self.check_point(*point)).collect::<Result<Vec<_>, _>>()?;
                self.page.input().with_modifiers(&drag.keys, self.page.drag(&path, drag.button)).await
            }
            Command::TabAndEnter => {
                self.page.input().press(&["tab"]).await?;
                self.page.input().press(&["enter"]).await
            }
            Command::Sleep { seconds } => {
                let max = self.options.operation_timeout;
                let duration = Duration::try_from_secs_f64(*seconds).unwrap_or(max).min(max);
                match self.context.clock() {
                    Some(clock) => clock.request(duration.as_secs_f64() * 1000.0),
                    None => tokio::time::sleep(duration).await,
                }
                Ok(())
            }
            Command::ListTabs
            | Command::GetPageMetadata
            | Command::GetWebpageText { .. }
            | Command::GetInteractiveRects
            | Command::GetScreenshotInfo
            | Command::Screenshot { .. } => Ok(()),
        }
    }

    /// Sends keys. Those with modifiers may paste; then it waits until the paste is complete.
    async fn use_keyboard(
        &self,
        with_modifiers: bool,
        keys: impl Future<Output = Result<(), BrowserError>>,
    ) -> Result<(), BrowserError> {
        if !with_modifiers && !self.page.input().holds_modifiers() {
            return keys.await;
        }
        let _may_paste = self.context.clipboard().allow_paste();
        keys.await?;
        self.page.finish_paste().await
    }

    /// Clicks with any button. A plain left click on a row of an open drop-down selects the row.
    async fn mouse_click(&self, click: &MouseClick) -> Result<(), BrowserError> {
        if click.button == MouseButton::Left && click.clicks == 1 && click.keys.is_empty() {
            return self.click_point(click.point).await;
        }
        let point = self.check_point(click.point)?;
        let input = self.page.input();
        input.with_modifiers(&click.keys, input.click_with(point, click.button, click.clicks)).await
    }

    pub(super) async fn visit(&mut self, url: &str) -> Result<(), BrowserError> {
        self.page.visit(url).await?;
        if self.context.clock().is_some() {
            // The document loads while the clock runs, when it settles.
            return Ok(());
        }
        self.page.wait_loaded(self.options.load_timeout).await
    }

    fn check_point(&self, point: Point) -> Result<Point, BrowserError> {
        check_point(point, self.options.viewport)
    }

    /// Maps a mark id of the last set-of-marks screenshot to its element.
    fn element<'a>(&'a self, mark: &'a str) -> Result<ElementRef<'a>, BrowserError> {
        let not_found = |reason: String| BrowserError::ElementNotFound { id: mark.to_owned(), reason };
        let Some(last) = &self.last_marks else {
            return Err(not_found("take a set_of_marks screenshot first, its numbers are the ids".into()));
        };
        let id = last.info.id_mapping.get(mark).and_then(|id| id.as_str()).ok_or_else(|| {
            not_found(match last.info.visible_rects.len() {
                0 => "the last screenshot shows no elements".into(),
                count => format!("the last screenshot shows 1 to {count}"),
            })
        })?;
        if last.script_run.is_none() || last.script_run != self.page.script_run() {
            return Err(not_found("the page has changed since the last screenshot".into()));
        }
        Ok(ElementRef { mark, id })
    }

    /// Finds the point of an element. An option of a drop-down has none; it gets the corner of the page.
    async fn locate_point(&self, mark: &str) -> Result<Point, BrowserError> {
        let point = match self.page.locate(self.element(mark)?).await? {
            Location::Point(point) => point,
            Location::Option => Point { x: 0.0, y: 0.0 },
        };
        self.check_point(point)
    }

    /// Clicks a point. A row of an open drop-down exists only on screenshots, so it is selected instead.
    pub(super) async fn click_point(&self, point: Point) -> Result<(), BrowserError> {
        let point = self.check_point(point)?;
        if self.page.click_dropdown_row(point).await? {
            return Ok(());
        }
        self.page.input().click(point).await
    }

    pub(super) async fn click_id(&mut self, mark: &str) -> Result<(), BrowserError> {
        match self.page.locate(self.element(mark)?).await? {
            Location::Point(point) => self.page.input().click(self.check_point(point)?).await,
            Location::Option => self.select_option(mark).await,
        }
    }

    async fn select_option(&mut self, mark: &str) -> Result<(), BrowserError> {
        if self.page.choose_option(self.element(mark)?).await? {
            return Ok(());
        }
        let point = self.locate_point(mark).await?;
        self.page.input().click(point).await
    }

    async fn fill_point(&mut self, point: Point, fill: &Fill) -> Result<(), BrowserError> {
        self.page.input().click(self.check_point(point)?).await?;
        self.fill_focused(fill, None).await
    }

    async fn fill_id(&mut self, mark: &str, fill: &Fill) -> Result<(), BrowserError> {
        let point = self.locate_point(mark).await?;
        self.page.input().click(point).await?;
        // The click may have navigated; then the fill goes to whatever has the focus now.
        let Ok(element) = self.element(mark) else { return self.fill_focused(fill, None).await };
        // A click on the wrapper of a field does not always focus the field.
        self.page.focus_element(element).await?;
        self.fill_focused(fill, Some(element)).await
    }

    /// Fills the focused field, in the frame of `element` or in the page.
    async fn fill_focused(&self, fill: &Fill, element: Option<ElementRef<'_>>) -> Result<(), BrowserError> {
        match self.page.set_focused_value(&fill.value, element).await? {
            SetValue::Selected => return Ok(()),
            SetValue::Set => {}
            SetValue::MustType => self.type_value(fill).await?,
            SetValue::MustTypeKeys => {
                self.page.input().type_text(&fill.value).await?;
                self.page.finish_picker(&fill.value, element).await?;
            }
        }
        if fill.press_enter {
            self.page.input().press(&["enter"]).await?;
        }
        Ok(())
    }

    async fn type_value(&self, fill: &Fill) -> Result<(), BrowserError> {
        let input = self.page.input();
        if fill.delete_existing {
            input.press(&["ctrl", "a"]).await?;
            input.press(&["backspace"]).await?;
        }
        input.type_text(&fill.value).await
    }

    async fn scroll_page(&self, direction: Direction, scroll: Scroll) -> Result<(), BrowserError> {
        let full_page = f64::from(self.options.viewport.1) - PAGE_OVERLAP;
        let amount = if scroll.full_page { full_page } else { scroll.amount };
        self.page.input().wheel(PAGE_WHEEL_POINT, direction, amount).await
    }

    async fn scroll_point(&self, point: Point, direction: Direction) -> Result<(), BrowserError> {
        let point = self.check_point(point)?;
        if self.page.scroll_dropdown_at(point, direction).await? {
            return Ok(());
        }
        let (width, height) = self.options.viewport;
        let amount = match direction {
            Direction::Up | Direction::Down => f64::from(height) - PAGE_OVERLAP,
            Direction::Left | Direction::Right => f64::from(width) - PAGE_OVERLAP,
        };
        self.page.input().wheel(point, direction, amount).await
    }

    async fn hover_and_scroll(&self, point: Point, direction: Direction) -> Result<(), BrowserError> {
        let point = self.check_point(point)?;
        self.page.input().hover(point).await?;
        if self.page.scroll_at(point, direction).await? {
            return Ok(());
        }
        self.page.input().wheel(point, direction, WHEEL_STEP).await
    }
}

/// Whether a command sends mouse or keyboard input to the page.
fn sends_input(command: &Command) -> bool {
    !matches!(
        command,
        Command::VisitPage { .. }
            | Command::Back
            | Command::Forward
            | Command::OpenTab { .. }
            | Command::SwitchTab { .. }
            | Command::CloseTab { .. }
            | Command::Sleep { .. }
    )
}
