//! The single-tab rule on the side of the instance: which window is the page after an action. A window that its opener
//! filled replaces the page, a window that stays empty is closed, and a page that closed itself is replaced by the page
//! that opened it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{Connection, SessionEnd, protocol as p};
use serde_json::{Value, json};

use super::Instance;
use crate::{
    context::{AttachedTarget, close_target},
    error::BrowserError,
    page::{ActionStart, Page, settle::Settled},
};

/// How often the page may be replaced while one action settles.
const MAX_REPLACEMENTS: usize = 4;
/// How often an empty window is checked for content.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// What to do once the page itself has settled.
enum NextStep {
    /// Replace the page with this window.
    Replace(AttachedTarget),
    /// Show this new tab.
    ShowTab(Box<Page>),
    /// Settle again: the page started another navigation.
    SettleAgain,
    Finish,
}

impl Instance {
    /// Waits until the page has settled, following replacements of the page.
    pub(super) async fn settle(&mut self, start: ActionStart) -> Result<Settled, BrowserError> {
        let mut current_start = start;
        for _ in 0..MAX_REPLACEMENTS {
            let settled = self.page.settle(current_start).await;
            if is_page_closed(&settled) {
                current_start = self.reopen_page().await?;
                continue;
            }
            let Settled { quiet, .. } = settled?;
            match self.next_step(start).await {
                NextStep::ShowTab(page) => {
                    self.add_tab(*page);
                    current_start = ActionStart { document: self.page.document(), ..current_start };
                }
                NextStep::Replace(window) => current_start = self.replace_with_window(&window).await?,
                NextStep::SettleAgain => {
                    current_start = ActionStart { document: self.page.document(), ..current_start };
                }
                NextStep::Finish => return Ok(start.settled(quiet)),
            }
        }
        self.context.close_undecided(&self.connection);
        Ok(start.settled(false))
    }

    /// Applies what happened to the page since the last command: a pending replacement, or a page that closed itself.
    pub(super) async fn sync_page(&mut self) -> Result<(), BrowserError> {
        while let Some(page) = self.context.take_new_tab() {
            self.add_tab(page);
        }
        if let Some(successor) = self.context.take_successor() {
            let start = self.replace_with_window(&successor).await?;
            self.settle(start).await?;
        }
        if self.page.tracker().state().ended == Some(SessionEnd::Detached) {
            self.recover_closed_page().await?;
        }
        Ok(())
    }

    /// Applies what a person has opened or closed, as the next command would.
    pub async fn follow_windows(&mut self) -> Result<(), BrowserError> {
        self.sync_page().await?;
        if self.context.has_windows() {
            let start = self.page.action_start();
            self.settle(start).await?;
        }
        Ok(())
    }

    /// Reopens a page in place of one that closed itself, and settles it.
    pub(super) async fn recover_closed_page(&mut self) -> Result<(), BrowserError> {
        let start = self.reopen_page().await?;
        self.settle(start).await.map(drop)
    }

    /// Waits until every window that the action opened is decided: loaded in the page, the successor, or closed.
    async fn next_step(&self, start: ActionStart) -> NextStep {
        let deadline = start.time + self.options.settle.budget;
        loop {
            if let Some(page) = self.context.take_new_tab() {
                return NextStep::ShowTab(Box::new(page));
            }
            if let Some(successor) = self.context.take_successor() {
                return NextStep::Replace(successor);
            }
            let undecided = self.context.undecided_windows();
            if undecided.is_empty() {
                // The last window may have been loaded in the page.
                let navigating = self.page.tracker().state().is_navigating();
                return if navigating { NextStep::SettleAgain } else { NextStep::Finish };
            }
            for window in undecided {
                if has_content(&self.connection, &window).await {
                    self.context.set_successor(&window);
                }
            }
            if Instant::now() >= deadline {
                self.context.close_undecided(&self.connection);
            } else {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    async fn replace_with_window(&mut self, window: &AttachedTarget) -> Result<ActionStart, BrowserError> {
        let opener = Some(self.page.url()).filter(|url| url.starts_with("http"));
        let options = Arc::clone(&self.options);
        let page = Page::adopt(&self.connection, window, &self.context, options, opener).await?;
        let old = self.replace_page(page);
        close_target(&self.connection, old.target());
        Ok(self.page.action_start())
    }

    /// Opens a new page in place of one that closed itself: the page that opened it, or an empty one.
    async fn reopen_page(&mut self) -> Result<ActionStart, BrowserError> {
        if let Some(end) = self.connection.close_reason() {
            return Err(BrowserError::Lost(end));
        }
        if self.context.has_many_tabs() {
            self.leave_closed_tab().await?;
            return Ok(self.page.action_start());
        }
        let page = Page::open(&self.connection, &self.context, Arc::clone(&self.options)).await?;
        let old = self.replace_page(page);
        if let Some(opener) = old.opener()
            && let Err(error) = self.page.visit(opener).await
        {
            tracing::debug!(%error, "cannot reload the opener of a page that closed itself");
        }
        Ok(self.page.action_start())
    }

    /// Makes `page` the page of this instance and returns the old one.
    pub(super) fn replace_page(&mut self, mut page: Page) -> Page {
        page.take_mouse_from(&self.page);
        let old = std::mem::replace(&mut self.page, page);
        self.context.set_page(&self.page);
        self.last_marks = None;
        old
    }
}

/// Whether an operation failed because the page closed itself.
pub(super) fn is_page_closed<T>(result: &Result<T, BrowserError>) -> bool {
    matches!(result, Err(BrowserError::Lost(SessionEnd::Detached)))
}

/// Whether a window without a URL has any content.
async fn has_content(connection: &Connection, window: &AttachedTarget) -> bool {
    const SCRIPT: &str =
        "!!document.body && (document.body.childElementCount > 0 || document.body.innerText.trim() !== '')";
    const TIMEOUT: Duration = Duration::from_millis(500);
    let params = json!({"expression": SCRIPT, "returnByValue": true});
    let session = connection.session(&window.session);
    let reply = session.call_within::<_, Value>(TIMEOUT, p::RUNTIME_EVALUATE, &params).await;
    reply.is_ok_and(|reply| reply["result"]["value"] == true)
}
