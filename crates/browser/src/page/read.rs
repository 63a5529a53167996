//! Reads a page: title, URL and structured data, text, viewport size.

use proto::page::PageMetadata;
use serde::Deserialize;
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

#[derive(Deserialize)]
struct ViewportSize {
    width: u32,
    height: u32,
}

/// Replaces an empty title by its placeholder.
pub(super) fn checked_metadata(metadata: PageMetadata) -> PageMetadata {
    let checked = PageMetadata::new(&metadata.title, &metadata.url);
    PageMetadata { title: checked.title, url: checked.url, ..metadata }
}

impl Page {
    /// Returns the metadata. A page that is too busy to answer still gets its URL and a placeholder title.
    pub(crate) async fn metadata(&self) -> Result<PageMetadata, BrowserError> {
        match self.call_script::<PageMetadata>("metadata", &json!([])).await {
            Ok(metadata) => Ok(checked_metadata(metadata)),
            Err(BrowserError::Timeout { .. }) => Ok(PageMetadata::new("", &self.url())),
            Err(error) => Err(error),
        }
    }

    /// Returns the first lines of the page's text that are not empty.
    pub(crate) async fn text(&self, max_lines: usize) -> Result<String, BrowserError> {
        self.call_script("text", &json!([max_lines])).await
    }

    /// Returns the size of the viewport, as the page sees it.
    pub(crate) async fn viewport_size(&self) -> Result<(u32, u32), BrowserError> {
        let ViewportSize { width, height } = self.call_script("viewportSize", &json!([])).await?;
        Ok((width, height))
    }
}
