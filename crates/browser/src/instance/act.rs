//! The commands that change something, one small function each.

use std::time::Duration;

use proto::{
    Command,
    command::{Direction, Fill, Point, Scroll},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Instance;
use crate::{error::BrowserError, input::mouse::inside, page::frames::split};

const WHEEL_FROM: Point = Point { x: 10.0, y: 10.0 };
/// What a full page of scrolling leaves in sight of the page before.
const OVERLAP: f64 = 50.0;
/// A wheel turn over something that does not scroll by itself.
const WHEEL_STEP: f64 = 100.0;
/// An element that is not there is said within about a second.
const LOCATE_LIMIT: Duration = Duration::from_secs(5);

/// A page that does not say in this time whether it has a list open has none.
const ROW_LIMIT: Duration = Duration::from_secs(2);

/// What the page says about an element we mean to act on.
#[derive(Deserialize)]
struct Located {
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
    /// It is an option of a drop-down: there is nothing to click, only to choose.
    #[serde(default)]
    option: bool,
    missing: Option<String>,
}

#[derive(Deserialize)]
struct Done {
    missing: Option<String>,
    #[serde(default)]
    click: bool,
    #[serde(default)]
    wheel: bool,
}

impl Instance {
    pub(super) async fn act(&mut self, command: &Command) -> Result<(), BrowserError> {
        match command {
            Command::VisitPage { url } => self.visit(url).await,
            Command::Back => self.page.back().await,
            Command::ClickCoords { point } => self.click_at(*point).await,
            Command::ClickId { id } => self.click_id(id).await,
            Command::FillCoords { point, fill } => self.fill_at(*point, fill).await,
            Command::FillId { id, fill } => self.fill_id(id, fill).await,
            Command::SelectOption { id } => self.select_option(id).await,
            Command::HoverCoords { point } => self.page.hover(inside(*point, &self.options)?).await,
            Command::HoverId { id } => {
                let at = self.locate(id).await?;
                self.page.hover(at).await
            }
            Command::PageDown(scroll) => self.scroll_page(Direction::Down, *scroll).await,
            Command::PageUp(scroll) => self.scroll_page(Direction::Up, *scroll).await,
            Command::ScrollId { id, direction } => self.scroll_id(id, *direction).await,
            Command::ScrollCoords { point, direction } => self.scroll_coords(*point, *direction).await,
            Command::HoverAndScrollCoords { point, direction } => {
                self.hover_and_scroll(*point, *direction).await
            }
            Command::Keypress { keys } => {
                self.page.press(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await
            }
            Command::TabAndEnter => {
                self.page.press(&["tab"]).await?;
                self.page.press(&["enter"]).await
            }
            Command::Sleep { seconds } => {
                let limit = self.options.operation_timeout;
                tokio::time::sleep(Duration::try_from_secs_f64(*seconds).unwrap_or(limit).min(limit)).await;
                Ok(())
            }
            Command::GetPageMetadata
            | Command::GetWebpageText { .. }
            | Command::GetInteractiveRects
            | Command::GetScreenshotInfo
            | Command::Screenshot { .. } => Ok(()),
        }
    }

    async fn visit(&mut self, url: &str) -> Result<(), BrowserError> {
        self.page.visit(url).await?;
        self.page.loaded(self.options.load_timeout).await
    }

    /// The element id behind a number on the last set-of-marks screenshot.
    fn element(&self, shown: &str) -> Result<&str, BrowserError> {
        let not_found = |why: String| BrowserError::ElementNotFound { id: shown.to_owned(), why };
        let Some(last) = &self.shown else {
            return Err(not_found("take a set_of_marks screenshot first, its numbers are the ids".into()));
        };
        let element = last.info.id_mapping.get(shown).and_then(|id| id.as_str()).ok_or_else(|| {
            not_found(match last.info.visible_rects.len() {
                0 => "the last screenshot shows no elements".into(),
                most => format!("the last screenshot shows 1 to {most}"),
            })
        })?;
        if last.agent.is_none() || last.agent != self.page.agent() {
            return Err(not_found("the page has changed since the last screenshot".into()));
        }
        Ok(element)
    }

    async fn find(&self, shown: &str) -> Result<Located, BrowserError> {
        let element = self.element(shown)?;
        let located: Located = self.page.ask_about(LOCATE_LIMIT, "locate", element, &[]).await?;
        present(shown, located.missing.clone())?;
        match self.page.on_page(element, (located.x, located.y)).await? {
            Some((x, y)) => Ok(Located { x, y, ..located }),
            None => {
                Err(BrowserError::ElementNotFound { id: shown.to_owned(), why: "its frame is gone".into() })
            }
        }
    }

    async fn locate(&self, shown: &str) -> Result<Point, BrowserError> {
        let located = self.find(shown).await?;
        inside(Point { x: located.x, y: located.y }, &self.options)
    }

    /// Clicks a point; on a row of an open drop-down, which is there in pictures only, it chooses.
    async fn click_at(&self, at: Point) -> Result<(), BrowserError> {
        let at = inside(at, &self.options)?;
        match self.page.ask_within(ROW_LIMIT, "clickRow", &json!([at.x, at.y])).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(BrowserError::Timeout { .. }) => self.page.click(at).await,
            Err(error) => Err(error),
        }
    }

    async fn click_id(&mut self, shown: &str) -> Result<(), BrowserError> {
        let located = self.find(shown).await?;
        if located.option {
            return self.select_option(shown).await;
        }
        self.page.click(inside(Point { x: located.x, y: located.y }, &self.options)?).await
    }

    async fn select_option(&mut self, shown: &str) -> Result<(), BrowserError> {
        let element = self.element(shown)?;
        let done: Done = self.page.ask_about(LOCATE_LIMIT, "choose", element, &[]).await?;
        present(shown, done.missing)?;
        if done.click {
            let at = self.locate(shown).await?;
            self.page.click(at).await?;
        }
        Ok(())
    }

    async fn fill_at(&mut self, at: Point, fill: &Fill) -> Result<(), BrowserError> {
        self.page.click(inside(at, &self.options)?).await?;
        self.page.fill(fill, None).await
    }

    async fn fill_id(&mut self, shown: &str, fill: &Fill) -> Result<(), BrowserError> {
        let at = self.locate(shown).await?;
        self.page.click(at).await?;
        // A click on a field's wrapper does not always give the field the focus; it may also lead elsewhere.
        let Ok(element) = self.element(shown) else { return self.page.fill(fill, None).await };
        let limit = self.options.operation_timeout;
        let _: Value = self.page.ask_about(limit, "focusOn", element, &[]).await?;
        self.page.fill(fill, split(element).0).await
    }

    async fn scroll_page(&self, direction: Direction, scroll: Scroll) -> Result<(), BrowserError> {
        let page = f64::from(self.options.viewport.1) - OVERLAP;
        let amount = if scroll.full_page { page } else { scroll.amount };
        self.page.wheel(WHEEL_FROM, direction, amount).await
    }

    async fn scroll_id(&self, shown: &str, direction: Direction) -> Result<(), BrowserError> {
        let element = self.element(shown)?;
        let limit = self.options.operation_timeout;
        let done: Done =
            self.page.ask_about(limit, "scrollId", element, &[direction.as_str().into()]).await?;
        present(shown, done.missing)
    }

    async fn scroll_coords(&self, at: Point, direction: Direction) -> Result<(), BrowserError> {
        let at = inside(at, &self.options)?;
        if self.page.ask("scrollRowsAt", &json!([at.x, at.y, direction.as_str()])).await? {
            return Ok(());
        }
        let (width, height) = self.options.viewport;
        let page = match direction {
            Direction::Up | Direction::Down => f64::from(height) - OVERLAP,
            Direction::Left | Direction::Right => f64::from(width) - OVERLAP,
        };
        self.page.wheel(at, direction, page).await
    }

    async fn hover_and_scroll(&self, at: Point, direction: Direction) -> Result<(), BrowserError> {
        let at = inside(at, &self.options)?;
        self.page.hover(at).await?;
        let done: Done = self.page.ask("scrollAt", &json!([at.x, at.y, direction.as_str()])).await?;
        if done.wheel {
            self.page.wheel(at, direction, WHEEL_STEP).await?;
        }
        Ok(())
    }
}

fn present(shown: &str, missing: Option<String>) -> Result<(), BrowserError> {
    match missing {
        Some(why) => Err(BrowserError::ElementNotFound { id: shown.to_owned(), why }),
        None => Ok(()),
    }
}
