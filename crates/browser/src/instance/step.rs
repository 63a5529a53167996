//! An action and the look that follows it, in one go. The picture is taken at once: it has the page draw a frame of its own,
//! and only if anything happened meanwhile is the page waited for and looked at again.

use std::sync::Arc;

use cdp::SessionEnd;
use proto::Command;
use serde_json::Value;

use super::{Instance, ObserveRequest, observe::Observation};
use crate::{
    error::BrowserError,
    page::{FRAMES, Mark, settle::Settled},
};

/// What came of an action: its answer, or why it was refused, and what there is to see either way.
#[derive(Debug)]
pub struct StepResult {
    pub result: Result<Value, BrowserError>,
    /// `None` when nothing was done.
    pub settled: Option<Settled>,
    pub observation: Observation,
}

impl Instance {
    pub async fn step(
        &mut self,
        command: &Command,
        request: &ObserveRequest,
    ) -> Result<StepResult, BrowserError> {
        let mark = Mark { frames: frames_before(command, request), ..self.page.mark() };
        let (result, settled) = match self.execute_drawing(command, mark.frames).await {
            Ok((answer, settled)) => (Ok(answer), settled),
            Err(BrowserError::Lost(gone)) => return Err(BrowserError::Lost(gone)),
            Err(error) => (Err(error), None),
        };
        if mark.frames == FRAMES || !settled.is_some_and(|settled| settled.quiet) {
            let seen = self.observe(request).await?;
            return Ok(StepResult { result, settled, observation: seen });
        }
        if let Some(seen) = self.observe_at_once(mark, request).await? {
            return Ok(StepResult { result, settled, observation: seen });
        }
        let settled = self.settle(Mark { frames: FRAMES, ..mark }).await?;
        let seen = self.observe(request).await?;
        Ok(StepResult { result, settled: Some(settled), observation: seen })
    }

    /// What there is to see, unless the page stirs while it is looked at.
    async fn observe_at_once(
        &mut self,
        mark: Mark,
        request: &ObserveRequest,
    ) -> Result<Option<Observation>, BrowserError> {
        let (document, tracker) = (self.page.document(), Arc::clone(self.page.tracker()));
        let leaves = tracker.until(|state| state.navigating() || state.document != document);
        let seen = tokio::select! {
            seen = self.observe(request) => seen?,
            () = leaves => return Ok(None),
        };
        match self.page.stirred(mark, document).await {
            Err(BrowserError::Lost(SessionEnd::Detached)) => Ok(None),
            stirred => Ok((!stirred? && !self.context.has_windows()).then_some(seen)),
        }
    }
}

/// A picture draws what is due, except what has yet to reach the page: a turn of the wheel does so with a frame.
fn frames_before(command: &Command, request: &ObserveRequest) -> u8 {
    match command {
        _ if !request.screenshot => FRAMES,
        Command::PageDown(_)
        | Command::PageUp(_)
        | Command::ScrollId { .. }
        | Command::ScrollCoords { .. }
        | Command::HoverAndScrollCoords { .. } => FRAMES - 1,
        _ => 0,
    }
}
