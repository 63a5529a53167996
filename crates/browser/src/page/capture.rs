//! The picture of the viewport, encoded by Chromium.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cdp::protocol as p;
use proto::ImageFormat;
use serde::Deserialize;
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

/// Encoded image bytes, straight from the browser.
pub(crate) struct Shot(pub(crate) Bytes);

#[derive(Deserialize)]
struct Encoded<'a> {
    data: &'a str,
}

const JPEG_QUALITY: u32 = 80;

/// A picture of a page that has gone on to another may never come; after this it is asked for again.
const PATIENCE: Duration = Duration::from_millis(500);

impl Page {
    /// The viewport as it is now, or as the next page has it if the page goes on meanwhile.
    pub(crate) async fn picture(&self, format: ImageFormat) -> Result<Shot, BrowserError> {
        let end = Instant::now() + self.options.operation_timeout;
        loop {
            let document = self.document();
            let shot = self.shot(format, end);
            tokio::select! {
                biased;
                shot = shot => return shot,
                () = self.stuck(document) => tracing::debug!("the page went on while its picture was taken"),
            }
        }
    }

    /// Waits until the page has gone on from `document`, and a moment longer.
    async fn stuck(&self, document: u64) {
        self.tracker.until(|state| state.document != document).await;
        tokio::time::sleep(PATIENCE).await;
    }

    async fn shot(&self, format: ImageFormat, end: Instant) -> Result<Shot, BrowserError> {
        let mut params = json!({"format": format.as_str(), "optimizeForSpeed": true, "fromSurface": true});
        if format != ImageFormat::Png {
            params["quality"] = JPEG_QUALITY.into();
        }
        let reply = self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &params).until(end).await?;
        let broken = |why: String| BrowserError::Internal(format!("the screenshot is broken: {why}"));
        let encoded: Encoded<'_> =
            serde_json::from_slice(reply.raw()).map_err(|error| broken(error.to_string()))?;
        let bytes = STANDARD.decode(encoded.data).map_err(|error| broken(error.to_string()))?;
        Ok(Shot(bytes.into()))
    }
}
