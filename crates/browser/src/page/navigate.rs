//! Going places: a visit that leaves the old page alone when it fails, and the way back.

use std::time::{Duration, Instant};

use cdp::{CallError, protocol as p};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Failed, Page};
use crate::error::BrowserError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    loader_id: Option<String>,
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

#[derive(Deserialize)]
struct Loaded {
    resource: Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    net_error_name: Option<String>,
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

/// A page that has not said a word for this long is stopped before it is left.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long we look for the reason of a failed visit, and wait for the page before to come back.
const AFTERMATH: Duration = Duration::from_secs(5);

impl Page {
    /// Loads `url`. When it fails the page that was there is still there.
    pub(crate) async fn visit(&self, url: &str) -> Result<(), BrowserError> {
        let address = check_url(url)?;
        let failed = |why: String| BrowserError::NavigationFailed { url: url.to_owned(), why };
        self.unblock().await?;
        let before = self.document();
        match self.navigate(&address).await {
            Ok(Navigated { error_text: None, is_download: true, .. }) => {
                Err(failed("net::ERR_ABORTED, it is a download, and those are denied".into()))
            }
            Ok(Navigated { error_text: None, loader_id, .. }) => {
                // Without a loader it was a jump within the document.
                if loader_id.is_some() {
                    self.committed(before).await?;
                }
                Ok(())
            }
            Ok(Navigated { error_text: Some(error), .. }) => {
                Err(failed(self.reason(&error, before, &address).await?))
            }
            Err(CallError::Deadline { after, .. }) => {
                self.session.send_no_reply(p::PAGE_STOP_LOADING, &json!({}));
                Err(failed(format!("net::ERR_TIMED_OUT, no answer within {} s", after.as_secs())))
            }
            Err(CallError::Rejected { message, .. }) => Err(failed(message)),
            Err(error) => Err(error.into()),
        }
    }

    async fn navigate(&self, address: &Url) -> Result<Navigated, CallError> {
        self.visit.begin();
        // Every reply to a page request is held until we have seen whether it is an error.
        let pattern = json!({"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Response"}]});
        self.session.send_no_reply(p::FETCH_ENABLE, &pattern);
        let params = json!({"url": address.as_str(), "transitionType": "typed"});
        let outcome =
            self.session.send(p::PAGE_NAVIGATE, &params).within(self.options.navigation_timeout).await;
        self.session.send_no_reply(p::FETCH_DISABLE, &json!({}));
        outcome?.decode()
    }

    /// A page whose script never ends would hold whatever comes after it in its process: end that script.
    async fn unblock(&self) -> Result<(), BrowserError> {
        let ping = self.session.send(p::RUNTIME_EVALUATE, &json!({"expression": "0"}));
        match ping.within(PATIENCE).await {
            Err(CallError::Deadline { .. }) => {
                let stopped = self.session.send(p::RUNTIME_TERMINATE_EXECUTION, &json!({})).within(PATIENCE);
                match stopped.await {
                    Err(error @ CallError::SessionEnded { .. }) => Err(error.into()),
                    _ => Ok(()),
                }
            }
            Err(error @ CallError::SessionEnded { .. }) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Waits until the document on show is no longer `before`; the browser's answer may outrun that news.
    async fn committed(&self, before: u64) -> Result<(), BrowserError> {
        let end = Instant::now() + AFTERMATH;
        loop {
            let mut changes = self.tracker.changes();
            let (document, gone) = {
                let state = self.tracker.state();
                (state.document, state.gone.clone())
            };
            if let Some(gone) = gone {
                return Err(BrowserError::Lost(gone));
            }
            if document != before || Instant::now() >= end {
                return Ok(());
            }
            let _ = tokio::time::timeout_at(end.into(), changes.changed()).await;
        }
    }

    /// Why a visit failed, in Chromium's words; and back to the page before if Chromium has left it.
    async fn reason(&self, error: &str, before: u64, address: &Url) -> Result<String, BrowserError> {
        const ABORTED: &str = "net::ERR_ABORTED";
        if error != ABORTED {
            self.leave_error_page(before).await?;
        }
        Ok(match self.visit.failed() {
            Some(Failed::Because(reason)) => reason.to_owned(),
            Some(Failed::Unsaid) => self.net_error(address).await.unwrap_or("net::ERR_FAILED".to_owned()),
            None if error == ABORTED => format!("{ABORTED} (a download, or an answer without a page)"),
            None => error.to_owned(),
        })
    }

    /// Interception hides most reasons behind "Failed"; asked beside the page, the network names them.
    async fn net_error(&self, address: &Url) -> Option<String> {
        let options = json!({"disableCache": true, "includeCredentials": false});
        let params = json!({"frameId": self.target, "url": address.as_str(), "options": options});
        let loaded: Loaded =
            self.session.call_within(AFTERMATH, p::NETWORK_LOAD_NETWORK_RESOURCE, &params).await.ok()?;
        loaded.resource.net_error_name
    }

    /// Some failures do show Chromium's error page; step off it again.
    async fn leave_error_page(&self, before: u64) -> Result<(), BrowserError> {
        self.committed(before).await?;
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        if self.url().starts_with("chrome-error:") && history.current_index > 0 {
            let mark = self.mark();
            self.go_to(&history.entries[history.current_index - 1]).await?;
            self.settle(mark).await?;
        }
        Ok(())
    }

    /// One page back. At the start of history there is nothing to do, and that is fine.
    pub(crate) async fn back(&self) -> Result<(), BrowserError> {
        self.unblock().await?;
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
