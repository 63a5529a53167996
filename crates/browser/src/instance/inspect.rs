//! Looking behind an instance, for tests and diagnosis: what its page's own scripts see, how many windows its
//! context holds, and a way to crash its renderer.

use cdp::protocol as p;
use serde_json::{Value, json};

use super::Instance;
use crate::error::BrowserError;

impl Instance {
    /// Evaluates a script in the page's own world, as the page itself would; promises are awaited.
    pub async fn evaluate(&self, script: &str) -> Result<Value, BrowserError> {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let limit = self.options.operation_limit;
        let mut answer: Value = self.page.session().call_within(limit, p::RUNTIME_EVALUATE, &params).await?;
        if let Some(exception) = answer.get("exceptionDetails") {
            let why = &exception["exception"]["description"];
            return Err(BrowserError::BadArgument(format!(
                "the script failed: {}",
                why.as_str().unwrap_or("?")
            )));
        }
        Ok(answer["result"]["value"].take())
    }

    /// The addresses of all windows of this instance. The single-tab rule makes that one, once settled.
    pub async fn windows(&self) -> Result<Vec<String>, BrowserError> {
        let filter = json!({"filter": [{"type": "page"}]});
        let answer: Value = self.connection.root().call(p::TARGET_GET_TARGETS, &filter).await?;
        let targets = answer["targetInfos"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ours = targets.iter().filter(|target| target["browserContextId"] == self.context.id());
        Ok(ours.map(|target| target["url"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// Crashes the page's renderer: for tests of everything that must survive one.
    pub fn crash_renderer(&self) {
        self.page.session().tell(p::PAGE_CRASH, &json!({}));
    }
}
