//! One attempt at one task: look, think, act, until the answer or the last step. Owns the steps it has made; they
//! stay when the attempt is cut short. Speaks to the farm through [`BrowserSession`] and to the policy through its client.

mod ending;
mod homing;
mod look;
pub mod screenshots;
mod session;
mod think;

use std::{sync::Arc, time::Instant};

use proto::trajectory::{Action, Observation, Step as Record, Task};

pub use ending::{Ending, is_the_agents};
use homing::Homing;
pub(crate) use session::BrowserSession;
pub(crate) use think::prompts;

use crate::{
    config::{PolicyConfig, Split},
    episode::screenshots::{Fingerprint, ScreenshotStore},
    policy::{ActionContext, ActionKey, PromptOptions, ResolvedAction},
    run::{
        event::{Announcer, Event, Stage},
        leases::LeaseLog,
        permits::RequestPermits,
    },
};
use client::{chat::ModelClient, farm::FarmClient, http::Deadline};
use store::Journal;

/// What all episodes of a run share.
pub struct EpisodeContext {
    pub farm: FarmClient,
    pub policy: ModelClient,
    pub permits: RequestPermits,
    pub announcer: Announcer,
    pub leases: Option<LeaseLog>,
    pub journal: Journal,
    pub settings: Settings,
}

/// What the configuration says about every episode.
#[derive(Clone, Debug)]
pub struct Settings {
    pub prompting: PromptOptions,
    /// Lines of a page's text that the model is given; 0 for none.
    pub page_text_lines: usize,
    pub model: String,
    pub policy: PolicyConfig,
    pub split: Split,
    pub lifetime_mins: u32,
    pub operation_timeout: std::time::Duration,
    pub save_path: std::path::PathBuf,
    pub images: std::path::PathBuf,
    pub navigation_errors: std::path::PathBuf,
}

/// An attempt under way, and what is left of it when it ends.
pub struct Episode {
    context: Arc<EpisodeContext>,
    task: Task,
    attempt: u32,
    screenshots: ScreenshotStore,
    /// The task's time, with all that is in it.
    deadline: Deadline,
    pub(crate) steps: Vec<Record>,
}

/// What the agent sees now. Of the picture only its fingerprint stays in memory, to compare the next one with.
struct View {
    observation: Observation,
    /// The page's text, where the model is to get it.
    text: Option<String>,
    fingerprint: Fingerprint,
}

impl Episode {
    pub(crate) fn new(
        context: Arc<EpisodeContext>,
        task: Task,
        attempt: u32,
        screenshots: ScreenshotStore,
        deadline: Deadline,
    ) -> Self {
        Self { context, task, attempt, screenshots, deadline, steps: Vec::new() }
    }

    fn index(&self) -> usize {
        usize::try_from(self.task.trajectory_index).unwrap_or(0)
    }

    fn at(&self, stage: Stage) {
        self.context.announcer.announce(&Event::Stage { index: self.index(), step: self.steps.len(), stage });
    }

    fn took(&self, stage: Stage, since: Instant) -> f64 {
        let duration = since.elapsed();
        self.context.announcer.announce(&Event::StageTimed { stage, duration });
        (duration.as_secs_f64() * 10_000.0).round() / 10.0
    }

    fn trouble(&self, stage: Stage, reason: &str) {
        self.context.announcer.announce(&Event::StageFailed {
            index: self.index(),
            stage,
            reason: reason.to_owned(),
        });
    }

    /// Runs to an end of its own. May be dropped at any await: the steps so far stay.
    pub(crate) async fn run(&mut self, session: &BrowserSession) -> Ending {
        match self.play(session).await {
            Ok(ending) | Err(ending) => ending,
        }
    }

    async fn play(&mut self, session: &BrowserSession) -> Result<Ending, Ending> {
        self.at(Stage::Metadata);
        let since = Instant::now();
        let (width, height) = session.size().await?;
        self.took(Stage::Metadata, since);
        let start_url = self.task.website.clone();
        let opened = self.open_start_page(session, &start_url).await?;
        let mut view = self.first_look(session, opened).await?;
        let mut homing = Homing::new(&view.observation.url);
        for number in 0..self.task.max_steps.max(1) {
            let thought = self.think(&view).await?;
            let action_context = ActionContext {
                mode: self.context.settings.prompting.mode,
                width,
                height,
                start_url: &start_url,
            };
            let (step, action) =
                (ResolvedAction::resolve(&thought.action, &action_context), thought.action.clone());
            self.record(view.observation.clone(), thought);
            self.note_step().await?;
            if let Ok(ResolvedAction::Answer(_)) = &step {
                return Ok(Ending::Answered);
            }
            let goes_back = ActionKey::from_key(&action.key) == Some(ActionKey::GoBack);
            if homing.ends_episode(goes_back, &view.observation.url, self.context.settings.split) {
                return Ok(Ending::Stuck);
            }
            if number + 1 == self.task.max_steps {
                break;
            }
            let todo = homing.command(goes_back, &view.observation.url, &start_url, step);
            view = self.act(session, todo, &action, view).await?;
        }
        Ok(Ending::OutOfSteps)
    }

    async fn open_start_page(&mut self, session: &BrowserSession, url: &str) -> Result<bool, Ending> {
        self.at(Stage::Navigate);
        let since = Instant::now();
        let opened = session.visit(url).await?;
        self.took(Stage::Navigate, since);
        if let Err(why) = &opened {
            self.trouble(Stage::Navigate, why);
            let line = format!("{url}\n");
            if let Err(error) = store::durable::append(&self.context.settings.navigation_errors, &line) {
                tracing::warn!(%error, "cannot note a website that did not load");
            }
        }
        Ok(opened.is_ok())
    }

    /// The step is in the journal before the next one begins.
    async fn note_step(&mut self) -> Result<(), Ending> {
        let number = self.steps.len() as u32;
        let Some(step) = self.steps.last_mut() else { return Ok(()) };
        let journal = &self.context.journal;
        let noted = journal.append_step(self.task.trajectory_index, self.attempt, number - 1, step).await;
        // The longest part of a step, and the one that can be had again from the others (see `prompts`), unless it
        // holds the page's text, which is nowhere else.
        if self.context.settings.page_text_lines == 0 {
            step.response.raw_prompt = String::new();
        }
        self.context.announcer.announce(&Event::StepDone { index: self.index() });
        noted.map_err(|error| Ending::Disk(error.to_string()))
    }
}

impl Episode {
    /// Takes the attempt apart: its task, its steps, its pictures.
    pub(crate) fn into_parts(self) -> (Task, Vec<Record>, ScreenshotStore) {
        (self.task, self.steps, self.screenshots)
    }

    pub(crate) fn invalid_action() -> Action {
        Action {
            key: Action::INVALID_STEP.to_owned(),
            arguments: serde_json::Map::new(),
            action_string: "invalid step".to_owned(),
        }
    }
}
