//! What the board remembers of single tasks, for whoever looks closer: which task a cell is, where its agent is, what it
//! did. Bounded: texts are cut, only so many steps a task are kept, and only so many tasks that are over.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use proto::trajectory::{Task, TaskId};

const LONGEST_TEXT: usize = 400;
const MOST_STEPS: usize = 100;
const MOST_OVER: usize = 1000;

/// What a task is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its trajectory's index in the iteration.
    pub index: usize,
    pub task_id: String,
    pub name: String,
    pub domain: String,
    pub website: String,
    pub difficulty: i64,
    pub max_steps: i64,
}

impl Facts {
    pub(super) fn of(task: &Task, index: usize) -> Self {
        let task_id = match &task.task_id {
            Some(TaskId::Number(number)) => number.to_string(),
            Some(TaskId::Text(text)) => text.clone(),
            None => String::new(),
        };
        Self {
            index,
            task_id: brief(&task_id),
            name: brief(&task.task_name),
            domain: brief(&task.domain),
            website: brief(&task.website),
            difficulty: task.difficulty,
            max_steps: task.max_steps,
        }
    }
}

/// A step in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub action: String,
    pub thought: String,
    /// Where the agent was when it decided so.
    pub url: String,
}

/// What an attempt has done so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub steps: VecDeque<Note>,
    /// Steps before those, which are no longer kept.
    pub forgotten: usize,
    pub url: String,
    /// The latest picture, and the how manieth it is.
    pub picture: Option<PathBuf>,
    pub pictures: u64,
    pub trouble: Option<String>,
}

/// The traces by place.
pub(super) struct Traces {
    traces: Vec<Option<Box<Trace>>>,
    over: VecDeque<usize>,
}

impl Traces {
    pub(super) fn new(places: usize) -> Self {
        Self { traces: vec![None; places], over: VecDeque::new() }
    }

    pub(super) fn get(&self, place: usize) -> Option<Trace> {
        self.traces.get(place)?.as_deref().cloned()
    }

    pub(super) fn picture(&self, place: usize) -> Option<PathBuf> {
        self.traces.get(place)?.as_deref()?.picture.clone()
    }

    fn at(&mut self, place: usize) -> Option<&mut Trace> {
        Some(self.traces.get_mut(place)?.get_or_insert_default())
    }

    pub(super) fn seen(&mut self, place: usize, url: &str, picture: &Path) {
        let Some(trace) = self.at(place) else { return };
        trace.url = brief(url);
        trace.picture = Some(picture.to_owned());
        trace.pictures += 1;
    }

    pub(super) fn decided(&mut self, place: usize, action: &str, thought: &str) {
        let Some(trace) = self.at(place) else { return };
        if trace.steps.len() == MOST_STEPS {
            trace.steps.pop_front();
            trace.forgotten += 1;
        }
        let note = Note { action: brief(action), thought: brief(thought), url: trace.url.clone() };
        trace.steps.push_back(note);
    }

    pub(super) fn trouble(&mut self, place: usize, why: &str) {
        if let Some(trace) = self.at(place) {
            trace.trouble = Some(brief(why));
        }
    }

    /// The attempt is lost, with its pictures; why stays.
    pub(super) fn afresh(&mut self, place: usize, why: &str) {
        if let Some(trace) = self.at(place) {
            let pictures = trace.pictures;
            *trace = Trace { trouble: Some(brief(why)), pictures, ..Trace::default() };
        }
    }

    pub(super) fn over(&mut self, place: usize) {
        self.over.push_back(place);
        if self.over.len() > MOST_OVER
            && let Some(oldest) = self.over.pop_front()
            && let Some(trace) = self.traces.get_mut(oldest)
        {
            *trace = None;
        }
    }
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_grows_without_bound() {
        let mut traces = Traces::new(MOST_OVER + 2);
        for step in 0..MOST_STEPS + 7 {
            traces.decided(0, &format!("step {step} {}", "ä".repeat(10_000)), "");
        }
        let trace = traces.get(0).unwrap();
        assert_eq!((trace.steps.len(), trace.forgotten), (MOST_STEPS, 7));
        assert!(trace.steps[0].action.chars().count() <= LONGEST_TEXT + 1);
        for place in 0..MOST_OVER + 2 {
            traces.decided(place, "answer", "");
            traces.over(place);
        }
        assert!(traces.get(0).is_none() && traces.get(1).is_none() && traces.get(2).is_some());
    }
}
