//! One episode of a client: its task, its browser, its steps and, at the end, its reward.

use proto::{
    InteractionMode,
    trajectory::{Action, Observation, Outcome, Response, Step, Task, Trajectory, TrajectoryMetadata},
};
use rollout::judge::Verdict;
use serde_json::{Map, Value, json};

use crate::{
    action::{AgentAction, Effect, action_context},
    browser_session::{BrowserSession, SessionError},
    catalog::{ChosenTask, id_text},
    environment::Environment,
    error::EnvError,
    page::Page,
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
    ended: Option<Ended>,
}

impl Episode {
    /// Opens the task's start page.
    pub(crate) async fn start(
        id: String,
        chosen: ChosenTask,
        mode: InteractionMode,
        browser: BrowserSession,
        screenshots: ScreenshotFiles,
    ) -> Result<Self, SessionError> {
        let ChosenTask { split, task } = chosen;
        let page = browser.visit(&task.website).await?;
        Ok(Self {
            id,
            split,
            task,
            mode,
            browser: Some(browser),
            page,
            steps: Vec::new(),
            screenshots,
            ended: None,
        })
    }

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
        let observed = match &action.effect {
            Effect::Act(intents) => browser.act(intents).await,
            Effect::Unusable(reason) => {
                browser.observe().await.map(|page| Page { failure: Some(reason.clone()), ..page })
            }
            // The page stays as it is.
            Effect::Answer(_) => Ok(Page { failure: None, result: None, ..self.page.clone() }),
        };
        let is_answer = matches!(action.effect, Effect::Answer(_));
        self.record(action).await?;
        match observed {
            Ok(page) => self.page = page,
            Err(SessionError::Lost(reason)) => {
                self.end(environment, Ended { outcome: Outcome::InfraLost, reward: None, reason });
                return Ok(());
            }
            // An agent may try a forbidden page; it stays where it is.
            Err(SessionError::Refused(reason)) => self.page.failure = Some(reason),
        }
        if is_answer || self.is_out_of_steps() {
            self.judge(environment).await;
        }
        Ok(())
    }

    /// Observes the page without a step.
    pub(crate) async fn observe(&mut self, environment: &Environment) -> Result<(), EnvError> {
        let Some(browser) = &self.browser else { return Err(EnvError::EpisodeEnded) };
        match browser.observe().await {
            Ok(page) => self.page = page,
            Err(error) => {
                let reason = error.to_string();
                self.end(environment, Ended { outcome: Outcome::InfraLost, reward: None, reason });
            }
        }
        Ok(())
    }

    fn is_out_of_steps(&self) -> bool {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX) >= self.task.max_steps.max(1)
    }

    /// Records what the agent saw and did.
    async fn record(&mut self, action: AgentAction) -> Result<(), EnvError> {
        let path = self.screenshots.save(self.steps.len(), self.page.screenshot.as_ref()).await?;
        let observation = Observation {
            image_path: path.display().to_string(),
            ac_tree: self.page.ac_tree.clone(),
            title: self.page.title.clone(),
            url: self.page.url.clone(),
        };
        let response =
            Response { raw_response: action.raw, answering_tokens: action.parts, raw_prompt: String::new() };
        self.steps.push(Step { observation, action: Some(action.record), response, ..Step::default() });
        Ok(())
    }

    /// Scores the episode and ends it. The browser stays open until the judge is done: a judge may look at the last page.
    async fn judge(&mut self, environment: &Environment) {
        let mut trajectory = Trajectory {
            task: self.task.clone(),
            steps: std::mem::take(&mut self.steps),
            metadata: TrajectoryMetadata::default(),
        };
        let verdict = environment.judge().judge(&trajectory).await;
        let ended = ended_by(&verdict);
        verdict.apply(&mut trajectory);
        self.steps = trajectory.steps;
        self.end(environment, ended);
    }

    /// Ends the episode and releases its browser.
    fn end(&mut self, environment: &Environment, ended: Ended) {
        environment.metrics.record_outcome(ended.outcome.as_str());
        self.browser = None;
        self.ended = Some(ended);
    }

    /// Returns the data of an `observation` message.
    pub(crate) fn observation(&self) -> Value {
        let page = &self.page;
        let axtree = page.axtree();
        let mut observation = Map::from_iter([
            ("goal".to_owned(), json!(self.task.task_name)),
            ("url".to_owned(), json!(page.url)),
            ("title".to_owned(), json!(page.title)),
            ("text".to_owned(), json!(axtree)),
            ("axtree_txt".to_owned(), json!(axtree)),
            ("pruned_html".to_owned(), json!("")),
            ("error".to_owned(), json!(page.failure.as_deref().unwrap_or_default())),
            ("last_action_error".to_owned(), json!(page.failure.is_some())),
        ]);
        if let Some(result) = page.result.as_ref().filter(|result| has_content(result)) {
            observation.insert("result".to_owned(), result.clone());
        }
        if let Some((data, format)) = page.encoded_screenshot() {
            observation.insert("screenshot_base64".to_owned(), json!(data));
            observation.insert("screenshot_format".to_owned(), json!(format.as_str()));
        }
        let metadata = self.metadata();
        observation.insert("metadata".to_owned(), metadata.clone());
        json!({"observation": observation, "reward": self.reward(), "done": self.ended.is_some(), "metadata": metadata})
    }

    /// Returns the reward of the last step: none before the first, 0 until the end, then what the judge decided.
    fn reward(&self) -> Option<f64> {
        match &self.ended {
            Some(ended) => ended.reward,
            None => (!self.steps.is_empty()).then_some(0.0),
        }
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({
            "episode_id": self.id, "task_id": self.task_id(), "split": self.split, "step_count": self.steps.len(),
            "infra_lost": false,
        });
        if let Some(Ended { outcome, reason, .. }) = &self.ended {
            metadata["infra_lost"] = json!(*outcome == Outcome::InfraLost);
            metadata["outcome"] = json!(outcome.as_str());
            metadata["reason"] = json!(reason);
        }
        metadata
    }

    fn task_id(&self) -> Option<String> {
        self.task.task_id.as_ref().map(id_text)
    }

    /// Returns the data of a `state` message.
    pub(crate) fn state(&self) -> Value {
        json!({
            "episode_id": self.id, "step_count": self.steps.len(), "split": self.split, "benchmark": self.split,
            "task_id": self.task_id(), "task_name": self.task_id().unwrap_or_default(), "goal": self.task.task_name,
            "current_url": self.page.url, "max_steps": (self.task.max_steps < i64::MAX).then_some(self.task.max_steps),
            "cum_reward": self.reward().unwrap_or(0.0), "done": self.ended.is_some(),
        })
    }
}

/// Returns how a verdict ends an episode. An episode that could not be judged has no reward.
fn ended_by(verdict: &Verdict) -> Ended {
    let reward = match verdict.outcome {
        Outcome::Success => Some(1.0),
        Outcome::Failure | Outcome::Blocked => Some(0.0),
        Outcome::InfraLost | Outcome::JudgeError | Outcome::Cancelled => None,
    };
    let reason = match &verdict.evaluation {
        proto::trajectory::Evaluation::Text(text) => text.clone(),
        proto::trajectory::Evaluation::Texts(texts) => texts.join("\n"),
    };
    Ended { outcome: verdict.outcome, reward, reason }
}

/// Returns whether a command's result says more than that it ran.
fn has_content(result: &Value) -> bool {
    match result {
        Value::Null => false,
        Value::Object(fields) => fields.keys().any(|name| name != "status"),
        _ => true,
    }
}

/// Returns the action that submits an answer.
pub(crate) fn answer_action(text: &str) -> AgentAction {
    AgentAction::answer(text, json!({ Action::ANSWER: text }).to_string())
}
