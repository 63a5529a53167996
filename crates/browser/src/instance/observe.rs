//! Observation of the page: screenshot, metadata and elements, requested together.

use bytes::Bytes;
use proto::{
    ImageFormat, InteractionMode,
    page::{PageMetadata, Rect, ScreenshotInfo, TabInfo},
};

use super::{Instance, LastMarks, tabs::is_page_closed};
use crate::{
    error::BrowserError,
    marks,
    page::{
        ActionStart, View,
        elements::{Mark, RowText},
    },
};

/// What an observation should contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObserveRequest {
    pub mode: InteractionMode,
    pub format: ImageFormat,
    pub screenshot: bool,
    pub metadata: bool,
    /// The interactive elements. In set-of-marks mode a screenshot includes them anyway; their mark ids are valid from then
    /// on, with or without a screenshot.
    pub elements: bool,
    /// The part of the viewport that a screenshot without marks shows, and its scale; `None` is the whole at scale 1.
    pub view: Option<View>,
}

impl ObserveRequest {
    /// Requests a PNG screenshot and nothing else.
    pub fn screenshot(mode: InteractionMode) -> Self {
        Self {
            mode,
            format: ImageFormat::Png,
            screenshot: true,
            metadata: false,
            elements: false,
            view: None,
        }
    }
}

/// An encoded screenshot of the viewport.
#[derive(Clone, Debug)]
pub struct Screenshot {
    pub format: ImageFormat,
    pub width: u32,
    pub height: u32,
    pub bytes: Bytes,
}

/// The requested parts of an observation.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    pub screenshot: Option<Screenshot>,
    pub metadata: Option<PageMetadata>,
    pub elements: Option<ScreenshotInfo>,
    /// The tabs, if the session has many.
    pub tabs: Option<Vec<TabInfo>>,
}

/// Who asks for the rows of an open drop-down and the metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Details {
    Included,
    /// The caller asks for them after the screenshot.
    Left,
}

impl Instance {
    pub async fn observe(&mut self, request: &ObserveRequest) -> Result<Observation, BrowserError> {
        self.observe_with(request, Details::Included).await
    }

    /// Observes a page that was found quiet after an action. Returns `None` if it has changed since.
    pub(super) async fn observe_quiet(
        &mut self,
        start: ActionStart,
        request: &ObserveRequest,
    ) -> Result<Option<Observation>, BrowserError> {
        let document = self.page.document();
        let mut observation = self.observe_with(request, Details::Left).await?;
        let Some(quiet) = self.page.describe_quiet(start, document).await? else { return Ok(None) };
        observation.metadata = request.metadata.then_some(quiet.metadata);
        let is_plain = request.screenshot && request.mode != InteractionMode::SetOfMarks;
        if is_plain && !quiet.rows.is_empty() {
            observation.screenshot =
                Some(self.capture_with_rows(request.format, request.view, quiet.rows).await?);
        }
        Ok(Some(observation))
    }

    async fn observe_with(
        &mut self,
        request: &ObserveRequest,
        details: Details,
    ) -> Result<Observation, BrowserError> {
        self.sync_page().await?;
        let observation = self.observe_once(request, details).await;
        if is_page_closed(&observation) {
            self.recover_closed_page().await?;
            return self.observe_once(request, details).await;
        }
        observation
    }

    async fn observe_once(
        &mut self,
        request: &ObserveRequest,
        details: Details,
    ) -> Result<Observation, BrowserError> {
        let set_of_marks = request.mode == InteractionMode::SetOfMarks;
        let draw_marks = request.screenshot && set_of_marks;
        let mut observation = Observation { tabs: self.observe_tabs().await?, ..Observation::default() };
        let (screenshot, collected, metadata) = tokio::join!(
            async {
                if !request.screenshot || draw_marks {
                    return Ok(None);
                }
                self.capture(request, details).await.map(Some)
            },
            async {
                if request.elements || draw_marks {
                    self.page.collect_elements().await.map(Some)
                } else {
                    Ok(None)
                }
            },
            async {
                if request.metadata && details == Details::Included {
                    self.page.metadata().await.map(Some)
                } else {
                    Ok(None)
                }
            },
        );
        observation.screenshot = screenshot?;
        observation.metadata = metadata?;
        if let Some(collected) = collected? {
            let (info, marks) = collected.number();
            let script_run = self.page.script_run();
            if draw_marks {
                // Captured after the elements were collected, so that each mark is on the element it belongs to.
                observation.screenshot = Some(self.capture_with_marks(request.format, marks).await?);
            }
            if set_of_marks {
                self.last_marks = Some(LastMarks { info: info.clone(), script_run });
            }
            observation.elements = Some(info);
        }
        Ok(observation)
    }

    /// Captures the viewport. The rows of an open drop-down are drawn onto it, because Chromium shows them in a separate
    /// window.
    async fn capture(&self, request: &ObserveRequest, details: Details) -> Result<Screenshot, BrowserError> {
        let ObserveRequest { format, view, .. } = *request;
        let rows = async {
            match details {
                Details::Included => self.page.open_dropdown_rows().await,
                Details::Left => Ok(Vec::new()),
            }
        };
        // Concurrently, because a drop-down is rarely open.
        let (bytes, rows) = tokio::try_join!(self.page.capture(format, view), rows)?;
        if rows.is_empty() {
            let (width, height) = view.map_or(self.options.viewport, |view| view.size());
            return Ok(Screenshot { format, width, height, bytes });
        }
        self.capture_with_rows(format, view, rows).await
    }

    async fn capture_with_rows(
        &self,
        format: ImageFormat,
        view: Option<View>,
        rows: Vec<(Rect, RowText)>,
    ) -> Result<Screenshot, BrowserError> {
        let to_view = |rect: Rect| view.map_or(rect, |view| view.place(rect));
        let rows: Vec<_> = rows.into_iter().map(|(rect, row)| (to_view(rect), row)).collect();
        self.capture_and_draw(format, view, move |png| marks::draw_rows(png, &rows, format)).await
    }

    async fn capture_with_marks(
        &self,
        format: ImageFormat,
        marks: Vec<Mark>,
    ) -> Result<Screenshot, BrowserError> {
        self.capture_and_draw(format, None, move |png| marks::draw_marks(png, &marks, format)).await
    }

    /// Captures the viewport and draws onto it, outside the async threads.
    async fn capture_and_draw(
        &self,
        format: ImageFormat,
        view: Option<View>,
        draw: impl FnOnce(&[u8]) -> Result<marks::DrawnImage, String> + Send + 'static,
    ) -> Result<Screenshot, BrowserError> {
        let png = self.page.capture(ImageFormat::Png, view).await?;
        let drawn = tokio::task::spawn_blocking(move || draw(&png)).await;
        let drawn =
            drawn.map_err(|error| BrowserError::Internal(format!("drawing the marks failed: {error}")))?;
        let drawn = drawn.map_err(BrowserError::Internal)?;
        Ok(Screenshot { format, width: drawn.width, height: drawn.height, bytes: drawn.bytes.into() })
    }
}
