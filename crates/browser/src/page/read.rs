//! Reading a page: its title, address and structured data, its text, its size.

use proto::page::PageMetadata;
use serde::Deserialize;
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

#[derive(Deserialize)]
struct Size {
    width: u32,
    height: u32,
}

impl Page {
    /// Always an answer with title and address, also from a page too busy to speak.
    pub(crate) async fn metadata(&self) -> Result<PageMetadata, BrowserError> {
        match self.ask::<PageMetadata>("metadata", &json!([])).await {
            Ok(metadata) => {
                let known = PageMetadata::new(&metadata.title, &metadata.url);
                Ok(PageMetadata { title: known.title, url: known.url, ..metadata })
            }
            Err(BrowserError::Timeout { .. }) => Ok(PageMetadata::new("", &self.url())),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn text(&self, lines: usize) -> Result<String, BrowserError> {
        self.ask("text", &json!([lines])).await
    }

    /// The viewport as the page itself sees it.
    pub(crate) async fn size(&self) -> Result<(u32, u32), BrowserError> {
        let Size { width, height } = self.ask("size", &json!([])).await?;
        Ok((width, height))
    }
}
