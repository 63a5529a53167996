//! Screenshots of the viewport, encoded by Chromium.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cdp::protocol as p;
use proto::ImageFormat;
use serde::Deserialize;
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

#[derive(Deserialize)]
struct CaptureReply<'a> {
    data: &'a str,
}

const JPEG_QUALITY: u32 = 80;

/// A capture may never be answered if the page navigates meanwhile. It is repeated this long after the navigation.
const RECAPTURE_DELAY: Duration = Duration::from_millis(500);

impl Page {
    /// Captures the viewport: of the current document, or of the next one if the page navigates meanwhile.
    pub(crate) async fn capture(&self, format: ImageFormat) -> Result<Bytes, BrowserError> {
        let deadline = Instant::now() + self.options.operation_timeout;
        loop {
            let document = self.document();
            tokio::select! {
                biased;
                image = self.capture_once(format, deadline) => return image,
                () = self.navigated_away(document) => tracing::debug!("the page navigated during a capture; repeating it"),
            }
        }
    }

    /// Waits until the page has left `document`, and for the recapture delay.
    async fn navigated_away(&self, document: u64) {
        self.tracker.wait_until(|state| state.document != document).await;
        tokio::time::sleep(RECAPTURE_DELAY).await;
    }

    async fn capture_once(&self, format: ImageFormat, deadline: Instant) -> Result<Bytes, BrowserError> {
        let mut params = json!({"format": format.as_str(), "optimizeForSpeed": true, "fromSurface": true});
        // A screenshot has CSS pixels, like the points of commands, whatever the device scale factor is.
        if let Some(scale) = self.options.session.device_scale_factor {
            let (width, height) = self.options.viewport;
            params["clip"] = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1.0 / scale});
        }
        if format != ImageFormat::Png {
            params["quality"] = JPEG_QUALITY.into();
        }
        let reply = self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &params).until(deadline).await?;
        let invalid = |reason: String| BrowserError::Internal(format!("the screenshot is invalid: {reason}"));
        let capture: CaptureReply<'_> =
            serde_json::from_slice(reply.raw()).map_err(|error| invalid(error.to_string()))?;
        let bytes = STANDARD.decode(capture.data).map_err(|error| invalid(error.to_string()))?;
        Ok(bytes.into())
    }
}
