//! Observation and step put together from the plain calls, for a farm that has nothing better.

use proto::{
    Command, ImageFormat,
    page::{PageMetadata, ScreenshotInfo},
};
use serde_json::Value;

use super::{
    ClientError, FarmClient, Lease, Observation, ObserveOptions, Screenshot, wire::read_screenshot_info,
};
use crate::http::Deadline;

impl FarmClient {
    /// Screenshot, elements, title and address, one call each.
    pub async fn plain_observe(
        &self,
        lease: &Lease,
        look: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        let mut observed = Observation::default();
        if look.screenshot {
            let data = self.screenshot(lease, look.mode, deadline).await?;
            let (width, height) = png_size(&data);
            observed.screenshot = Some(Screenshot { format: ImageFormat::Png, width, height, data });
        }
        if look.ac_tree {
            let info = self.execute(lease, &Command::GetScreenshotInfo, deadline).await?;
            observed.ac_tree = read_screenshot_info(&info).as_ref().map(ScreenshotInfo::ac_tree);
            observed.screenshot_info = Some(info);
        }
        if look.metadata {
            observed.metadata = Some(self.page_metadata(lease, deadline).await?);
        }
        Ok(observed)
    }

    /// Title and address of the page.
    pub async fn page_metadata(
        &self,
        lease: &Lease,
        deadline: Deadline,
    ) -> Result<PageMetadata, ClientError> {
        let body = self.execute(lease, &Command::GetPageMetadata, deadline).await?;
        let word = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let known = PageMetadata::new(word("title"), word("url"));
        let extra = |name: &str| body.get(name).filter(|value| !value.is_null()).cloned();
        Ok(PageMetadata {
            meta_tags: extra("meta_tags"),
            jsonld: extra("jsonld"),
            microdata: extra("microdata"),
            ..known
        })
    }

    /// A command, then a look. A command that failed by itself is told beside what is seen.
    pub async fn plain_step(
        &self,
        lease: &Lease,
        command: &Command,
        look: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        let (result, failure) = match self.execute(lease, command, deadline).await {
            Ok(result) => (Some(result), None),
            Err(error) if error.is_infrastructure() => return Err(error),
            Err(error) => (None, Some(error)),
        };
        let observed = self.plain_observe(lease, look, deadline).await?;
        Ok(Observation { result, failure, ..observed })
    }
}

/// Width and height out of the picture's header.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
        four.map_or(0, u32::from_be_bytes)
    };
    (number(16), number(20))
}
