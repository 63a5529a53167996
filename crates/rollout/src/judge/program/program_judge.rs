//! The judge itself: runs the checks of a task and turns their scores into a verdict.

use std::{path::Path, time::Duration};

use proto::trajectory::{Outcome, Step, Task, Trajectory};
use serde_json::Value;

use super::{
    checks::{Check, checks_of},
    command,
    page::JudgedPage,
    url_match,
};
use crate::config::{ProgramConfig, seconds};
use crate::judge::{Verdict, final_answer, reference};

/// A score of at least this counts as success: 1, apart from rounding.
const SUCCESS_SCORE: f64 = 1.0 - 1e-9;

/// What is judged: the task, the agent's answer, and the record of the episode for commands.
#[derive(Clone, Copy)]
pub struct JudgedEpisode<'a> {
    pub task: &'a Task,
    pub answer: Option<&'a str>,
    pub steps: &'a [Step],
    /// Where the episode's files are. Commands get the trajectory as a file in it.
    pub folder: Option<&'a Path>,
}

/// Tasks that cannot be judged as configured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("the task {task:?}: {reason}")]
    InvalidCheck { task: String, reason: String },
    #[error(
        "the task {task:?}: judge.command is a program that the task file names. Programs of task files run only with \
         program_config.allow_task_commands=true, because they may do anything on this machine"
    )]
    CommandNotAllowed { task: String },
}

/// Scores episodes by checks and commands.
#[derive(Clone, Debug)]
pub struct ProgramJudge {
    /// Judges tasks without checks of their own.
    command: Option<Vec<String>>,
    allow_task_commands: bool,
    timeout: Duration,
}

/// The result of one check, with its reason.
struct CheckScore {
    score: f64,
    reason: String,
}

impl CheckScore {
    fn holds(holds: bool, reason: String) -> Self {
        Self { score: if holds { 1.0 } else { 0.0 }, reason }
    }
}

impl ProgramJudge {
    pub fn new(config: &ProgramConfig) -> Self {
        let command = config.command.clone().filter(|command| !command.is_empty());
        Self { command, allow_task_commands: config.allow_task_commands, timeout: seconds(config.timeout) }
    }

    /// How long judging one episode may take.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Checks the tasks of a run before it starts. Returns how many of them can be judged.
    pub fn check_tasks(&self, tasks: &[Task]) -> Result<usize, ProgramError> {
        let mut judged = 0;
        for task in tasks {
            let name = || task.task_name.clone();
            let checks = self.checks(task).map_err(|error| match error {
                TaskDefect::Invalid(reason) => ProgramError::InvalidCheck { task: name(), reason },
                TaskDefect::CommandNotAllowed => ProgramError::CommandNotAllowed { task: name() },
            })?;
            let is_judged =
                !checks.is_empty() && !checks.iter().any(|check| matches!(check, Check::Unsupported(_)));
            judged += usize::from(is_judged);
        }
        Ok(judged)
    }

    /// Scores an episode whose page is still open.
    pub async fn judge(&self, episode: &JudgedEpisode<'_>, page: &dyn JudgedPage) -> Verdict {
        let checks = match self.checks(episode.task) {
            Ok(checks) => checks,
            Err(defect) => return unjudged(&defect.reason()),
        };
        let judged = tokio::time::timeout(self.timeout, self.run_checks(&checks, episode, page)).await;
        let too_slow = || Err(format!("the checks did not end within {} s", self.timeout.as_secs_f64()));
        verdict_of(judged.unwrap_or_else(|_elapsed| too_slow()))
    }

    /// Scores a saved trajectory, whose page is gone. Only checks of the answer can be made again.
    pub fn judge_saved(&self, trajectory: &Trajectory) -> Verdict {
        let checks = match self.checks(&trajectory.task) {
            Ok(checks) => checks,
            Err(defect) => return unjudged(&defect.reason()),
        };
        if checks.is_empty() {
            return unjudged(NO_CHECK);
        }
        let answer = final_answer(&trajectory.steps);
        verdict_of(checks.iter().map(|check| check_answer(check, answer.as_deref())).collect())
    }

    /// Returns the checks of a task; the configured command if it has none.
    fn checks(&self, task: &Task) -> Result<Vec<Check>, TaskDefect> {
        let own = checks_of(task).map_err(TaskDefect::Invalid)?;
        let has_command = own.iter().flatten().any(|check| matches!(check, Check::Command(_)));
        if has_command && !self.allow_task_commands {
            return Err(TaskDefect::CommandNotAllowed);
        }
        Ok(own.unwrap_or_else(|| self.command.clone().map(Check::Command).into_iter().collect()))
    }

    /// Runs the checks in order, up to the first that fails.
    async fn run_checks(
        &self,
        checks: &[Check],
        episode: &JudgedEpisode<'_>,
        page: &dyn JudgedPage,
    ) -> Result<Vec<CheckScore>, String> {
        if checks.is_empty() {
            return Err(NO_CHECK.to_owned());
        }
        let mut scores = Vec::new();
        for check in checks {
            let score = self.run_check(check, episode, page).await?;
            let has_failed = score.score <= 0.0;
            scores.push(score);
            if has_failed {
                break;
            }
        }
        Ok(scores)
    }

    async fn run_check(
        &self,
        check: &Check,
        episode: &JudgedEpisode<'_>,
        page: &dyn JudgedPage,
    ) -> Result<CheckScore, String> {
        match check {
            Check::Unsupported(_) | Check::Answer(_) => check_answer(check, episode.answer),
            Check::Url(patterns) => {
                let url = page.url().await?;
                let is_match = patterns.iter().any(|pattern| url_match::matches(&url, pattern));
                let verb = if is_match { "matches" } else { "does not match" };
                Ok(CheckScore::holds(is_match, format!("url: {url} {verb} {}", patterns.join(" or "))))
            }
            Check::Text(texts) => Ok(check_text(&page.text().await?, texts)),
            Check::Javascript(expression) => {
                let value = page.evaluate(&with_answer(expression, episode.answer)).await;
                let value = value.map_err(|reason| format!("javascript: {reason}"))?;
                let score = score_of(&value).map_err(|reason| format!("javascript: {reason}"))?;
                Ok(CheckScore { score, reason: format!("javascript: {value}") })
            }
            Check::Command(command) => {
                let url = page.url().await?;
                let result = command::run(command, episode, &url, page.cdp_url(), self.timeout).await;
                let result = result.map_err(|reason| format!("command: {reason}"))?;
                let score = score_of(&result.reward).map_err(|reason| format!("command: {reason}"))?;
                let reason = result.reason.map_or(String::new(), |reason| format!(": {reason}"));
                Ok(CheckScore { score, reason: format!("command: {}{reason}", result.reward) })
            }
        }
    }
}

const NO_CHECK: &str = "the task has no judge field, and program_config.command is not set";

enum TaskDefect {
    Invalid(String),
    CommandNotAllowed,
}

impl TaskDefect {
    fn reason(self) -> String {
        match self {
            Self::Invalid(reason) => reason,
            Self::CommandNotAllowed => "program_config.allow_task_commands is not set".to_owned(),
        }
    }
}

fn unjudged(reason: &str) -> Verdict {
    Verdict::new(Outcome::JudgeError, format!("Not judged: {reason}."))
}

/// The score of an episode is the lowest score of its checks.
fn verdict_of(scores: Result<Vec<CheckScore>, String>) -> Verdict {
    let scores = match scores {
        Ok(scores) => scores,
        Err(reason) => return unjudged(&reason),
    };
    let score = scores.iter().map(|check| check.score).fold(1.0, f64::min);
    let is_success = score >= SUCCESS_SCORE;
    let (outcome, word) =
        if is_success { (Outcome::Success, "SUCCESS") } else { (Outcome::Failure, "NOT SUCCESS") };
    let reasons: Vec<&str> = scores.iter().map(|check| check.reason.as_str()).collect();
    let text = format!("Program: {}\nScore: {score}\nVerdict: {word}", reasons.join("; "));
    Verdict { score: Some(score), ..Verdict::new(outcome, text) }
}

/// Makes a check that needs nothing but the answer.
fn check_answer(check: &Check, answer: Option<&str>) -> Result<CheckScore, String> {
    let references = match check {
        Check::Answer(references) => references,
        Check::Unsupported(reason) => return Err(format!("this check is not supported: {reason}")),
        _ => return Err("the check needs the page, which ended with the episode".to_owned()),
    };
    let Some(answer) = answer else {
        return Ok(CheckScore::holds(false, "answer: the episode ended without an answer".into()));
    };
    for reference in references {
        let decision = reference::compare(answer, reference);
        if !decision.matches {
            return Ok(CheckScore::holds(false, format!("answer: {reference:?}: {}", decision.reason)));
        }
    }
    Ok(CheckScore::holds(true, format!("answer: it states {}", references.join(" and "))))
}

fn check_text(page: &str, texts: &[String]) -> CheckScore {
    let normalized = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let page = normalized(page);
    match texts.iter().find(|text| !page.contains(&normalized(text))) {
        Some(missing) => CheckScore::holds(false, format!("text: the page does not show {missing:?}")),
        None => CheckScore::holds(true, format!("text: the page shows {texts:?}")),
    }
}

/// Wraps an expression so that it can use the agent's answer as `answer`. The line break ends a comment of the expression.
fn with_answer(expression: &str, answer: Option<&str>) -> String {
    format!("(async (answer) => (\n{expression}\n))({})", Value::from(answer))
}

/// Reads a score: true, false, or a number from 0 to 1.
fn score_of(value: &Value) -> Result<f64, String> {
    let score = match value {
        Value::Bool(holds) => Some(if *holds { 1.0 } else { 0.0 }),
        Value::Number(number) => number.as_f64().filter(|score| (0.0..=1.0).contains(score)),
        _ => None,
    };
    score.ok_or_else(|| {
        let shown = client::http::excerpt(&value.to_string());
        format!("the score must be true, false or a number from 0 to 1, not {shown}")
    })
}
