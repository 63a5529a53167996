//! Navigation: visiting a URL, which keeps the current page if it fails, and going back in history.

use std::time::{Duration, Instant};

use cdp::{CallError, protocol as p};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Page, VisitFailure};
use crate::{
    emulation::{blocked_patterns, document_pattern},
    error::BrowserError,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigateReply {
    loader_id: Option<String>,
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current_index: usize,
    entries: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: i64,
    url: String,
}

#[derive(Deserialize)]
struct LoadResourceReply {
    resource: Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    net_error_name: Option<String>,
}

/// Shortens a URL for an error message.
fn quoted(url: &str) -> String {
    url.chars().take(300).collect()
}

/// Checks that a client may visit a URL. Other schemes lead to browser internals or to local files.
pub(crate) fn check_url(text: &str) -> Result<Url, BrowserError> {
    let refuse = |reason: String| BrowserError::UrlRefused { url: quoted(text), reason };
    let url = Url::parse(text.trim())
        .map_err(|error| refuse(format!("{error}; use a complete URL, such as https://example.com/")))?;
    match url.scheme() {
        "http" | "https" | "data" => Ok(url),
        "about" if url.path() == "blank" => Ok(url),
        scheme => Err(refuse(format!("{scheme}: URLs are not allowed, only http: and https:"))),
    }
}

/// If the page does not answer within this time, its script is terminated before a navigation.
const RESPONSIVE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The longest wait for the commit of a navigation, and for the reason of a failed visit.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

impl Page {
    /// Loads `url`. If that fails, the current page stays.
    pub(crate) async fn visit(&self, url: &str) -> Result<(), BrowserError> {
        let parsed_url = check_url(url)?;
        let failed = |reason: String| BrowserError::NavigationFailed {
            url: url.to_owned(),
            reason,
            redirected_to: self.visit.failed_url().filter(|failed| failed != parsed_url.as_str()),
        };
        self.stop_hung_script().await?;
        let previous_document = self.document();
        match self.navigate(&parsed_url).await {
            // The file is in the list of downloads, and the current page stays.
            Ok(NavigateReply { is_download: true, .. }) if self.context.files().keeps_downloads() => Ok(()),
            Ok(NavigateReply { error_text: None, is_download: true, .. }) => {
                Err(failed("net::ERR_ABORTED, it is a download; acquire the lease with the session option downloads: keep".into()))
            }
            Ok(NavigateReply { error_text: None, loader_id, .. }) => {
                // Without a loader it was a navigation within the document.
                if loader_id.is_some() {
                    self.wait_committed(previous_document).await?;
                }
                Ok(())
            }
            Ok(NavigateReply { error_text: Some(_), .. })
                if self.visit.failure() == Some(VisitFailure::RefusedRedirect) =>
            {
                let target = self.visit.failed_url().unwrap_or_default();
                let reason = format!("{url} redirects there; only http: and https: are allowed");
                Err(BrowserError::UrlRefused { url: quoted(&target), reason })
            }
            Ok(NavigateReply { error_text: Some(error), .. }) => {
                Err(failed(self.failure_reason(&error, previous_document, &parsed_url).await?))
            }
            Err(CallError::Deadline { after, .. }) => {
                self.session.send_no_reply(p::PAGE_STOP_LOADING, &json!({}));
                Err(failed(format!("net::ERR_TIMED_OUT, no answer within {} s", after.as_secs())))
            }
            Err(CallError::Rejected { message, .. }) => Err(failed(message)),
            Err(error) => Err(error.into()),
        }
    }

    async fn navigate(&self, url: &Url) -> Result<NavigateReply, CallError> {
        let _visiting = self.visit.begin();
        let params = json!({"url": url.as_str(), "transitionType": "typed"});
        self.session.send(p::PAGE_NAVIGATE, &params).within(self.options.navigation_timeout).await?.decode()
    }

    /// Lets the browser pause what the options of the session may refuse and, if the page is `observed`, every response to a
    /// document request, so that the error of a visit is seen before the browser handles it. Stays on: to switch it for
    /// each visit costs more than to let the other documents pass.
    pub(super) fn pause_requests(&self, observed: bool) {
        let mut patterns = blocked_patterns(&self.options.session);
        if observed {
            patterns.push(document_pattern("Response"));
        }
        if !patterns.is_empty() {
            self.session.send_no_reply(p::FETCH_ENABLE, &json!({ "patterns": patterns }));
        }
    }

    /// Terminates a script that never ends: it would block the next document in the same process.
    async fn stop_hung_script(&self) -> Result<(), BrowserError> {
        let ping = self.session.send(p::RUNTIME_EVALUATE, &json!({"expression": "0"}));
        match ping.within(RESPONSIVE_TIMEOUT).await {
            Err(CallError::Deadline { .. }) => {
                let terminated =
                    self.session.send(p::RUNTIME_TERMINATE_EXECUTION, &json!({})).within(RESPONSIVE_TIMEOUT);
                match terminated.await {
                    Err(error @ CallError::SessionEnded { .. }) => Err(error.into()),
                    _ => Ok(()),
                }
            }
            Err(error @ CallError::SessionEnded { .. }) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Waits until the current document is no longer `previous`. The reply to `Page.navigate` may come before that event.
    async fn wait_committed(&self, previous: u64) -> Result<(), BrowserError> {
        let deadline = Instant::now() + COMMIT_TIMEOUT;
        loop {
            let mut changes = self.tracker.changes();
            let (document, ended) = {
                let state = self.tracker.state();
                (state.document, state.ended.clone())
            };
            if let Some(end) = ended {
                return Err(BrowserError::Lost(end));
            }
            if document != previous || Instant::now() >= deadline {
                return Ok(());
            }
            let _ = tokio::time::timeout_at(deadline.into(), changes.changed()).await;
        }
    }

    /// Returns why a visit failed, as a Chromium error name. Also returns to the previous page if Chromium shows its error
    /// page.
    async fn failure_reason(&self, error: &str, previous: u64, url: &Url) -> Result<String, BrowserError> {
        const ABORTED: &str = "net::ERR_ABORTED";
        if error != ABORTED {
            self.leave_error_page(previous).await?;
        }
        Ok(match self.visit.failure() {
            Some(VisitFailure::NetError(name)) => name.to_owned(),
            Some(VisitFailure::Unspecified | VisitFailure::RefusedRedirect) => {
                self.net_error(url).await.unwrap_or("net::ERR_FAILED".to_owned())
            }
            None if error == ABORTED => format!(
                "{ABORTED} (a download, which the session option downloads: keep allows, or a response without a page)"
            ),
            None => error.to_owned(),
        })
    }

    /// Requests the URL outside the page to learn its error name: interception reports most errors only as "Failed".
    async fn net_error(&self, url: &Url) -> Option<String> {
        let options = json!({"disableCache": true, "includeCredentials": false});
        let params = json!({"frameId": self.target, "url": url.as_str(), "options": options});
        let loaded: LoadResourceReply =
            self.session.call_within(COMMIT_TIMEOUT, p::NETWORK_LOAD_NETWORK_RESOURCE, &params).await.ok()?;
        loaded.resource.net_error_name
    }

    /// Goes back if Chromium shows its error page, which some failures cause in spite of the interception.
    async fn leave_error_page(&self, previous: u64) -> Result<(), BrowserError> {
        self.wait_committed(previous).await?;
        if !self.url().starts_with("chrome-error:") {
            return Ok(());
        }
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        if self.url().starts_with("chrome-error:") && history.current_index > 0 {
            let start = self.action_start();
            self.go_to_entry(&history.entries[history.current_index - 1]).await?;
            self.settle(start).await?;
        }
        Ok(())
    }

    /// Goes one page back. At the start of the history it does nothing.
    pub(crate) async fn back(&self) -> Result<(), BrowserError> {
        self.stop_hung_script().await?;
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        let previous = history.current_index.checked_sub(1).and_then(|index| history.entries.get(index));
        match previous {
            // The first entry is the empty page of a new instance, which the agent never visited.
            Some(entry) if history.current_index == 1 && entry.url == "about:blank" => {
                self.back_to_opener().await
            }
            None => self.back_to_opener().await,
            Some(entry) => self.go_to_entry(entry).await,
        }
    }

    /// Goes one page forward. At the end of the history it does nothing.
    pub(crate) async fn forward(&self) -> Result<(), BrowserError> {
        self.stop_hung_script().await?;
        let history: History = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
        match history.entries.get(history.current_index + 1) {
            Some(entry) => self.go_to_entry(entry).await,
            None => Ok(()),
        }
    }

    async fn back_to_opener(&self) -> Result<(), BrowserError> {
        match &self.opener {
            Some(url) => self.visit(url).await,
            None => Ok(()),
        }
    }

    async fn go_to_entry(&self, entry: &HistoryEntry) -> Result<(), BrowserError> {
        self.tracker.state().expect_navigation();
        self.session.run(p::PAGE_NAVIGATE_TO_HISTORY_ENTRY, &json!({"entryId": entry.id})).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_urls_are_allowed() {
        for allowed in
            ["http://a.test/x", "https://a.test", "about:blank", "data:text/html,hi", " https://a.test "]
        {
            assert!(check_url(allowed).is_ok(), "{allowed}");
        }
        for refused in [
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
            let error = check_url(refused).unwrap_err();
            assert_eq!(error.code(), proto::ErrorCode::UrlRefused, "{refused}");
        }
    }
}
