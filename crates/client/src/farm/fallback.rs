//! Observation and step with one request per part, for a farm without `/observe` and `/step`.

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
    /// Requests screenshot, elements and page metadata one by one.
    pub async fn observe_in_parts(
        &self,
        lease: &Lease,
        options: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        let mut observation = Observation::default();
        if options.screenshot {
            let data = self.screenshot(lease, options.mode, deadline).await?;
            let (width, height) = png_size(&data);
            observation.screenshot = Some(Screenshot { format: ImageFormat::Png, width, height, data });
        }
        if options.ac_tree {
            let info = self.execute(lease, &Command::GetScreenshotInfo, deadline).await?;
            observation.ac_tree = read_screenshot_info(&info).as_ref().map(ScreenshotInfo::ac_tree);
            observation.screenshot_info = Some(info);
        }
        if options.metadata {
            observation.metadata = Some(self.page_metadata(lease, deadline).await?);
        }
        Ok(observation)
    }

    /// Returns title and URL of the page.
    pub async fn page_metadata(
        &self,
        lease: &Lease,
        deadline: Deadline,
    ) -> Result<PageMetadata, ClientError> {
        let body = self.execute(lease, &Command::GetPageMetadata, deadline).await?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let known = PageMetadata::new(text("title"), text("url"));
        let extra = |name: &str| body.get(name).filter(|value| !value.is_null()).cloned();
        Ok(PageMetadata {
            meta_tags: extra("meta_tags"),
            jsonld: extra("jsonld"),
            microdata: extra("microdata"),
            ..known
        })
    }

    /// Executes a command, then observes the page, even when the command failed.
    pub async fn step_in_parts(
        &self,
        lease: &Lease,
        command: &Command,
        options: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        let (result, failure) = match self.execute(lease, command, deadline).await {
            Ok(result) => (Some(result), None),
            Err(error) if error.is_infrastructure() => return Err(error),
            Err(error) => (None, Some(error)),
        };
        let observation = self.observe_in_parts(lease, options, deadline).await?;
        Ok(Observation { result, failure, ..observation })
    }
}

/// Reads width and height from the PNG header.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    let number = |offset: usize| {
        let four = bytes.get(offset..offset + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
        four.map_or(0, u32::from_be_bytes)
    };
    (number(16), number(20))
}
