//! One episode of a client: its task, its browser, its steps and, at the end, its reward.

mod report;

use std::path::PathBuf;

use proto::{
    InteractionMode,
    trajectory::{
        Action, Evaluation, Observation, Outcome, Response, Step, Task, Trajectory, TrajectoryMetadata,
    },
};
use rollout::{
    episode::{fingerprint::Fingerprint, prepare_page},
    judge::{
        Judge, Verdict, final_answer,
        program::{Check, JudgedEpisode, checks_of},
    },
    run::event::Stage,
};
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;

use crate::{
    action::{AgentAction, Effect, action_context},
    browser_session::{BrowserSession, SessionError},
    catalog::ChosenTask,
    environment::Environment,
    error::EnvError,
    page::Page,
    progress::Progress,
    recorder::Recording,
    screenshot_files::ScreenshotFiles,
};

/// How an episode ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Absent when the episode says nothing about the agent and must be masked.
    pub(crate) reward: Option<f64>,
    /// Why it ended or how it was judged, for people.
    pub(crate) reason: String,
}

/// An episode that is running, or that has ended and released its browser.
pub(crate) struct Episode {
    pub(crate) id: String,
    split: String,
    task: Task,
    mode: InteractionMode,
    /// `None` once the episode has ended.
    browser: Option<BrowserSession>,
    page: Page,
    steps: Vec<Step>,
    screenshots: ScreenshotFiles,
    recording: Option<Recording>,
    /// `None` once the episode has ended.
    progress: Option<Progress>,
    /// Whether observations have the screenshot. It may be taken for the judge or the record only.
    sends_screenshot: bool,
    /// The file of the page's screenshot once it is put away; empty if screenshots are not kept.
    image_path: Option<PathBuf>,
    /// The last screenshot, to compare the next one with; only for recorded episodes.
    fingerprint: Option<Fingerprint>,
    ended: Option<Ended>,
    /// Runs what must go on when the episode is dropped.
    tasks: TaskTracker,
}

/// What an episode starts with.
pub(crate) struct EpisodeStart {
    pub(crate) id: String,
    pub(crate) chosen: ChosenTask,
    pub(crate) mode: InteractionMode,
    pub(crate) screenshots: ScreenshotFiles,
    pub(crate) recording: Option<Recording>,
    pub(crate) sends_screenshot: bool,
    pub(crate) tasks: TaskTracker,
}

/// An episode whose start page is open.
pub(crate) struct StartedEpisode {
    start: EpisodeStart,
    browser: BrowserSession,
    page: Page,
}

impl EpisodeStart {
    /// Opens the task's start page.
    pub(crate) async fn open(self, browser: BrowserSession) -> Result<StartedEpisode, SessionError> {
        let task = &self.chosen.task;
        let mut page = browser.visit(&task.website).await?;
        let prepared = prepare_page(task, &browser.judged_page()).await;
        if prepared.map_err(|reason| {
            SessionError::Refused(format!("the setup script of the task failed: {reason}"))
        })? {
            page = browser.observe().await?;
        }
        Ok(StartedEpisode { start: self, browser, page })
    }
}

impl StartedEpisode {
    pub(crate) fn into_episode(self, progress: Progress) -> Episode {
        let Self { start, browser, page } = self;
        let EpisodeStart { id, chosen, mode, screenshots, recording, sends_screenshot, tasks } = start;
        Episode {
            id,
            split: chosen.split,
            task: chosen.task,
            mode,
            browser: Some(browser),
            page,
            steps: Vec::new(),
            screenshots,
            recording,
            progress: Some(progress),
            sends_screenshot,
            image_path: None,
            fingerprint: None,
            ended: None,
            tasks,
        }
    }
}

impl Episode {
    pub(crate) const fn task(&self) -> &Task {
        &self.task
    }

    pub(crate) const fn page(&self) -> &Page {
        &self.page
    }

    pub(crate) const fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    pub(crate) const fn browser(&self) -> Option<&BrowserSession> {
        self.browser.as_ref()
    }

    /// Returns whether the episode has a task that is judged.
    pub(crate) fn has_task(&self) -> bool {
        !self.task.task_name.is_empty()
    }

    /// Parses and performs an action. The future may be dropped at any await: dropping the episode then releases the browser.
    pub(crate) async fn step(
        &mut self,
        environment: &Environment,
        data: &Map<String, Value>,
    ) -> Result<(), EnvError> {
        let Some(browser) = &self.browser else { return Err(EnvError::EpisodeEnded) };
        let context = action_context(self.mode, browser.viewport(), &self.task.website);
        let action = AgentAction::parse(data, &context)?;
        self.perform(environment, action).await
    }

    /// Performs an action, records it, and ends the episode if it was the last.
    pub(crate) async fn perform(
        &mut self,
        environment: &Environment,
        action: AgentAction,
    ) -> Result<(), EnvError> {
        let Some(browser) = &self.browser else { return Err(EnvError::EpisodeEnded) };
        if let Some(progress) = &mut self.progress {
            progress.enter(Stage::Execute);
        }
        let observed = match &action.effect {
            Effect::Act(intents) => match browser.act(intents).await {
                // An agent may try a forbidden page; it stays where it is.
                Err(SessionError::Refused(reason)) => Ok(self.unchanged_page(browser, Some(reason)).await),
                other => other,
            },
            Effect::Unusable(reason) => {
                browser.observe().await.map(|page| Page { failure: Some(reason.clone()), ..page })
            }
            Effect::Answer(_) => Ok(self.unchanged_page(browser, None).await),
        };
        let is_answer = matches!(action.effect, Effect::Answer(_));
        self.record(action).await?;
        match observed {
            Ok(page) => self.show(page),
            Err(error) => return self.lose(environment, &error).await,
        }
        if is_answer || self.is_out_of_steps() || self.is_solved(environment).await {
            return self.judge(environment).await;
        }
        if let Some(progress) = &mut self.progress {
            progress.enter(Stage::Policy);
        }
        Ok(())
    }

    /// Observes the page without a step.
    pub(crate) async fn observe(&mut self, environment: &Environment) -> Result<(), EnvError> {
        let Some(browser) = &self.browser else { return Err(EnvError::EpisodeEnded) };
        match browser.observe().await {
            Ok(page) => self.show(page),
            Err(error) => return self.lose(environment, &error).await,
        }
        Ok(())
    }

    fn show(&mut self, page: Page) {
        self.page = page;
        self.image_path = None;
    }

    /// Returns the page after an action that did not change it. Its screenshot may have been put away and is then taken again.
    async fn unchanged_page(&self, browser: &BrowserSession, failure: Option<String>) -> Page {
        let is_put_away = self.sends_screenshot && self.page.screenshot.is_none();
        let seen_again = if is_put_away { browser.observe().await.ok() } else { None };
        let page = seen_again.unwrap_or_else(|| self.page.clone());
        Page { failure, result: None, ..page }
    }

    /// Saves the screenshot if files are kept, and drops the image: models take seconds to answer, and an image is larger than
    /// all else that a session holds. If it cannot be saved, the next step reports it.
    pub(crate) async fn put_screenshot_away(&mut self) {
        let _ = self.save_screenshot().await;
    }

    /// Saves the screenshot of the next step, unless that was done before.
    async fn save_screenshot(&mut self) -> Result<(), EnvError> {
        if self.ended.is_some() {
            // No step follows.
            self.page.screenshot = None;
        }
        let Some(screenshot) = &self.page.screenshot else { return Ok(()) };
        self.image_path = Some(self.screenshots.save(self.steps.len(), Some(screenshot)).await?);
        if self.recording.is_some() {
            let fingerprint = Fingerprint::of(&screenshot.data);
            if let (Some(last), Some(before)) = (self.steps.last_mut(), self.fingerprint) {
                last.same_as_next_screenshot = Some(before == fingerprint);
            }
            self.fingerprint = Some(fingerprint);
        }
        self.page.screenshot = None;
        Ok(())
    }

    fn is_out_of_steps(&self) -> bool {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX) >= self.task.max_steps.max(1)
    }

    /// Records what the agent saw and did.
    async fn record(&mut self, action: AgentAction) -> Result<(), EnvError> {
        self.save_screenshot().await?;
        let path = self.image_path.take().unwrap_or_default();
        if let Some(progress) = &mut self.progress {
            progress.record_step(&self.page.url, &path, &action.raw);
        }
        let observation = Observation {
            image_path: path.display().to_string(),
            ac_tree: self.page.ac_tree.clone(),
            title: self.page.title.clone(),
            url: self.page.url.clone(),
        };
        let raw_prompt = if self.recording.is_some() { self.prompt(&path) } else { String::new() };
        let response = Response { raw_response: action.raw, answering_tokens: action.parts, raw_prompt };
        let step = Step { observation, action: Some(action.record), response, ..Step::default() };
        if let Some(recording) = &self.recording {
            let appended = recording.append_step(self.steps.len(), &step).await;
            appended.map_err(|error| EnvError::Disk(error.to_string()))?;
        }
        self.steps.push(step);
        Ok(())
    }

    /// Returns the trajectory so far.
    fn trajectory(&self, outcome: Option<Outcome>, ending: &str) -> Trajectory {
        let extra =
            Map::from_iter([("ending".to_owned(), json!(ending)), ("episode_id".to_owned(), json!(self.id))]);
        let metadata = TrajectoryMetadata { outcome, extra, ..TrajectoryMetadata::default() };
        Trajectory { task: self.task.clone(), steps: self.steps.clone(), metadata }
    }

    async fn verdict(&self, environment: &Environment) -> Verdict {
        let answer = final_answer(&self.steps);
        let episode = JudgedEpisode {
            task: &self.task,
            answer: answer.as_deref(),
            steps: &self.steps,
            folder: self.screenshots.folder(),
        };
        match &self.browser {
            Some(browser) => environment.judge().judge_open(&episode, &browser.judged_page()).await,
            None => Verdict::new(Outcome::JudgeError, "Not judged: the browser is gone."),
        }
    }

    /// Returns whether the page shows that the task is done, for tasks whose checks look only at the page. Others end with an
    /// answer.
    async fn is_solved(&self, environment: &Environment) -> bool {
        if !matches!(environment.judge(), Judge::Program(_)) {
            return false;
        }
        let is_of_page =
            |check: &Check| matches!(check, Check::Url(_) | Check::Text(_) | Check::Javascript(_));
        let checks = checks_of(&self.task).ok().flatten().unwrap_or_default();
        let is_judged_by_page = !checks.is_empty() && checks.iter().all(is_of_page);
        is_judged_by_page && self.verdict(environment).await.outcome == Outcome::Success
    }

    /// Scores the episode and ends it. The browser stays open until the judge is done: a judge may look at the last page.
    async fn judge(&mut self, environment: &Environment) -> Result<(), EnvError> {
        let mut trajectory = self.trajectory(None, "answered or out of steps");
        if let Some(progress) = &mut self.progress {
            progress.enter(Stage::Reward);
        }
        let verdict = self.verdict(environment).await;
        let ended = ended_by(&verdict);
        verdict.apply(&mut trajectory);
        self.end(environment, ended, trajectory).await
    }

    /// Ends an episode that infrastructure or an incomplete archive cut short.
    async fn lose(&mut self, environment: &Environment, error: &SessionError) -> Result<(), EnvError> {
        let outcome = match error {
            SessionError::ReplayMiss(_) => Outcome::ReplayMiss,
            SessionError::Lost(_) | SessionError::Refused(_) => Outcome::InfraLost,
        };
        let reason = error.to_string();
        let trajectory = self.trajectory(Some(outcome), &reason);
        let ended = Ended { outcome, reward: None, reason };
        self.end(environment, ended, trajectory).await
    }

    /// Ends the episode, releases its browser and saves it.
    async fn end(
        &mut self,
        environment: &Environment,
        ended: Ended,
        mut trajectory: Trajectory,
    ) -> Result<(), EnvError> {
        let outcome = ended.outcome;
        if let Some(browser) = &self.browser {
            trajectory.metadata.network = browser.network_summary().await;
        }
        if let (Some(progress), Some(summary)) = (&self.progress, &trajectory.metadata.network) {
            progress.report_network(summary);
        }
        environment.metrics.record_outcome(outcome.as_str());
        self.browser = None;
        self.ended = Some(ended);
        let mut progress = self.progress.take();
        if let Some(recording) = self.recording.take() {
            if let Some(progress) = &mut progress {
                progress.enter(Stage::Save);
            }
            recording.finish(trajectory).await.map_err(|error| EnvError::Disk(error.to_string()))?;
        }
        if let Some(progress) = progress {
            progress.finish(outcome);
        }
        Ok(())
    }

    /// Ends an episode that its client gives up: releases its browser and saves its steps.
    pub(crate) fn give_up(&mut self) {
        self.browser = None;
        self.page = Page::default();
        if self.ended.is_none() {
            let reason = "the client ended the episode".to_owned();
            self.ended = Some(Ended { outcome: Outcome::Cancelled, reward: None, reason });
        }
        self.save_given_up();
    }

    fn save_given_up(&mut self) {
        // Announces the end once the steps are saved.
        let progress = self.progress.take();
        let Some(recording) = self.recording.take() else { return };
        let trajectory = self.trajectory(Some(Outcome::Cancelled), "the client ended the episode");
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.tasks.spawn(async move {
            let _progress = progress;
            if trajectory.steps.is_empty() {
                return recording.discard().await;
            }
            if let Err(error) = recording.finish(trajectory).await {
                tracing::warn!(%error, "cannot save an episode");
            }
        });
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        self.save_given_up();
    }
}

/// Returns how a verdict ends an episode. An episode that could not be judged has no reward.
fn ended_by(verdict: &Verdict) -> Ended {
    let reward = match verdict.outcome {
        Outcome::Success => Some(1.0),
        Outcome::Failure | Outcome::Blocked => Some(0.0),
        Outcome::InfraLost | Outcome::JudgeError | Outcome::Cancelled | Outcome::ReplayMiss => None,
    };
    let reason = match (reward, &verdict.evaluation) {
        // The explanation may contain the reference answer, which the agent must not learn. It is saved with the episode.
        (Some(_), _) => "the episode was judged".to_owned(),
        (None, Evaluation::Text(text)) => text.clone(),
        (None, Evaluation::Texts(texts)) => texts.join("\n"),
    };
    Ended { outcome: verdict.outcome, reward, reason }
}

/// Returns the action that submits an answer.
pub(crate) fn answer_action(text: &str) -> AgentAction {
    AgentAction::answer(text, json!({ Action::ANSWER: text }).to_string())
}
