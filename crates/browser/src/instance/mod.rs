//! The instance an agent holds: one isolated page, acted on by commands, looked at in pictures. Owns the
//! context, the page in it, and the meaning of the numbers on the last set-of-marks screenshot.

mod act;
mod inspect;
mod observe;
mod step;
mod tabs;

use std::sync::Arc;

use cdp::{Connection, SessionEnd, protocol as p};
use proto::{Command, page::ScreenshotInfo};
use serde_json::{Value, json};

pub use inspect::Inspector;
pub use observe::{Observation, ObserveRequest, Screenshot};
pub use step::StepResult;

use crate::{
    context::Context,
    error::BrowserError,
    host::dispose,
    options::Options,
    page::{FRAMES, Mark, Page, settle::Settled},
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
        self.execute_drawing(command, FRAMES).await
    }

    /// The same, with so many frames drawn before the page can count as settled.
    async fn execute_drawing(
        &mut self,
        command: &Command,
        frames: u8,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        self.keep_up().await?;
        let mut seen = self.look(command).await;
        if tabs::closed(&seen) {
            self.catch_up().await?;
            seen = self.look(command).await;
        }
        if let Some(answer) = seen? {
            return Ok((answer, None));
        }
        self.context.begin_action();
        let mark = Mark { frames, ..self.page.mark() };
        let acted = self.act(command).await;
        // A click may well close the page; that is an effect, not a failure.
        if !tabs::closed(&acted) {
            acted?;
        }
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

    /// Answers when the page behind the instance is alive.
    pub async fn probe(&self) -> Result<(), BrowserError> {
        self.page.size().await.map(drop)
    }

    /// The viewport, as the page sees it.
    pub async fn size(&self) -> Result<(u32, u32), BrowserError> {
        self.page.size().await
    }

    /// Why the instance can never answer again, once that is so. A page that merely closed itself is replaced.
    pub fn lost_reason(&self) -> Option<SessionEnd> {
        let gone = self.page.tracker().state().gone.clone();
        gone.filter(|gone| *gone != SessionEnd::Detached).or_else(|| self.connection.close_reason())
    }

    /// Waits until the instance is lost, and says why.
    pub async fn wait_lost(&self) -> SessionEnd {
        loop {
            let mut changes = self.page.tracker().changes();
            if let Some(gone) = self.lost_reason() {
                return gone;
            }
            tokio::select! {
                gone = self.connection.wait_closed() => return gone,
                Ok(()) = changes.changed() => {}
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
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.disposed {
            dispose(&self.connection, &self.context);
        }
    }
}
