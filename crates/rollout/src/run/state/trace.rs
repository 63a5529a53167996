//! What is kept about single tasks for the monitor: the task itself, the page its agent is on and what the agent did. Memory
//! is bounded: texts are truncated, and only the latest steps of a task and the latest finished tasks are kept.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use client::farm::LiveUrl;
use proto::{
    network::NetworkSummary,
    trajectory::{Task, TaskId},
};

const MAX_TEXT_CHARS: usize = 400;
const MAX_STEPS: usize = 100;
const MAX_FINISHED_TRACES: usize = 1000;

/// A task as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskInfo {
    /// The index of its trajectory in the iteration.
    pub index: usize,
    pub task_id: String,
    pub name: String,
    pub domain: String,
    pub website: String,
    pub difficulty: i64,
    pub max_steps: i64,
}

impl TaskInfo {
    /// A task of which only the index is known.
    pub(super) fn unknown(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    pub fn of(task: &Task, index: usize) -> Self {
        let task_id = match &task.task_id {
            Some(TaskId::Number(number)) => number.to_string(),
            Some(TaskId::Text(text)) => text.clone(),
            None => String::new(),
        };
        Self {
            index,
            task_id: truncated(&task_id),
            name: truncated(&task.task_name),
            domain: truncated(&task.domain),
            website: truncated(&task.website),
            difficulty: task.difficulty,
            max_steps: task.max_steps,
        }
    }
}

/// One step of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSummary {
    pub action: String,
    pub thought: String,
    /// The page on which the agent decided.
    pub url: String,
}

/// What an attempt has done so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub steps: VecDeque<StepSummary>,
    /// Earlier steps that are no longer kept.
    pub dropped_steps: usize,
    pub url: String,
    /// The latest screenshot.
    pub screenshot: Option<PathBuf>,
    /// Number of screenshots taken so far, over all attempts.
    pub screenshot_count: u64,
    /// The reason of the latest failure.
    pub failure: Option<String>,
    /// Where a person can watch the browser, while the attempt has one.
    pub live_url: Option<LiveUrl>,
    /// What was recorded or replayed, once the episode has ended.
    pub network: Option<NetworkSummary>,
}

/// The traces by position.
pub(super) struct Traces {
    traces: Vec<Option<Box<Trace>>>,
    /// Positions of finished tasks that still have a trace, oldest first.
    finished: VecDeque<usize>,
}

impl Traces {
    pub(super) fn new(tasks: usize) -> Self {
        Self { traces: vec![None; tasks], finished: VecDeque::new() }
    }

    /// Adds a position without a trace.
    pub(super) fn push(&mut self) {
        self.traces.push(None);
    }

    /// Forgets the task at a position, which another one takes.
    pub(super) fn clear(&mut self, position: usize) {
        self.finished.retain(|finished| *finished != position);
        if let Some(trace) = self.traces.get_mut(position) {
            *trace = None;
        }
    }

    pub(super) fn get(&self, position: usize) -> Option<Trace> {
        self.traces.get(position)?.as_deref().cloned()
    }

    pub(super) fn screenshot(&self, position: usize) -> Option<PathBuf> {
        self.traces.get(position)?.as_deref()?.screenshot.clone()
    }

    fn entry(&mut self, position: usize) -> Option<&mut Trace> {
        Some(self.traces.get_mut(position)?.get_or_insert_default())
    }

    pub(super) fn record_observation(&mut self, position: usize, url: &str, screenshot: &Path) {
        let Some(trace) = self.entry(position) else { return };
        trace.url = truncated(url);
        trace.screenshot = Some(screenshot.to_owned());
        trace.screenshot_count += 1;
    }

    pub(super) fn record_decision(&mut self, position: usize, action: &str, thought: &str) {
        let Some(trace) = self.entry(position) else { return };
        if trace.steps.len() == MAX_STEPS {
            trace.steps.pop_front();
            trace.dropped_steps += 1;
        }
        let step =
            StepSummary { action: truncated(action), thought: truncated(thought), url: trace.url.clone() };
        trace.steps.push_back(step);
    }

    pub(super) fn set_live_url(&mut self, position: usize, live_url: Option<LiveUrl>) {
        if let Some(trace) = self.entry(position) {
            trace.live_url = live_url;
        }
    }

    pub(super) fn record_network(&mut self, position: usize, summary: &NetworkSummary) {
        if let Some(trace) = self.entry(position) {
            let mut summary = summary.clone();
            summary.misses.iter_mut().for_each(|miss| miss.url = truncated(&miss.url));
            trace.network = Some(summary);
        }
    }

    pub(super) fn record_failure(&mut self, position: usize, reason: &str) {
        if let Some(trace) = self.entry(position) {
            trace.failure = Some(truncated(reason));
        }
    }

    /// Clears the trace of a lost attempt but keeps the reason.
    pub(super) fn restart(&mut self, position: usize, reason: &str) {
        if let Some(trace) = self.entry(position) {
            let screenshot_count = trace.screenshot_count;
            *trace = Trace { failure: Some(truncated(reason)), screenshot_count, ..Trace::default() };
        }
    }

    /// Marks a task as finished and drops the oldest finished trace when there are too many.
    pub(super) fn finish(&mut self, position: usize) {
        if let Some(Some(trace)) = self.traces.get_mut(position) {
            trace.live_url = None;
        }
        self.finished.push_back(position);
        if self.finished.len() > MAX_FINISHED_TRACES
            && let Some(oldest) = self.finished.pop_front()
            && let Some(trace) = self.traces.get_mut(oldest)
        {
            *trace = None;
        }
    }
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_bounded() {
        let mut traces = Traces::new(MAX_FINISHED_TRACES + 2);
        for step in 0..MAX_STEPS + 7 {
            traces.record_decision(0, &format!("step {step} {}", "ä".repeat(10_000)), "");
        }
        let trace = traces.get(0).unwrap();
        assert_eq!((trace.steps.len(), trace.dropped_steps), (MAX_STEPS, 7));
        assert!(trace.steps[0].action.chars().count() <= MAX_TEXT_CHARS + 1);
        for position in 0..MAX_FINISHED_TRACES + 2 {
            traces.record_decision(position, "answer", "");
            traces.finish(position);
        }
        assert!(traces.get(0).is_none() && traces.get(1).is_none() && traces.get(2).is_some());
    }
}
