//! Looking at the page: picture, metadata and elements, asked for together and in one go.

use bytes::Bytes;
use proto::{
    ImageFormat, InteractionMode,
    page::{PageMetadata, ScreenshotInfo},
};

use super::{Instance, Shown, tabs::closed};
use crate::{error::BrowserError, marks, page::elements::MarkedElement};

/// What an observation should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveRequest {
    pub mode: InteractionMode,
    pub format: ImageFormat,
    pub screenshot: bool,
    pub metadata: bool,
    /// The interactive elements; in set-of-marks mode they come with the screenshot anyway, and their numbers are
    /// valid from then on with or without one.
    pub elements: bool,
}

impl ObserveRequest {
    pub fn screenshot(mode: InteractionMode) -> Self {
        Self { mode, format: ImageFormat::Png, screenshot: true, metadata: false, elements: false }
    }
}

/// An encoded picture of the viewport.
#[derive(Clone, Debug)]
pub struct Screenshot {
    pub format: ImageFormat,
    pub width: u32,
    pub height: u32,
    pub bytes: Bytes,
}

#[derive(Clone, Debug, Default)]
pub struct Observation {
    pub screenshot: Option<Screenshot>,
    pub metadata: Option<PageMetadata>,
    pub elements: Option<ScreenshotInfo>,
}

impl Instance {
    pub async fn observe(&mut self, request: &ObserveRequest) -> Result<Observation, BrowserError> {
        self.keep_up().await?;
        let seen = self.observe_once(request).await;
        if closed(&seen) {
            self.catch_up().await?;
            return self.observe_once(request).await;
        }
        seen
    }

    async fn observe_once(&mut self, request: &ObserveRequest) -> Result<Observation, BrowserError> {
        let set_of_marks = request.mode == InteractionMode::SetOfMarks;
        let marked = request.screenshot && set_of_marks;
        let mut seen = Observation::default();
        let (picture, collected, metadata) = tokio::join!(
            async {
                if !request.screenshot || marked {
                    return Ok(None);
                }
                self.capture(request.format).await.map(Some)
            },
            async { if request.elements || marked { self.page.collect().await.map(Some) } else { Ok(None) } },
            async { if request.metadata { self.page.metadata().await.map(Some) } else { Ok(None) } },
        );
        seen.screenshot = picture?;
        seen.metadata = metadata?;
        if let Some(collected) = collected? {
            let (info, marks) = collected.number();
            let agent = self.page.agent();
            if marked {
                // The picture is taken after the elements were listed, so that each number is on what it names.
                seen.screenshot = Some(self.capture_marked(request.format, marks).await?);
            }
            if set_of_marks {
                self.shown = Some(Shown { info: info.clone(), agent });
            }
            seen.elements = Some(info);
        }
        Ok(seen)
    }

    /// The viewport as it is; an open drop-down is part of that, though Chromium shows it in a window of its own.
    async fn capture(&self, format: ImageFormat) -> Result<Screenshot, BrowserError> {
        // Asked for together: there is hardly ever a list open.
        let (shot, rows) = tokio::try_join!(self.page.picture(format), self.page.open_rows())?;
        if rows.is_empty() {
            let (width, height) = self.options.viewport;
            return Ok(Screenshot { format, width, height, bytes: shot.0 });
        }
        self.paint(format, move |plain| marks::draw_rows(plain, &rows, format)).await
    }

    async fn capture_marked(
        &self,
        format: ImageFormat,
        marks: Vec<MarkedElement>,
    ) -> Result<Screenshot, BrowserError> {
        self.paint(format, move |plain| marks::annotate(plain, &marks, format)).await
    }

    /// Takes a picture and has it painted on, off the async threads.
    async fn paint(
        &self,
        format: ImageFormat,
        brush: impl FnOnce(&[u8]) -> Result<marks::Drawn, String> + Send + 'static,
    ) -> Result<Screenshot, BrowserError> {
        let plain = self.page.picture(ImageFormat::Png).await?.0;
        let drawn = tokio::task::spawn_blocking(move || brush(&plain)).await;
        let drawn =
            drawn.map_err(|error| BrowserError::Internal(format!("drawing the marks failed: {error}")))?;
        let drawn = drawn.map_err(BrowserError::Internal)?;
        Ok(Screenshot { format, width: drawn.width, height: drawn.height, bytes: drawn.bytes.into() })
    }
}
