//! The page that checks look at, while the session of its episode is still open.

use client::{
    farm::{CdpUrl, FarmClient, Lease},
    http::Deadline,
};
use futures_util::future::BoxFuture;
use proto::Command;
use serde_json::Value;

/// Lines of a page's text that are searched.
const MAX_TEXT_LINES: usize = 100_000;

/// The page at the end of an episode. Errors are reasons why a check cannot be made.
pub trait JudgedPage: Send + Sync {
    fn url(&self) -> BoxFuture<'_, Result<String, String>>;

    /// Returns the visible text.
    fn text(&self) -> BoxFuture<'_, Result<String, String>>;

    /// Evaluates an expression in the page; a promise is awaited.
    fn evaluate<'a>(&'a self, expression: &'a str) -> BoxFuture<'a, Result<Value, String>>;

    /// Returns the address at which a CDP client can drive the session.
    fn cdp_url(&self) -> Option<&str>;
}

/// The page of a lease of a farm.
pub struct FarmPage<'a> {
    pub farm: &'a FarmClient,
    pub lease: &'a Lease,
    pub cdp_url: Option<&'a CdpUrl>,
    pub deadline: Deadline,
}

impl JudgedPage for FarmPage<'_> {
    fn url(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async {
            let metadata = self.farm.page_metadata(self.lease, self.deadline).await;
            metadata.map(|metadata| metadata.url).map_err(|error| error.to_string())
        })
    }

    fn text(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async {
            let command = Command::GetWebpageText { n_lines: MAX_TEXT_LINES };
            let body = self.farm.execute(self.lease, &command, self.deadline).await;
            let body = body.map_err(|error| error.to_string())?;
            let text = body.get("text").and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| "the farm sent no text".to_owned())
        })
    }

    fn evaluate<'a>(&'a self, expression: &'a str) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let no_endpoint = || "the farm has no CDP endpoint, which scripts in the page need".to_owned();
            let cdp_url = self.cdp_url.ok_or_else(no_endpoint)?;
            let url = self.url().await?;
            let value = self.farm.evaluate(cdp_url, Some(&url), expression, self.deadline).await;
            value.map_err(|error| error.to_string())
        })
    }

    fn cdp_url(&self) -> Option<&str> {
        self.cdp_url.map(CdpUrl::as_str)
    }
}
