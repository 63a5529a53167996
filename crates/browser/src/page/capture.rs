//! The picture of the viewport, encoded by Chromium.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cdp::{Pending, protocol as p};
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

impl Page {
    /// Asks for the picture now; collect it later.
    pub(crate) fn start_capture(&self, format: ImageFormat) -> Pending {
        let mut params = json!({"format": format.as_str(), "optimizeForSpeed": true, "fromSurface": true});
        if format != ImageFormat::Png {
            params["quality"] = JPEG_QUALITY.into();
        }
        self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &params)
    }

    pub(crate) async fn finish_capture(&self, pending: Pending) -> Result<Shot, BrowserError> {
        let reply = pending.within(self.options.operation_limit).await?;
        let broken = |why: String| BrowserError::Internal(format!("the screenshot is broken: {why}"));
        let encoded: Encoded<'_> =
            serde_json::from_slice(reply.raw()).map_err(|error| broken(error.to_string()))?;
        let bytes = STANDARD.decode(encoded.data).map_err(|error| broken(error.to_string()))?;
        Ok(Shot(bytes.into()))
    }
}
