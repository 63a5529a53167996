//! The loop of an episode, and the record of its steps.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use client::http::Deadline;
use proto::{
    command::Point,
    dialect::Size,
    network::NetworkSummary,
    trajectory::{Action, Observation, Step as Record, Task},
};

use store::Prompts;

use super::{
    BrowserSession, Ending, EpisodeContext, fingerprint::Fingerprint, screenshots::ScreenshotStore, setup,
    start_page::StartPage,
};
use crate::{
    judge::{ProgramJudge, Verdict, final_answer, program::JudgedEpisode},
    policy::{ActionContext, ActionKey, ConversationBuilder, PromptOptions, ResolvedAction},
    run::{
        Prefix, TaskDeadline,
        event::{Event, Stage},
    },
};

/// An attempt at a task, with the steps made so far.
pub struct Episode {
    pub(super) context: Arc<EpisodeContext>,
    pub(super) task: Task,
    attempt: u32,
    pub(super) screenshots: ScreenshotStore,
    pub(super) deadline: TaskDeadline,
    pub(crate) steps: Vec<Record>,
    /// The prompts of the steps, which do not contain them.
    pub(super) prompts: Prompts,
    /// How prompts are built. The window shrinks when a prompt does not fit the model.
    pub(super) prompting: PromptOptions,
    pub(super) conversation: ConversationBuilder,
    /// Where the mouse is, for dialects with actions at its position.
    pub(super) cursor: Point,
    /// The steps that the attempt takes over from its group, until it has carried them out.
    pub(super) prefix: Option<Arc<Prefix>>,
    /// When the screenshot of each step was saved.
    pub(crate) screenshot_times: Vec<SystemTime>,
    /// The screenshots so far, while a first attempt has not published its steps.
    pub(super) fingerprints: Vec<Fingerprint>,
    /// The number of steps that were taken over, once the attempt continues with its own.
    pub(crate) forked_at_step: Option<u64>,
    /// The verdict of a judge that looked at the page at the end.
    pub(crate) verdict: Option<Verdict>,
    /// What was recorded or replayed.
    pub(crate) network: Option<NetworkSummary>,
}

/// What the agent currently sees. The screenshot is on disk; only its fingerprint is kept, to compare the next one with.
pub(super) struct View {
    pub(super) observation: Observation,
    /// The page's text, if the model gets it.
    pub(super) text: Option<String>,
    pub(super) fingerprint: Fingerprint,
}

impl Episode {
    pub(crate) fn new(
        context: Arc<EpisodeContext>,
        task: Task,
        attempt: u32,
        screenshots: ScreenshotStore,
        deadline: TaskDeadline,
    ) -> Self {
        let prompting = context.settings.prompting;
        let cursor = Point { x: 0.0, y: 0.0 };
        let prefix = context.group_prefixes.as_ref().and_then(|groups| groups.get(task.trajectory_index));
        Self {
            context,
            task,
            attempt,
            screenshots,
            deadline,
            steps: Vec::new(),
            prompts: Prompts::default(),
            prompting,
            conversation: ConversationBuilder::default(),
            cursor,
            prefix,
            screenshot_times: Vec::new(),
            fingerprints: Vec::new(),
            forked_at_step: None,
            verdict: None,
            network: None,
        }
    }

    pub(super) fn index(&self) -> usize {
        usize::try_from(self.task.trajectory_index).unwrap_or(0)
    }

    pub(crate) fn screenshots(&self) -> &ScreenshotStore {
        &self.screenshots
    }

    pub(crate) fn enter_stage(&self, stage: Stage) {
        let event = Event::Stage { index: self.index(), step: self.steps.len(), stage };
        self.context.announcer.announce(&event);
    }

    /// Announces how long a stage took and returns it in milliseconds, rounded to tenths.
    pub(super) fn announce_duration(&self, stage: Stage, since: Instant) -> f64 {
        let duration = since.elapsed();
        self.context.announcer.announce(&Event::StageTimed { stage, duration });
        (duration.as_secs_f64() * 10_000.0).round() / 10.0
    }

    pub(super) fn announce_failure(&self, stage: Stage, reason: &str) {
        let event = Event::StageFailed { index: self.index(), stage, reason: reason.to_owned() };
        self.context.announcer.announce(&event);
    }

    /// Runs until the episode ends by itself. The future may be dropped at any await; the steps so far stay.
    pub(crate) async fn run(&mut self, session: &BrowserSession) -> Ending {
        match self.run_steps(session).await {
            Ok(ending) | Err(ending) => self.blame_prefix(ending),
        }
    }

    async fn run_steps(&mut self, session: &BrowserSession) -> Result<Ending, Ending> {
        self.enter_stage(Stage::Metadata);
        let since = Instant::now();
        let (width, height) = session.viewport().await?;
        self.announce_duration(Stage::Metadata, since);
        if let Some(dialect) = &mut self.prompting.dialect {
            dialect.viewport = Size { width, height };
        }
        let start_url = self.task.website.clone();
        let is_open = self.open_start_page(session, &start_url).await?;
        let page = session.judged_page(session.deadline());
        setup::prepare_page(&self.task, &page).await.map_err(Ending::SetupFailed)?;
        let mut view = self.observe_first(session, is_open).await?;
        let mut start_page = StartPage::new(&view.observation.url);
        let mode = self.context.settings.prompting.mode;
        for number in 0..self.task.max_steps.max(1) {
            self.share_prefix(&view);
            let decision = match self.next_of_prefix(&view)? {
                Some(decision) => decision,
                None => session.keep_alive(self.decide(&view)).await?,
            };
            let action_context = ActionContext { mode, width, height, start_url: &start_url };
            let action = decision.action.clone();
            let resolved = ResolvedAction::resolve(&action, &action_context);
            self.record(view.observation.clone(), decision);
            self.journal_step().await?;
            if let Ok(ResolvedAction::Answer(_)) = &resolved {
                return Ok(Ending::Answered);
            }
            let goes_back = ActionKey::from_key(&action.key) == Some(ActionKey::GoBack);
            if start_page.count_back(goes_back, &view.observation.url, self.context.settings.split) {
                return Ok(Ending::Stuck);
            }
            if number + 1 == self.task.max_steps {
                break;
            }
            let resolved = start_page.resolve(goes_back, &view.observation.url, &start_url, resolved);
            view = self.act(session, resolved, &action, view).await?;
        }
        Ok(Ending::OutOfSteps)
    }

    /// Judges the end of the episode, which the page shows.
    pub(crate) async fn judge(&mut self, judge: &ProgramJudge, session: &BrowserSession) {
        let answer = final_answer(&self.steps);
        let judged = JudgedEpisode {
            task: &self.task,
            answer: answer.as_deref(),
            steps: &self.steps,
            folder: Some(self.screenshots.folder()),
        };
        let page = session.judged_page(Deadline::after(judge.timeout()));
        self.verdict = Some(judge.judge(&judged, &page).await);
    }

    async fn open_start_page(&mut self, session: &BrowserSession, url: &str) -> Result<bool, Ending> {
        self.enter_stage(Stage::Navigate);
        let since = Instant::now();
        let opened = session.visit(url).await?;
        self.announce_duration(Stage::Navigate, since);
        if let Err(reason) = &opened {
            self.announce_failure(Stage::Navigate, reason);
            let line = format!("{url}\n");
            if let Err(error) = store::durable::append(&self.context.settings.navigation_errors, &line) {
                tracing::warn!(%error, "cannot record a website that did not load");
            }
        }
        Ok(opened.is_ok())
    }

    /// Writes the last step to the journal, before the next one begins.
    async fn journal_step(&mut self) -> Result<(), Ending> {
        let Some(step) = self.steps.last_mut() else { return Ok(()) };
        let known_parts = self.prompts.parts();
        self.prompts.push(&std::mem::take(&mut step.response.raw_prompt));
        let (journal, index) = (&self.context.journal, self.task.trajectory_index);
        let written = journal.append_step_with(index, self.attempt, step, &self.prompts, known_parts).await;
        self.context.announcer.announce(&Event::StepDone { index: self.index() });
        written.map_err(|error| Ending::Disk(error.to_string()))
    }

    /// Returns the id of the group of attempts that the episode belongs to.
    pub(crate) fn group_id(&self) -> Option<String> {
        let groups = self.context.settings.groups.as_ref()?;
        Some(groups.id_of(self.task.trajectory_index))
    }

    /// Splits the attempt into its task, its steps, their prompts and its screenshots.
    pub(crate) fn into_parts(self) -> (Task, Vec<Record>, Prompts, ScreenshotStore) {
        (self.task, self.steps, self.prompts, self.screenshots)
    }

    pub(crate) fn invalid_action() -> Action {
        Action {
            key: Action::INVALID_STEP.to_owned(),
            arguments: serde_json::Map::new(),
            action_string: "invalid step".to_owned(),
        }
    }
}
