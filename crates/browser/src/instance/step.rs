//! An action and the observation after it, in one call. The screenshot is taken as soon as the page is quiet, without
//! waiting for frames, because a capture makes the page draw. Only if anything changed meanwhile, the page is settled and
//! observed again.

use std::sync::Arc;

use proto::Command;
use serde_json::Value;

use super::{Instance, ObserveRequest, observe::Observation, tabs::is_page_closed};
use crate::{
    error::BrowserError,
    page::{ActionStart, SETTLE_DRAWN_FRAMES, settle::Settled},
};

/// The result of a step.
#[derive(Debug)]
pub struct StepResult {
    /// The reply to the action, or why it was refused. The observation is made in both cases.
    pub result: Result<Value, BrowserError>,
    /// `None` if the command did not act.
    pub settled: Option<Settled>,
    pub observation: Observation,
}

impl Instance {
    pub async fn step(
        &mut self,
        command: &Command,
        request: &ObserveRequest,
    ) -> Result<StepResult, BrowserError> {
        let min_drawn_frames = match self.context.clock() {
            // The clock stands still after the command: nothing changes during the capture.
            Some(_) => SETTLE_DRAWN_FRAMES,
            None => frames_before_capture(command, *request),
        };
        let start = ActionStart { min_drawn_frames, ..self.page.action_start() };
        let (result, settled) = match self.execute_with_frames(command, min_drawn_frames).await {
            Ok((reply, settled)) => (Ok(reply), settled),
            Err(BrowserError::Lost(end)) => return Err(BrowserError::Lost(end)),
            Err(error) => (Err(error), None),
        };
        if min_drawn_frames == SETTLE_DRAWN_FRAMES || !settled.is_some_and(|settled| settled.quiet) {
            let observation = self.observe(request).await?;
            return Ok(StepResult { result, settled, observation });
        }
        if let Some(observation) = self.observe_unless_changed(start, request).await? {
            return Ok(StepResult { result, settled, observation });
        }
        let settled = self.settle(ActionStart { min_drawn_frames: SETTLE_DRAWN_FRAMES, ..start }).await?;
        let observation = self.observe(request).await?;
        Ok(StepResult { result, settled: Some(settled), observation })
    }

    /// Observes the page. Returns `None` if the page changed during the observation.
    async fn observe_unless_changed(
        &mut self,
        start: ActionStart,
        request: &ObserveRequest,
    ) -> Result<Option<Observation>, BrowserError> {
        let (document, tracker) = (self.page.document(), Arc::clone(self.page.tracker()));
        let navigates = tracker.wait_until(|state| state.is_navigating() || state.document != document);
        let observation = tokio::select! {
            observation = self.observe_quiet(start, request) => observation,
            () = navigates => return Ok(None),
        };
        if is_page_closed(&observation) {
            return Ok(None);
        }
        Ok(observation?.filter(|_| !self.context.has_windows()))
    }
}

/// How many frames the page must draw before the capture. A capture draws pending changes, but a turn of the mouse wheel
/// reaches the page only with a frame.
fn frames_before_capture(command: &Command, request: ObserveRequest) -> u8 {
    match command {
        _ if !request.screenshot => SETTLE_DRAWN_FRAMES,
        Command::PageDown(_)
        | Command::PageUp(_)
        | Command::MouseWheel(_)
        | Command::ScrollId { .. }
        | Command::ScrollCoords { .. }
        | Command::HoverAndScrollCoords { .. } => SETTLE_DRAWN_FRAMES - 1,
        _ => 0,
    }
}
