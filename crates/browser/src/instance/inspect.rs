//! Looking behind an instance, for tests and diagnosis: what its page's own scripts see, how many windows its
//! context holds, and a way to crash its renderer.

use std::time::Duration;

use cdp::{Session, protocol as p};
use serde_json::{Value, json};

use super::Instance;
use crate::error::BrowserError;

/// A second way to the page of an instance, open while the instance is busy.
pub struct Inspector {
    session: Session,
    limit: Duration,
}

impl Inspector {
    /// Evaluates a script in the page's own world, as the page itself would; promises are awaited.
    pub async fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut answer: Value = self.session.call_within(self.limit, p::RUNTIME_EVALUATE, &params).await?;
        if let Some(exception) = answer.get("exceptionDetails") {
            let why = exception["exception"]["description"].as_str().unwrap_or("it threw");
            return Err(BrowserError::BadArgument(format!("the script failed: {why}")));
        }
        Ok(answer["result"]["value"].take())
    }

    /// Crashes the page's renderer: for tests of everything that must survive one.
    pub fn crash_renderer(&self) {
        self.session.send_no_reply(p::PAGE_CRASH, &json!({}));
    }
}

impl Instance {
    pub fn inspector(&self) -> Inspector {
        Inspector { session: self.page.session().clone(), limit: self.options.operation_timeout }
    }

    pub async fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        self.inspector().evaluate(script).await
    }

    pub fn crash_renderer(&self) {
        self.inspector().crash_renderer();
    }

    /// The addresses of all windows of this instance. The single-tab rule makes that one, once settled.
    pub async fn windows(&self) -> Result<Vec<String>, BrowserError> {
        let targets = self.page_targets().await?;
        let ours = targets.iter().filter(|target| target["browserContextId"] == self.context.id());
        Ok(ours.map(|target| target["url"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// How many windows the whole browser holds, for all its instances.
    pub async fn browser_window_count(&self) -> Result<usize, BrowserError> {
        Ok(self.page_targets().await?.len())
    }

    async fn page_targets(&self) -> Result<Vec<Value>, BrowserError> {
        let filter = json!({"filter": [{"type": "page"}]});
        let mut answer: Value = self.connection.root().call(p::TARGET_GET_TARGETS, &filter).await?;
        Ok(answer["targetInfos"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}
