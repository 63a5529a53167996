//! The instance an agent holds: one isolated page, acted on by commands, looked at in pictures. Owns the
//! context, the page in it, and the meaning of the numbers on the last set-of-marks screenshot.

mod act;
mod observe;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{Connection, Gone, protocol as p};
use proto::{Command, page::ScreenshotInfo};
use serde_json::{Value, json};

pub use observe::{Observation, ObserveRequest, Picture};

use crate::{
    context::{Attached, Context, close},
    error::BrowserError,
    host::dispose,
    options::Options,
    page::settle::Settled,
    page::{Mark, Page},
};

pub struct Instance {
    connection: Connection,
    context: Arc<Context>,
    page: Page,
    options: Arc<Options>,
    shown: Option<Shown>,
    disposed: bool,
}

/// The last set-of-marks screenshot, and the agent in the page that its element ids belong to.
struct Shown {
    info: ScreenshotInfo,
    agent: Option<(u64, i64)>,
}

impl Instance {
    pub(crate) fn new(
        connection: Connection,
        context: Arc<Context>,
        page: Page,
        options: Arc<Options>,
    ) -> Self {
        context.set_page(&page);
        Self { connection, context, page, options, shown: None, disposed: false }
    }

    /// Carries out a command and waits until the page has settled.
    pub async fn execute(&mut self, command: &Command) -> Result<Value, BrowserError> {
        self.execute_settled(command).await.map(|(answer, _)| answer)
    }

    /// The same, and tells how the page settled; `None` for commands that only look.
    pub async fn execute_settled(
        &mut self,
        command: &Command,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        if let Some(answer) = self.look(command).await? {
            return Ok((answer, None));
        }
        self.context.begin_action();
        let mark = self.page.mark();
        self.act(command).await?;
        let settled = self.settle(mark).await?;
        Ok((json!({"status": "success"}), Some(settled)))
    }

    async fn look(&mut self, command: &Command) -> Result<Option<Value>, BrowserError> {
        let value = |value: Result<Value, serde_json::Error>| {
            value.map(Some).map_err(|error| BrowserError::Internal(error.to_string()))
        };
        match command {
            Command::GetPageMetadata => value(serde_json::to_value(self.page.metadata().await?)),
            Command::GetWebpageText { n_lines } => Ok(Some(json!({"text": self.page.text(*n_lines).await?}))),
            Command::GetInteractiveRects => Ok(Some(self.page.collect().await?.regions().into())),
            Command::GetScreenshotInfo => match &self.shown {
                Some(shown) => value(serde_json::to_value(&shown.info)),
                None => Ok(Some(json!({"error": "No screenshot info available"}))),
            },
            Command::Screenshot { mode } => {
                self.observe(&ObserveRequest::screenshot(*mode)).await?;
                Ok(Some(json!({"status": "screenshot_taken"})))
            }
            _ => Ok(None),
        }
    }

    /// Waits until the page is at rest, whichever page that is by then.
    async fn settle(&mut self, mark: Mark) -> Result<Settled, BrowserError> {
        let began = Instant::now();
        let mut settled = self.page.settle(mark).await;
        for _ in 0..3 {
            let Some(heir) = self.heir().await else { break };
            let mark = self.succeed(&heir).await?;
            settled = self.page.settle(mark).await;
        }
        settled.map(|settled| Settled { took: settled.took.max(began.elapsed()), ..settled })
    }

    /// A window that has to become the page, if there is one: named already, or written into by its opener.
    async fn heir(&self) -> Option<Attached> {
        if let Some(heir) = self.context.take_heir() {
            return Some(heir);
        }
        for held in self.context.held() {
            if written(&self.connection, &held).await {
                self.context.name_heir(&held);
                return self.context.take_heir();
            }
        }
        None
    }

    async fn succeed(&mut self, heir: &Attached) -> Result<Mark, BrowserError> {
        let opener = Some(self.page.url()).filter(|url| url.starts_with("http"));
        let options = Arc::clone(&self.options);
        let page = Page::adopt(&self.connection, &heir.session, &heir.target, &self.context, options, opener)
            .await?;
        let old = std::mem::replace(&mut self.page, page);
        self.context.set_page(&self.page);
        self.shown = None;
        close(&self.connection, old.target());
        Ok(self.page.mark())
    }

    /// Answers when the page behind the instance is alive.
    pub async fn probe(&self) -> Result<(), BrowserError> {
        self.page.size().await.map(drop)
    }

    /// The viewport, as the page sees it.
    pub async fn size(&self) -> Result<(u32, u32), BrowserError> {
        self.page.size().await
    }

    /// Why the instance can never answer again, once that is so.
    pub fn lost(&self) -> Option<Gone> {
        self.page.tracker().state().gone.clone()
    }

    /// Waits until the page behind the instance is gone, and says why.
    pub async fn watch(&self) -> Gone {
        loop {
            let mut changes = self.page.tracker().changes();
            if let Some(gone) = self.lost() {
                return gone;
            }
            if changes.changed().await.is_err() {
                return Gone::Detached;
            }
        }
    }

    /// Ends the instance and everything of its tenant; returns when the browser has let go of it.
    pub async fn dispose(mut self) -> Result<(), BrowserError> {
        self.disposed = true;
        let params = json!({"browserContextId": self.context.id()});
        self.connection.root().run(p::TARGET_DISPOSE_BROWSER_CONTEXT, &params).await?;
        Ok(())
    }

    /// Crashes the page's renderer: for tests of everything that must survive one.
    pub fn crash_renderer(&self) {
        self.page.session().tell(p::PAGE_CRASH, &json!({}));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.disposed {
            dispose(&self.connection, &self.context);
        }
    }
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
