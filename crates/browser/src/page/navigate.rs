//! Going places: a visit that leaves the old page alone when it fails, and the way back.

use std::time::Instant;

use cdp::{CallError, protocol as p};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Mark, Page};
use crate::error::BrowserError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current_index: usize,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: i64,
    url: String,
}

/// Schemes a client may ask for. Everything else is the browser's inside or the machine's files.
pub(crate) fn check_url(text: &str) -> Result<Url, BrowserError> {
    let refuse = |why: String| BrowserError::UrlRefused { url: text.chars().take(300).collect(), why };
    let url = Url::parse(text.trim())
        .map_err(|error| refuse(format!("{error}; give a whole address, such as https://example.com/")))?;
    match url.scheme() {
        "http" | "https" | "data" => Ok(url),
        "about" if url.path() == "blank" => Ok(url),
        scheme => Err(refuse(format!("{scheme}: addresses are not allowed, only http: and https:"))),
    }
}

impl Page {
    /// Loads `url`. When it fails the page that was there is still there.
    pub(crate) async fn visit(&self, url: &str) -> Result<(), BrowserError> {
        let address = check_url(url)?;
        let before = self.document();
        self.visit.take_error();
        let failed = |why: String| BrowserError::NavigationFailed { url: url.to_owned(), why };
        // Every reply to a page request is held until we have seen whether it is an error.
        let pattern = json!({"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Response"}]});
        let enabled = self.session.send(p::FETCH_ENABLE, &pattern);
        let navigation =
            self.session.send(p::PAGE_NAVIGATE, &json!({"url": address.as_str(), "transitionType": "typed"}));
        let outcome = navigation.within(self.options.navigation_limit).await;
        self.session.tell(p::FETCH_DISABLE, &json!({}));
        drop(enabled);
        let navigated: Navigated = match outcome {
            Ok(reply) => reply.decode()?,
            Err(CallError::Deadline { after, .. }) => {
                self.session.tell(p::PAGE_STOP_LOADING, &json!({}));
                return Err(failed(format!("net::ERR_TIMED_OUT, no answer within {} s", after.as_secs())));
            }
            Err(CallError::Rejected { message, .. }) => return Err(failed(message)),
            Err(error) => return Err(error.into()),
        };
        match navigated.error_text {
            None if navigated.is_download => {
                Err(failed("net::ERR_ABORTED, it is a download, and those are denied".into()))
            }
            None => Ok(()),
            Some(error) => {
                let error = self.visit.take_error().unwrap_or(error);
                self.leave_error_page(before).await?;
                let hint = if error == "net::ERR_ABORTED" {
                    " (a download, or an answer without a page)"
                } else {
                    ""
                };
                Err(failed(format!("{error}{hint}")))
            }
        }
    }

    /// Some failures do show Chromium's error page; step off it again.
    async fn leave_error_page(&self, before: u64) -> Result<(), BrowserError> {
        let settled = self.settle(Mark { at: Instant::now(), document: before }).await?;
        tracing::debug!(?settled, "a visit failed");
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        let on_error_page = self.url().starts_with("chrome-error:");
        if on_error_page && history.current_index > 0 {
            self.go_to(&history.entries[history.current_index - 1]).await?;
        }
        Ok(())
    }

    /// One page back. At the start of history there is nothing to do, and that is fine.
    pub(crate) async fn back(&self) -> Result<(), BrowserError> {
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        let previous = history.current_index.checked_sub(1).and_then(|index| history.entries.get(index));
        match previous {
            // Every instance is born on an empty page that no agent has visited.
            Some(entry) if history.current_index == 1 && entry.url == "about:blank" => {
                self.back_to_opener().await
            }
            None => self.back_to_opener().await,
            Some(entry) => self.go_to(entry).await,
        }
    }

    async fn back_to_opener(&self) -> Result<(), BrowserError> {
        match &self.opener {
            Some(url) => self.visit(url).await,
            None => Ok(()),
        }
    }

    async fn go_to(&self, entry: &Entry) -> Result<(), BrowserError> {
        self.tracker.state().expect_navigation();
        self.session.run(p::PAGE_NAVIGATE_TO_HISTORY_ENTRY, &json!({"entryId": entry.id})).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_visited() {
        for good in
            ["http://a.test/x", "https://a.test", "about:blank", "data:text/html,hi", " https://a.test "]
        {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            "chrome://version",
            "devtools://x",
            "view-source:http://a",
            "a.test",
            "javascript:alert(1)",
            "about:crash",
            "",
            "chrome-extension://x/",
            "ftp://a",
            "blob:http://a/x",
            "java\nscript:1",
        ] {
            let error = check_url(bad).unwrap_err();
            assert_eq!(error.code(), proto::ErrorCode::UrlRefused, "{bad}");
        }
    }
}
