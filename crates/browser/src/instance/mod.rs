//! An instance: one isolated page that is acted on by commands and observed by screenshots. Owns the browser context, its
//! page, and the marks of the last set-of-marks screenshot.

mod act;
mod files;
mod inspect;
mod observe;
mod step;
mod tab_list;
mod tabs;

use std::sync::Arc;

use cdp::{Connection, SessionEnd, protocol as p};
use proto::{Command, SessionOptions, StorageState, command::Point, page::ScreenshotInfo};
use serde_json::{Value, json};

pub use inspect::Inspector;
pub use observe::{Observation, ObserveRequest, Screenshot};
pub use step::StepResult;
use tab_list::Tabs;

use crate::{
    context::Context,
    determinism::Determinism,
    error::BrowserError,
    host::{Creator, dispose_context},
    options::Options,
    page::{ActionStart, Page, SETTLE_DRAWN_FRAMES, script::ScriptRun, settle::Settled},
    state,
    tenant::TenantBrowser,
};

/// One isolated page of a browser. Dropping it disposes its context in the background.
pub struct Instance {
    connection: Connection,
    creator: Creator,
    context: Arc<Context>,
    page: Page,
    tabs: Tabs,
    options: Arc<Options>,
    last_marks: Option<LastMarks>,
    disposed: bool,
}

/// The marks of the last set-of-marks screenshot, and the run of the page script that assigned the element ids.
struct LastMarks {
    info: ScreenshotInfo,
    script_run: Option<ScriptRun>,
}

impl Instance {
    pub(crate) fn new(
        connection: Connection,
        creator: Creator,
        context: Arc<Context>,
        page: Page,
        options: Arc<Options>,
    ) -> Self {
        context.set_page(&page);
        Self {
            connection,
            creator,
            context,
            page,
            tabs: Tabs::default(),
            options,
            last_marks: None,
            disposed: false,
        }
    }

    /// Carries out a command and waits until the page has settled.
    pub async fn execute(&mut self, command: &Command) -> Result<Value, BrowserError> {
        self.execute_settled(command).await.map(|(reply, _)| reply)
    }

    /// Like [`Self::execute`], and returns how the page settled; `None` for commands that only read.
    pub async fn execute_settled(
        &mut self,
        command: &Command,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        self.execute_with_frames(command, SETTLE_DRAWN_FRAMES).await
    }

    /// Like [`Self::execute_settled`]; the page must draw `min_drawn_frames` frames before it can count as settled.
    async fn execute_with_frames(
        &mut self,
        command: &Command,
        min_drawn_frames: u8,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        self.sync_page().await?;
        let mut reply = self.read(command).await;
        if tabs::is_page_closed(&reply) {
            self.recover_closed_page().await?;
            reply = self.read(command).await;
        }
        if let Some(reply) = reply? {
            return Ok((reply, None));
        }
        self.context.begin_action();
        let start = ActionStart { min_drawn_frames, ..self.page.action_start() };
        let result = self.act(command).await;
        // A click may close the page; that is an effect, not a failure.
        if !tabs::is_page_closed(&result) {
            result?;
        }
        let settled = self.settle(start).await?;
        Ok((json!({"status": "success"}), Some(settled)))
    }

    /// Answers a command that only reads; returns `None` for commands that act.
    async fn read(&mut self, command: &Command) -> Result<Option<Value>, BrowserError> {
        let to_reply = |value: Result<Value, serde_json::Error>| {
            value.map(Some).map_err(|error| BrowserError::Internal(error.to_string()))
        };
        match command {
            Command::ListTabs => Ok(Some(json!({"tabs": self.list_tabs().await?}))),
            Command::GetPageMetadata => to_reply(serde_json::to_value(self.page.metadata().await?)),
            Command::GetWebpageText { n_lines } => Ok(Some(json!({"text": self.page.text(*n_lines).await?}))),
            Command::GetInteractiveRects => Ok(Some(self.page.collect_elements().await?.regions().into())),
            Command::GetScreenshotInfo => match &self.last_marks {
                Some(last) => to_reply(serde_json::to_value(&last.info)),
                None => Ok(Some(json!({"error": "No screenshot info available"}))),
            },
            Command::Screenshot { mode } => {
                self.observe(&ObserveRequest::screenshot(*mode)).await?;
                Ok(Some(json!({"status": "screenshot_taken"})))
            }
            _ => Ok(None),
        }
    }

    /// Creates another instance in the same browser, with the options of a session. With `determinism` its
    /// pages follow a virtual clock.
    pub async fn create_sibling(
        &self,
        session: SessionOptions,
        proxy_server: Option<String>,
        determinism: Option<Determinism>,
    ) -> Result<Self, BrowserError> {
        let options = Options { determinism, ..self.options.with_session(session, proxy_server) };
        self.creator.create(&self.connection, &options).await
    }

    /// The tenant's part of the browser, for CDP clients.
    pub fn tenant_browser(&self) -> TenantBrowser {
        TenantBrowser::new(
            self.connection.clone(),
            self.creator.clone(),
            Arc::clone(&self.context),
            Arc::clone(&self.options),
        )
    }

    /// Returns the cookies and the storage of the session, in Playwright's format.
    pub async fn storage_state(&self) -> Result<StorageState, BrowserError> {
        state::collect(&self.connection, &self.context).await
    }

    /// Replaces the cookies and the storage of the session. The page is not reloaded.
    pub async fn set_storage_state(&self, state: &StorageState) -> Result<(), BrowserError> {
        state::replace(&self.connection, &self.context, state).await
    }

    /// Checks that the page answers.
    pub async fn probe(&self) -> Result<(), BrowserError> {
        self.page.viewport_size().await.map(drop)
    }

    /// Returns the size of the viewport, as the page sees it.
    pub async fn viewport_size(&self) -> Result<(u32, u32), BrowserError> {
        self.page.viewport_size().await
    }

    /// Returns the configured size of the viewport.
    pub fn viewport(&self) -> (u32, u32) {
        self.options.viewport
    }

    /// Whether each window is a tab.
    pub fn has_many_tabs(&self) -> bool {
        self.context.has_many_tabs()
    }

    /// Returns where the mouse is, in CSS pixels of the viewport.
    pub fn mouse_position(&self) -> Point {
        self.page.input().mouse_position()
    }

    /// Why the instance is lost for good; `None` while it is usable. A page that closed itself is replaced, not lost.
    pub fn lost_reason(&self) -> Option<SessionEnd> {
        let ended = self.page.tracker().state().ended.clone();
        ended.filter(|end| *end != SessionEnd::Detached).or_else(|| self.connection.close_reason())
    }

    /// Waits until the instance is lost, and returns why.
    pub async fn wait_lost(&self) -> SessionEnd {
        loop {
            let mut changes = self.page.tracker().changes();
            if let Some(end) = self.lost_reason() {
                return end;
            }
            tokio::select! {
                end = self.connection.wait_closed() => return end,
                Ok(()) = changes.changed() => {}
            }
        }
    }

    /// Disposes the instance with all data of its tenant; returns when the browser has removed its context.
    pub async fn dispose(mut self) -> Result<(), BrowserError> {
        self.disposed = true;
        let params = json!({"browserContextId": self.context.id()});
        self.connection.root().run(p::TARGET_DISPOSE_BROWSER_CONTEXT, &params).await?;
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A window that was never shown refers to the context, which holds it.
        while self.context.take_new_tab().is_some() {}
        if !self.disposed {
            dispose_context(&self.connection, &self.context);
        }
    }
}
