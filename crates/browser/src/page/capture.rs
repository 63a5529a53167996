//! Screenshots of the viewport, encoded by Chromium.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cdp::{CallError, protocol as p};
use proto::{ImageFormat, page::Rect};
use serde::Deserialize;
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

/// Which part of the viewport a screenshot shows, and how large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// In CSS pixels of the viewport.
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    /// Pixels of the screenshot for each CSS pixel.
    pub scale: f64,
}

impl View {
    /// Returns the size of the screenshot.
    pub(crate) fn size(&self) -> (u32, u32) {
        let side = |length: f64| (length * self.scale).round() as u32;
        (side(self.width), side(self.height))
    }

    /// Converts a rectangle of the viewport to pixels of the screenshot.
    pub(crate) fn place(&self, rect: Rect) -> Rect {
        let scale = self.scale;
        Rect::new(
            (rect.x - self.x) * scale,
            (rect.y - self.y) * scale,
            rect.width * scale,
            rect.height * scale,
        )
    }
}

#[derive(Deserialize)]
struct CaptureReply<'a> {
    data: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutMetrics {
    css_visual_viewport: VisualViewport,
}

/// Where the viewport is on the page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VisualViewport {
    page_x: f64,
    page_y: f64,
}

const JPEG_QUALITY: u32 = 80;

/// A capture may never be answered if the page navigates meanwhile. It is repeated this long after the navigation.
const RECAPTURE_DELAY: Duration = Duration::from_millis(500);

/// While a navigation moves the page to another process, the browser rejects captures. They are repeated this often, as
/// long as the navigation lasts; if none is in progress, this long.
const REJECTION_DELAY: Duration = Duration::from_millis(20);
const MAX_REJECTION_TIME: Duration = Duration::from_secs(10);

impl Page {
    /// Captures the viewport, or a view of it: of the current document, or of the next one if the page navigates meanwhile.
    pub(crate) async fn capture(
        &self,
        format: ImageFormat,
        view: Option<View>,
    ) -> Result<Bytes, BrowserError> {
        let start = Instant::now();
        let deadline = start + self.options.operation_timeout;
        loop {
            let document = self.document();
            tokio::select! {
                biased;
                image = self.capture_once(format, view, deadline) => match image {
                    Err(CallError::Rejected { message, .. }) => {
                        let after = start.elapsed();
                        let is_passing = after < MAX_REJECTION_TIME || self.tracker.state().is_navigating();
                        if !is_passing || Instant::now() >= deadline {
                            let operation = format!("the browser refuses to capture it: {message}");
                            return Err(BrowserError::Timeout { operation, after });
                        }
                        tracing::debug!(message, "the browser cannot capture the page now; repeating it");
                        tokio::time::sleep(REJECTION_DELAY).await;
                    }
                    image => return Ok(image?),
                },
                () = self.navigated_away(document) => tracing::debug!("the page navigated during a capture; repeating it"),
            }
        }
    }

    fn whole_view(&self) -> View {
        let (width, height) = self.options.viewport;
        View { x: 0.0, y: 0.0, width: f64::from(width), height: f64::from(height), scale: 1.0 }
    }

    /// Waits until the page has left `document`, and for the recapture delay.
    async fn navigated_away(&self, document: u64) {
        self.tracker.wait_until(|state| state.document != document).await;
        tokio::time::sleep(RECAPTURE_DELAY).await;
    }

    async fn capture_once(
        &self,
        format: ImageFormat,
        view: Option<View>,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        let mut params = json!({"format": format.as_str(), "optimizeForSpeed": true, "fromSurface": true});
        // A screenshot has CSS pixels, like the points of commands, whatever the device scale factor is.
        let device_scale = self.options.session.device_scale_factor;
        if view.is_some() || device_scale.is_some() {
            let view = view.unwrap_or_else(|| self.whole_view());
            // The browser wants the place on the page, not in the viewport.
            let metrics = self.session.send(p::PAGE_GET_LAYOUT_METRICS, &json!({})).until(deadline).await?;
            let metrics: LayoutMetrics = metrics.decode()?;
            let VisualViewport { page_x, page_y } = metrics.css_visual_viewport;
            params["clip"] = json!({
                "x": page_x + view.x, "y": page_y + view.y, "width": view.width, "height": view.height,
                "scale": view.scale / device_scale.unwrap_or(1.0),
            });
        }
        if format != ImageFormat::Png {
            params["quality"] = JPEG_QUALITY.into();
        }
        let reply = self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &params).until(deadline).await?;
        let invalid = |reason: String| CallError::InvalidReply { method: p::PAGE_CAPTURE_SCREENSHOT, reason };
        let capture: CaptureReply<'_> =
            serde_json::from_slice(reply.raw()).map_err(|error| invalid(error.to_string()))?;
        let bytes = STANDARD.decode(capture.data).map_err(|error| invalid(error.to_string()))?;
        Ok(bytes.into())
    }
}
