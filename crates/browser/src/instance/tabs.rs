//! The single-tab rule, as far as it concerns the instance: which window is the page, now that the action is
//! over. A window its opener filled takes the page's place; one that stays empty is closed; a page that closed
//! itself gives way to the one that opened it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{Connection, SessionEnd, protocol as p};
use serde_json::{Value, json};

use super::Instance;
use crate::{
    context::{Attached, close},
    error::BrowserError,
    page::{Mark, Page, settle::Settled},
};

/// A page that opens a window which opens a window, and so on, is followed this far.
const MOST_SUCCESSORS: usize = 4;
/// How often an empty window is asked whether it still is.
const MOMENT: Duration = Duration::from_millis(40);

impl Instance {
    /// Waits until the page is at rest, whichever page that is by then.
    pub(super) async fn settle(&mut self, mark: Mark) -> Result<Settled, BrowserError> {
        let mut from = mark;
        for _ in 0..MOST_SUCCESSORS {
            let settled = match self.page.settle(from).await {
                Err(BrowserError::Lost(SessionEnd::Detached)) => {
                    from = self.revive().await?;
                    continue;
                }
                settled => settled?,
            };
            match self.successor(mark).await {
                Next::Heir(heir) => from = self.succeed(&heir).await?,
                Next::Page => from = Mark { document: self.page.document(), ..from },
                Next::Nobody => return Ok(Settled { elapsed: mark.at.elapsed(), ..settled }),
            }
        }
        self.context.close_held(&self.connection);
        Ok(Settled { quiet: false, elapsed: mark.at.elapsed() })
    }

    /// Catches up with what happened to the page since the last command.
    pub(super) async fn keep_up(&mut self) -> Result<(), BrowserError> {
        if let Some(heir) = self.context.take_heir() {
            let mark = self.succeed(&heir).await?;
            self.settle(mark).await?;
        }
        if self.page.tracker().state().gone == Some(SessionEnd::Detached) {
            self.catch_up().await?;
        }
        Ok(())
    }

    /// The page has closed itself: there is another one now.
    pub(super) async fn catch_up(&mut self) -> Result<(), BrowserError> {
        let mark = self.revive().await?;
        self.settle(mark).await.map(drop)
    }

    /// What becomes of the windows that the action opened.
    async fn successor(&self, mark: Mark) -> Next {
        let end = mark.at + self.options.settle.budget;
        loop {
            if let Some(heir) = self.context.take_heir() {
                return Next::Heir(heir);
            }
            let held = self.context.held();
            if held.is_empty() {
                // The last of them may have gone where the page now goes.
                let moving = self.page.tracker().state().navigating();
                return if moving { Next::Page } else { Next::Nobody };
            }
            for window in held {
                if written(&self.connection, &window).await {
                    self.context.name_heir(&window);
                }
            }
            if Instant::now() >= end {
                self.context.close_held(&self.connection);
            } else {
                tokio::time::sleep(MOMENT).await;
            }
        }
    }

    async fn succeed(&mut self, heir: &Attached) -> Result<Mark, BrowserError> {
        let opener = Some(self.page.url()).filter(|url| url.starts_with("http"));
        let options = Arc::clone(&self.options);
        let page = Page::adopt(&self.connection, heir, &self.context, options, opener).await?;
        let old = self.replace(page);
        close(&self.connection, old.target());
        Ok(self.page.mark())
    }

    /// The page has closed itself. What is left is what opened it, or an empty page.
    async fn revive(&mut self) -> Result<Mark, BrowserError> {
        if let Some(gone) = self.connection.close_reason() {
            return Err(BrowserError::Lost(gone));
        }
        let page = Page::open(&self.connection, &self.context, Arc::clone(&self.options)).await?;
        let old = self.replace(page);
        if let Some(opener) = old.opener()
            && let Err(error) = self.page.visit(opener).await
        {
            tracing::debug!(%error, "the page that opened a closed one does not load again");
        }
        Ok(self.page.mark())
    }

    fn replace(&mut self, page: Page) -> Page {
        let old = std::mem::replace(&mut self.page, page);
        self.context.set_page(&self.page);
        self.shown = None;
        old
    }
}

/// Whether this came of a page that has closed itself.
pub(super) fn closed<T>(outcome: &Result<T, BrowserError>) -> bool {
    matches!(outcome, Err(BrowserError::Lost(SessionEnd::Detached)))
}

enum Next {
    /// This window takes the page's place.
    Heir(Attached),
    /// The page itself goes on, elsewhere.
    Page,
    Nobody,
}

/// Whether a window that has no address holds anything.
async fn written(connection: &Connection, held: &Attached) -> bool {
    const QUESTION: &str =
        "!!document.body && (document.body.childElementCount > 0 || document.body.innerText.trim() !== '')";
    const LIMIT: Duration = Duration::from_millis(500);
    let params = json!({"expression": QUESTION, "returnByValue": true});
    let answer =
        connection.session(&held.session).call_within::<_, Value>(LIMIT, p::RUNTIME_EVALUATE, &params).await;
    answer.is_ok_and(|answer| answer["result"]["value"] == true)
}
