//! Inspection of an instance, for tests and diagnosis: evaluates scripts in the page, lists the windows of the context,
//! crashes the renderer.

use std::time::Duration;

use cdp::{Session, protocol as p};
use serde_json::{Value, json};

use super::Instance;
use crate::error::BrowserError;

/// Access to the page of an instance that works while the instance is busy.
pub struct Inspector {
    session: Session,
    timeout: Duration,
}

impl Inspector {
    /// Evaluates a script in the main world of the page, as the page's own scripts run; promises are awaited.
    pub async fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut reply: Value = self.session.call_within(self.timeout, p::RUNTIME_EVALUATE, &params).await?;
        if let Some(exception) = reply.get("exceptionDetails") {
            let reason = exception["exception"]["description"].as_str().unwrap_or("it threw an exception");
            return Err(BrowserError::BadArgument(format!("the script failed: {reason}")));
        }
        Ok(reply["result"]["value"].take())
    }

    /// Crashes the renderer of the page, for tests.
    pub fn crash_renderer(&self) {
        self.session.send_no_reply(p::PAGE_CRASH, &json!({}));
    }
}

impl Instance {
    pub fn inspector(&self) -> Inspector {
        Inspector { session: self.page.session().clone(), timeout: self.options.operation_timeout }
    }

    pub async fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        self.inspector().evaluate(script).await
    }

    pub fn crash_renderer(&self) {
        self.inspector().crash_renderer();
    }

    /// Returns the URLs of all windows of this instance: one, once the instance has settled.
    pub async fn windows(&self) -> Result<Vec<String>, BrowserError> {
        let targets = self.page_targets().await?;
        let ours = targets.iter().filter(|target| target["browserContextId"] == self.context.id());
        Ok(ours.map(|target| target["url"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// Returns the number of windows of the whole browser, for all its instances.
    pub async fn browser_window_count(&self) -> Result<usize, BrowserError> {
        Ok(self.page_targets().await?.len())
    }

    pub(super) async fn page_targets(&self) -> Result<Vec<Value>, BrowserError> {
        let filter = json!({"filter": [{"type": "page"}]});
        let mut reply: Value = self.connection.root().call(p::TARGET_GET_TARGETS, &filter).await?;
        Ok(reply["targetInfos"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}
