//! Carries out tool calls on the episode of a session.

use std::time::Duration;

use proto::{
    Command, ImageFormat,
    command::{Fill, MouseButton, Point, Target},
};
use rollout::policy::MAX_WAIT_SECS;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    arguments::Arguments,
    result::{ToolContent, page_text, tab_lines, to_json},
    rpc::{INVALID_PARAMS, RpcError},
    tools,
};
use crate::{
    action::{AgentAction, Intent, click_at},
    catalog::TaskChoice,
    environment::Environment,
    episode::{Episode, answer_action},
    openenv::{RequestedScreenshot, ResetRequest},
};

/// How long `browser_wait_for` waits for a text.
const TEXT_TIMEOUT: Duration = Duration::from_secs(30);
const TEXT_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Lines of the page in which a text is searched.
const SEARCHED_LINES: usize = 10_000;

/// What the tools of a session work with.
#[derive(Clone, Copy)]
pub(crate) struct ToolContext<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) task: &'a TaskChoice,
    /// Whether the client may name files of this machine. Only a client that started this process may.
    pub(crate) reads_local_files: bool,
}

/// Calls a tool. The episode starts with the first call. An unknown tool is an error of the protocol; what fails in the browser is
/// part of the result.
pub(crate) async fn call_tool(
    context: ToolContext<'_>,
    episode: &mut Option<Episode>,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<Value, RpcError> {
    let has_task = !context.environment.tasks().is_empty();
    if !tools::list(has_task, false).iter().any(|tool| tool["name"] == name) {
        return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool {name:?}")));
    }
    if name == "browser_close" {
        // With a task, the session keeps its episode: another one would be another attempt at the task.
        match episode {
            Some(running) if running.has_task() => running.give_up(),
            other => *other = None,
        }
        return Ok(to_json(Ok(ToolContent::Text("The browser is closed.".to_owned()))));
    }
    Ok(to_json(call(context, episode, name, &Arguments(arguments)).await))
}

async fn call(
    context: ToolContext<'_>,
    episode: &mut Option<Episode>,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<ToolContent, String> {
    if episode.is_none() {
        let screenshot = Some(RequestedScreenshot::None);
        let request = ResetRequest { task: context.task.clone(), screenshot, ..ResetRequest::default() };
        let started = context.environment.start_episode(request).await;
        *episode = Some(started.map_err(|error| error.to_string())?);
    }
    let Some(running) = episode else { return Err(ENDED.to_owned()) };
    if running.ended().is_some() && name != "task_goal" {
        return Err(ENDED.to_owned());
    }
    let result = call_on(context, running, name, arguments).await;
    // A lost browser without a task costs nothing but its page: the next call opens a new one.
    if running.ended().is_some() && !running.has_task() {
        let reason = running.ended().map(|ended| ended.reason.clone()).unwrap_or_default();
        *episode = None;
        return Err(format!("the browser was lost: {reason}; the next call opens a new one"));
    }
    result
}

async fn call_on(
    context: ToolContext<'_>,
    episode: &mut Episode,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<ToolContent, String> {
    let environment = context.environment;
    match name {
        "task_goal" => return Ok(ToolContent::Text(episode.task().task_name.clone())),
        "task_submit" => {
            let answer = answer_action(&arguments.text("answer")?);
            episode.perform(environment, answer).await.map_err(|error| error.to_string())?;
            return Ok(submitted(episode));
        }
        "browser_snapshot" => return observed(environment, episode).await,
        "browser_take_screenshot" => return screenshot(episode, arguments).await,
        "browser_get_text" => return page_lines(episode, arguments).await,
        "browser_wait_for" => return wait_for(environment, episode, arguments).await,
        "browser_tabs" if arguments.text("action")? == "list" => return tabs(episode).await,
        _ => {}
    }
    let uploaded = match name {
        "browser_file_upload" => upload(context, episode, arguments).await?,
        _ => Vec::new(),
    };
    let action = AgentAction::of_intents(intents(name, arguments, uploaded)?);
    episode.perform(environment, action).await.map_err(|error| error.to_string())?;
    if let Some(ended) = episode.ended() {
        return Err(format!("the episode has ended ({}): {}", ended.outcome.as_str(), ended.reason));
    }
    match &episode.page().failure {
        Some(_) => Err(page_text(episode.page()).trim_start_matches("### Error\n").to_owned()),
        None => Ok(ToolContent::Text(page_text(episode.page()))),
    }
}

fn intents(name: &str, arguments: &Arguments<'_>, files: Vec<String>) -> Result<Vec<Intent>, String> {
    let target = || arguments.text("ref");
    let command = match name {
        "browser_navigate" => {
            Command::VisitPage { url: rollout::address::with_scheme(&arguments.text("url")?) }
        }
        "browser_navigate_back" => Command::Back,
        "browser_navigate_forward" => Command::Forward,
        "browser_click" => {
            let (id, button) = (target()?, arguments.button()?);
            let clicks = if arguments.flag("doubleClick")? { 2 } else { 1 };
            let keys = arguments.texts("modifiers")?;
            if clicks == 2 || button != MouseButton::Left || !keys.is_empty() {
                return Ok(vec![Intent::ClickElement { id, button, clicks, keys }]);
            }
            Command::ClickId { id }
        }
        "browser_type" => {
            let press_enter = arguments.flag("submit")?;
            let fill = Fill { value: arguments.text("text")?, press_enter, delete_existing: true };
            Command::FillId { id: target()?, fill }
        }
        "browser_press_key" => Command::Keypress { keys: vec![arguments.text("key")?] },
        "browser_hover" => Command::HoverId { id: target()? },
        "browser_select_option" => Command::SelectOption { id: target()? },
        "browser_drag" => {
            return Ok(vec![Intent::DragElement {
                from: arguments.text("startRef")?,
                to: arguments.text("endRef")?,
            }]);
        }
        "browser_mouse_click_xy" => {
            let point = Point { x: arguments.number("x")?, y: arguments.number("y")? };
            click_at(point, MouseButton::Left, 1, Vec::new())
        }
        "browser_mouse_wheel" => {
            let dx = arguments.optional_number("deltaX")?.unwrap_or_default();
            return Ok(vec![Intent::ScrollPage {
                dx,
                dy: arguments.optional_number("deltaY")?.unwrap_or_default(),
            }]);
        }
        "browser_tabs" => return tab_intents(arguments),
        "browser_file_upload" => {
            let target = arguments.optional_text("ref")?.map(Target::Id);
            Command::SetFiles { files, target }
        }
        other => return Err(format!("unknown tool {other:?}")),
    };
    Ok(vec![Intent::Command(command)])
}

fn tab_intents(arguments: &Arguments<'_>) -> Result<Vec<Intent>, String> {
    let index = arguments.index("index")?;
    let focus = |number| Intent::FocusTab { number };
    match arguments.text("action")?.as_str() {
        "new" => Ok(vec![Intent::Command(Command::OpenTab { url: arguments.optional_text("url")? })]),
        "select" => Ok(vec![focus(index.ok_or("the argument index is missing")?)]),
        "close" => {
            let close = Intent::Command(Command::CloseTab { id: None });
            Ok(index.map(focus).into_iter().chain([close]).collect())
        }
        other => Err(format!("action is {other:?}; it must be list, new, close or select")),
    }
}

/// Uploads the files of a call to the session and returns their names.
async fn upload(
    context: ToolContext<'_>,
    episode: &Episode,
    arguments: &Arguments<'_>,
) -> Result<Vec<String>, String> {
    let mut files = arguments.files("files")?;
    for path in arguments.texts("paths")? {
        if !context.reads_local_files {
            return Err(
                "paths name files of the server, which are not available over HTTP; send files".to_owned()
            );
        }
        let name = std::path::Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned());
        let content = tokio::fs::read(&path).await.map_err(|error| format!("cannot read {path}: {error}"))?;
        files.push((name.unwrap_or_default(), content));
    }
    let browser = episode.browser().ok_or(ENDED)?;
    let mut names = Vec::new();
    for (name, content) in files {
        browser.upload(&name, content).await.map_err(|error| error.to_string())??;
        names.push(name);
    }
    Ok(names)
}

async fn observed(environment: &Environment, episode: &mut Episode) -> Result<ToolContent, String> {
    episode.observe(environment).await.map_err(|error| error.to_string())?;
    match episode.ended() {
        Some(ended) => Err(ended.reason.clone()),
        None => Ok(ToolContent::Text(page_text(episode.page()))),
    }
}

const ENDED: &str = "the episode of this session has ended; start a new session for the next one";

async fn screenshot(episode: &Episode, arguments: &Arguments<'_>) -> Result<ToolContent, String> {
    let format = match arguments.optional_text("type")?.as_deref() {
        None | Some("png") => ImageFormat::Png,
        Some("jpeg") => ImageFormat::Jpeg,
        Some(other) => return Err(format!("type is {other:?}; it must be png or jpeg")),
    };
    let browser = episode.browser().ok_or(ENDED)?;
    let page = browser.screenshot(format).await.map_err(|error| error.to_string())?;
    page.screenshot.map(ToolContent::Image).ok_or_else(|| "the farm sent no screenshot".to_owned())
}

async fn tabs(episode: &Episode) -> Result<ToolContent, String> {
    let tabs = episode.browser().ok_or(ENDED)?.tabs().await.map_err(|error| error.to_string())?;
    Ok(ToolContent::Text(format!("### Open tabs\n{}", tab_lines(&tabs))))
}

async fn wait_for(
    environment: &Environment,
    episode: &mut Episode,
    arguments: &Arguments<'_>,
) -> Result<ToolContent, String> {
    let seconds = arguments.optional_number("time")?.unwrap_or(0.0).clamp(0.0, MAX_WAIT_SECS);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let waited = [(arguments.optional_text("text")?, true), (arguments.optional_text("textGone")?, false)];
    for (text, is_wanted) in waited {
        let Some(text) = text else { continue };
        let end = Instant::now() + TEXT_TIMEOUT;
        while page_contains(episode, &text).await? != is_wanted {
            if Instant::now() >= end {
                let state = if is_wanted { "did not appear" } else { "did not disappear" };
                return Err(format!("the text {text:?} {state} within {} s", TEXT_TIMEOUT.as_secs()));
            }
            tokio::time::sleep(TEXT_POLL_INTERVAL).await;
        }
    }
    observed(environment, episode).await
}

/// Returns the first lines of the page's visible text.
async fn read_text(episode: &Episode, n_lines: usize) -> Result<String, String> {
    let read = episode.browser().ok_or(ENDED)?.execute(&Command::GetWebpageText { n_lines }).await;
    let read = read.map_err(|error| error.to_string())??;
    Ok(read.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
}

async fn page_contains(episode: &Episode, text: &str) -> Result<bool, String> {
    Ok(read_text(episode, SEARCHED_LINES).await?.contains(text))
}

async fn page_lines(episode: &Episode, arguments: &Arguments<'_>) -> Result<ToolContent, String> {
    let lines = arguments.index("lines")?.unwrap_or(tools::DEFAULT_TEXT_LINES).min(SEARCHED_LINES);
    read_text(episode, lines).await.map(ToolContent::Text)
}

/// Describes how the episode was judged.
fn submitted(episode: &Episode) -> ToolContent {
    let Some(ended) = episode.ended() else {
        return ToolContent::Text("The answer was submitted.".to_owned());
    };
    let reward = ended.reward.map_or_else(|| "none".to_owned(), |reward| reward.to_string());
    let outcome = ended.outcome.as_str();
    let infra_lost = ended.outcome == proto::trajectory::Outcome::InfraLost;
    let data =
        json!({"reward": ended.reward, "outcome": outcome, "infra_lost": infra_lost, "reason": ended.reason});
    ToolContent::Structured(format!("The answer was judged. Outcome: {outcome}. Reward: {reward}."), data)
}
