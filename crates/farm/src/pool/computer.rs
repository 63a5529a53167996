//! Carries out a model's turn in an instance: its commands in order up to the first error, with a screenshot at the end.

use std::time::{Duration, Instant};

use browser::{BrowserError, Instance, Observation, ObserveRequest, View};
use proto::{
    Command, InteractionMode,
    dialect::{Call, CallResult, Region, Screen, Size, Step},
    page::PageMetadata,
};
use serde_json::Value;

use crate::{
    computer::{ComputerCall, ComputerResult, TurnError, to_image},
    error::ApiError,
};

/// No command is started after this time, so that a master gets the response before its own limit.
const TURN_TIMEOUT: Duration = Duration::from_secs(90);
/// How much a region may be enlarged.
const MAX_ZOOM: f64 = 10.0;

/// Carries out a turn.
pub(super) async fn perform(
    instance: &mut Instance,
    call: &ComputerCall,
) -> Result<ComputerResult, ApiError> {
    let (width, height) = instance.viewport();
    let viewport = Size { width, height };
    let display = call.display(viewport)?;
    let screen = Screen { viewport, display, cursor: instance.mouse_position() };
    let turn = call.turn(screen)?;
    let mut run = Run {
        instance,
        request: request(viewport, display),
        display,
        call,
        deadline: Instant::now() + TURN_TIMEOUT,
        commands: Vec::new(),
        observation: None,
        is_finished: false,
    };
    let mut results = Vec::new();
    let mut error = None;
    for (number, call) in turn.calls.iter().enumerate() {
        match run.perform(call, number + 1 == turn.calls.len()).await {
            Ok(result) => results.push(result),
            Err(Stop::Lost(lost)) => return Err(lost.into()),
            Err(Stop::Error(reason)) => error = Some(reason),
        }
        if error.is_some() || run.is_finished {
            break;
        }
    }
    let observation = run.observe().await?;
    let (commands, is_finished) = (run.commands, run.is_finished);
    let missing = || ApiError::Internal("no screenshot was taken".into());
    let screenshot = observation.screenshot.ok_or_else(missing)?;
    let metadata: PageMetadata = observation.metadata.ok_or_else(missing)?;
    Ok(ComputerResult {
        turn,
        viewport,
        display,
        commands,
        results,
        is_finished,
        error,
        screenshot,
        metadata,
        tabs: observation.tabs.unwrap_or_default(),
    })
}

/// Requests the screenshot at the size of the display.
fn request(viewport: Size, display: Size) -> ObserveRequest {
    let scale = f64::from(display.width) / f64::from(viewport.width);
    // The aspect ratio may differ by a fraction of a pixel; the height is that of the display.
    let (width, height) = (f64::from(viewport.width), f64::from(display.height) / scale);
    let view = (display != viewport).then_some(View { x: 0.0, y: 0.0, width, height, scale });
    ObserveRequest { metadata: true, view, ..ObserveRequest::screenshot(InteractionMode::Coordinates) }
}

/// Why a turn stops.
enum Stop {
    /// The browser is lost, and with it the turn.
    Lost(BrowserError),
    Error(TurnError),
}

impl From<BrowserError> for Stop {
    fn from(error: BrowserError) -> Self {
        match error {
            BrowserError::Lost(_) => Self::Lost(error),
            other => Self::Error(TurnError::Browser(other)),
        }
    }
}

/// A turn that is being carried out.
struct Run<'a> {
    instance: &'a mut Instance,
    request: ObserveRequest,
    display: Size,
    call: &'a ComputerCall,
    deadline: Instant,
    commands: Vec<Command>,
    /// What the page looks like; `None` after a command that did not observe.
    observation: Option<Observation>,
    is_finished: bool,
}

impl Run<'_> {
    async fn perform(&mut self, call: &Call, is_last: bool) -> Result<CallResult, Stop> {
        let mut result = CallResult::default();
        for (number, step) in call.steps.iter().enumerate() {
            match step {
                Step::Command(command) => {
                    let following = &call.steps[number + 1..];
                    let wants_screenshot = following.first() == Some(&Step::Screenshot);
                    let observes =
                        wants_screenshot || (is_last && following.is_empty() && call.failure.is_none());
                    let answer = self.execute(command, observes).await?;
                    result.text = answer.get("text").and_then(Value::as_str).map(str::to_owned);
                    // A screenshot from before this command is outdated.
                    result.image = None;
                }
                Step::Screenshot => {
                    let observation = self.observe().await?;
                    result.image = observation.screenshot.as_ref().map(to_image);
                }
                Step::CursorPosition { x, y } => result.text = Some(format!("X={x},Y={y}")),
                Step::Zoom(region) => {
                    let view = Some(zoom(*region, self.display));
                    let request = ObserveRequest { view, metadata: false, ..self.request };
                    let observation = self.instance.observe(&request).await?;
                    result.image = observation.screenshot.as_ref().map(to_image);
                }
                Step::Finish { .. } => {
                    self.is_finished = true;
                    return Ok(result);
                }
            }
        }
        match &call.failure {
            Some(failure) => Err(Stop::Error(TurnError::Action(failure.clone()))),
            None => Ok(result),
        }
    }

    /// Executes a command, and observes in the same step if a screenshot is wanted after it.
    async fn execute(&mut self, command: &Command, observes: bool) -> Result<Value, Stop> {
        if Instant::now() >= self.deadline && !is_release(command) {
            return Err(Stop::Error(TurnError::Timeout(TURN_TIMEOUT)));
        }
        if let Some(refused) = self.call.refusal(command) {
            return Err(refused.into());
        }
        if is_current_tab(command, self.instance) {
            return Ok(Value::Null);
        }
        self.observation = None;
        let answer = if observes {
            let step = self.instance.step(command, &self.request).await?;
            self.observation = Some(step.observation);
            step.result?
        } else {
            self.instance.execute(command).await?
        };
        self.commands.push(command.clone());
        Ok(answer)
    }

    /// Returns the observation of the page as it is now.
    async fn observe(&mut self) -> Result<Observation, BrowserError> {
        let observation = match self.observation.take() {
            Some(observation) => observation,
            None => self.instance.observe(&self.request).await?,
        };
        self.observation = Some(observation.clone());
        Ok(observation)
    }
}

/// Whether a command switches to the only tab of a session with a single page, which has no other.
fn is_current_tab(command: &Command, instance: &Instance) -> bool {
    matches!(command, Command::SwitchTab { id } if id == "1") && !instance.has_many_tabs()
}

/// Whether a command releases what an earlier command of the turn pressed. It is carried out however late it is: a key that
/// stays pressed would affect the next turn.
fn is_release(command: &Command) -> bool {
    matches!(command, Command::KeyUp { .. } | Command::MouseUp { .. })
}

/// Enlarges a region as far as it fits on the display.
fn zoom(region: Region, display: Size) -> View {
    let Region { x, y, width, height } = region;
    let scale = (f64::from(display.width) / width).min(f64::from(display.height) / height).min(MAX_ZOOM);
    View { x, y, width, height, scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_turn_still_releases_its_keys() {
        assert!(is_release(&Command::KeyUp { key: "shift".into() }));
        assert!(!is_release(&Command::KeyDown { key: "shift".into() }) && !is_release(&Command::Back));
    }

    #[test]
    fn region_is_enlarged_to_fit_the_display() {
        let display = Size { width: 1280, height: 768 };
        let scale = |width, height| zoom(Region { x: 5.0, y: 6.0, width, height }, display).scale;
        assert!((scale(640.0, 100.0) - 2.0).abs() < 1e-9);
        assert!((scale(100.0, 384.0) - 2.0).abs() < 1e-9);
        assert!((scale(1.0, 1.0) - MAX_ZOOM).abs() < 1e-9);
    }

    #[test]
    fn screenshot_has_the_size_of_the_display() {
        let viewport = Size { width: 1280, height: 768 };
        assert_eq!(request(viewport, viewport).view, None);
        let view = request(viewport, Size { width: 1024, height: 615 }).view.unwrap();
        assert!(
            (view.width * view.scale - 1024.0).abs() < 1e-9
                && (view.height * view.scale - 615.0).abs() < 1e-9
        );
    }
}
