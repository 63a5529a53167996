//! The state of a run as its listeners see it: one cell a task, counts, rates, and what was wrong last. Built
//! from events alone; whoever wants to show something takes a snapshot when it suits them.

mod pace;
mod trace;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::trajectory::{Outcome, Task};

pub use pace::{Latency, Pace};
use pace::{Recent, Speedometer};
use trace::Traces;
pub use trace::{Facts, Note, Trace};

use crate::run::event::{Event, Listener, Stage};

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub stage: Stage,
    pub step: u32,
    pub attempt: u32,
    pub outcome: Option<Outcome>,
}

impl Default for Cell {
    fn default() -> Self {
        Self { stage: Stage::NotStarted, step: 0, attempt: 0, outcome: None }
    }
}

/// How long a stage takes: how often, in all, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    pub count: u64,
    pub total: Duration,
    pub longest: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub tasks: usize,
    pub steps: u64,
    pub retried: u64,
    pub troubles: u64,
    /// Collected by others of the same run.
    pub elsewhere: usize,
    pub outcomes: BTreeMap<&'static str, usize>,
}

struct State {
    /// Where the cell of a trajectory index is: a rank has only some of them.
    places: HashMap<usize, usize>,
    cells: Vec<Cell>,
    stages: BTreeMap<Stage, usize>,
    totals: Totals,
    timings: BTreeMap<Stage, Timing>,
    /// How often something went wrong in a stage, and what was wrong last.
    troubles: BTreeMap<Stage, (u64, String)>,
    progress: Instant,
    speed: Speedometer,
    recent: BTreeMap<Stage, Recent>,
    traces: Traces,
}

pub struct Board {
    started: Instant,
    facts: Vec<Facts>,
    state: Mutex<State>,
}

impl Board {
    /// A board for the tasks with these trajectory indices, in the order they are to be shown.
    pub fn new(indices: impl IntoIterator<Item = usize>) -> Self {
        Self::with(indices.into_iter().map(|index| Facts { index, ..Facts::default() }).collect())
    }

    /// A board that also knows what its tasks are; of the `others`, finished in an earlier part of the run, it knows only
    /// their indices.
    pub fn of_tasks<'a>(
        tasks: impl IntoIterator<Item = &'a Task>,
        others: impl IntoIterator<Item = i64>,
    ) -> Self {
        let known = tasks.into_iter().filter_map(|task| {
            let index = usize::try_from(task.trajectory_index).ok()?;
            Some(Facts::of(task, index))
        });
        let others = others.into_iter().filter_map(|index| usize::try_from(index).ok());
        Self::with(known.chain(others.map(|index| Facts { index, ..Facts::default() })).collect())
    }

    fn with(facts: Vec<Facts>) -> Self {
        let places = facts.iter().enumerate().map(|(place, facts)| (facts.index, place)).collect();
        let (tasks, now) = (facts.len(), Instant::now());
        Self {
            started: now,
            facts,
            state: Mutex::new(State {
                places,
                cells: vec![Cell::default(); tasks],
                stages: BTreeMap::from([(Stage::NotStarted, tasks)]),
                totals: Totals { tasks, ..Totals::default() },
                timings: BTreeMap::new(),
                troubles: BTreeMap::new(),
                progress: now,
                speed: Speedometer::new(now),
                recent: BTreeMap::new(),
                traces: Traces::new(tasks),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn cells(&self) -> Vec<Cell> {
        self.state().cells.clone()
    }

    pub fn totals(&self) -> Totals {
        self.state().totals.clone()
    }

    /// How many episodes are in which stage.
    pub fn stages(&self) -> BTreeMap<Stage, usize> {
        let mut stages = self.state().stages.clone();
        stages.retain(|_, count| *count > 0);
        stages
    }

    pub fn timings(&self) -> BTreeMap<Stage, Timing> {
        self.state().timings.clone()
    }

    /// How fast it goes.
    pub fn pace(&self) -> Pace {
        self.state().speed.pace(Instant::now())
    }

    /// How long each stage took lately.
    pub fn latencies(&self) -> BTreeMap<Stage, Latency> {
        self.state().recent.iter().map(|(stage, recent)| (*stage, recent.latency())).collect()
    }

    /// What the tasks are, by place.
    pub fn facts(&self) -> &[Facts] {
        &self.facts
    }

    /// What the task at a place is doing and has done; no trace when it has not begun or is long over.
    pub fn closer(&self, place: usize) -> Option<(Cell, Option<Trace>)> {
        let state = self.state();
        Some((*state.cells.get(place)?, state.traces.get(place)))
    }

    /// The latest picture of the task at a place.
    pub fn picture(&self, place: usize) -> Option<std::path::PathBuf> {
        self.state().traces.picture(place)
    }

    /// Tasks that are over, in whatever way.
    pub fn done(&self) -> usize {
        let totals = &self.state().totals;
        totals.outcomes.values().sum::<usize>() + totals.elsewhere
    }

    /// A trajectory of an earlier part of the run, taken over when it was resumed.
    pub fn take_over(&self, index: usize, outcome: Outcome) {
        self.state().finish(index, outcome);
    }

    /// How long nothing has progressed.
    pub fn stalled(&self) -> Duration {
        self.state().progress.elapsed()
    }

    /// How often something went wrong in a stage, and what was wrong last.
    pub fn troubles(&self, stage: Stage) -> Option<(u64, String)> {
        self.state().troubles.get(&stage).cloned()
    }

    /// Who waits for what, and the last thing that was wrong there: for whoever asks why nothing moves.
    pub fn diagnosis(&self) -> String {
        let state = self.state();
        let waiting = state.stages.iter().filter(|(stage, count)| **count > 0 && !stage.is_over());
        let lines: Vec<String> = waiting
            .map(|(stage, count)| {
                let trouble = state.troubles.get(stage).map(|(_, why)| format!("; last trouble: {why}"));
                format!(
                    "{count} at {} (wait for {}){}",
                    stage.as_str(),
                    stage.waits_for(),
                    trouble.unwrap_or_default()
                )
            })
            .collect();
        if lines.is_empty() { "nothing is running".to_owned() } else { lines.join(", ") }
    }
}

impl State {
    fn cell(&mut self, index: usize) -> Option<&mut Cell> {
        let place = self.places.get(&index)?;
        self.cells.get_mut(*place)
    }

    fn move_to(&mut self, index: usize, stage: Stage) {
        let Some(cell) = self.cell(index) else { return };
        let before = std::mem::replace(&mut cell.stage, stage);
        if let Some(count) = self.stages.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        *self.stages.entry(stage).or_default() += 1;
    }

    /// Done by another collector, so that its outcome is not known here.
    fn leave_to_others(&mut self, index: usize) {
        if self.cell(index).is_some_and(|cell| !cell.stage.is_over()) {
            self.move_to(index, Stage::Finished);
            self.totals.elsewhere += 1;
            if let Some(place) = self.place(index) {
                self.traces.over(place);
            }
        }
    }

    fn finish(&mut self, index: usize, outcome: Outcome) {
        if self.is_elsewhere(index) {
            self.totals.elsewhere -= 1;
        }
        let failed = matches!(outcome, Outcome::InfraLost | Outcome::Cancelled);
        self.move_to(index, if failed { Stage::Failed } else { Stage::Finished });
        if let Some(cell) = self.cell(index) {
            cell.outcome = Some(outcome);
        }
        *self.totals.outcomes.entry(outcome.as_str()).or_default() += 1;
        if let Some(place) = self.place(index) {
            self.traces.over(place);
        }
    }

    fn is_elsewhere(&mut self, index: usize) -> bool {
        self.cell(index).is_some_and(|cell| cell.stage == Stage::Finished && cell.outcome.is_none())
    }

    fn place(&self, index: usize) -> Option<usize> {
        self.places.get(&index).copied()
    }
}

impl Listener for Board {
    fn event(&self, event: &Event) {
        let mut state = self.state();
        match event {
            // What others have done stays done, though it may be on its way here as well.
            Event::Stage { index, .. } if state.is_elsewhere(*index) => {}
            Event::Stage { index, step, stage } => {
                state.move_to(*index, *stage);
                if let Some(cell) = state.cell(*index) {
                    cell.step = *step as u32;
                }
            }
            Event::Took { stage, time } => {
                let timing = state.timings.entry(*stage).or_default();
                timing.count += 1;
                timing.total += *time;
                timing.longest = timing.longest.max(*time);
                state.recent.entry(*stage).or_default().note(*time);
                state.progress = Instant::now();
            }
            Event::Seen { index, url, picture } => {
                if let Some(place) = state.place(*index) {
                    state.traces.seen(place, url, picture);
                }
            }
            Event::Decided { index, action, thought } => {
                if let Some(place) = state.place(*index) {
                    state.traces.decided(place, action, thought);
                }
            }
            Event::StepDone { .. } => {
                state.totals.steps += 1;
                state.progress = Instant::now();
                let now = state.progress;
                state.speed.count(1, 0, now);
            }
            Event::Trouble { index, stage, why } => {
                state.totals.troubles += 1;
                if let Some(place) = state.place(*index) {
                    state.traces.trouble(place, why);
                }
                let (count, last) = state.troubles.entry(*stage).or_default();
                *count += 1;
                last.clone_from(why);
            }
            Event::Retried { index, attempt, why } => {
                state.totals.retried += 1;
                if let Some(place) = state.place(*index) {
                    state.traces.afresh(place, why);
                }
                if let Some(cell) = state.cell(*index) {
                    cell.attempt = *attempt;
                }
            }
            Event::Elsewhere { index } => {
                state.leave_to_others(*index);
                state.progress = Instant::now();
            }
            Event::Finished { index, outcome, .. } => {
                state.finish(*index, *outcome);
                state.progress = Instant::now();
                let now = state.progress;
                state.speed.count(0, 1, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_cells() {
        let board = Board::new(0..3);
        board.event(&Event::Stage { index: 1, step: 2, stage: Stage::Policy });
        board.event(&Event::Trouble { index: 1, stage: Stage::Policy, why: "503".into() });
        board.event(&Event::Finished { index: 2, outcome: Outcome::Success, steps: 4 });
        board.event(&Event::Finished { index: 0, outcome: Outcome::InfraLost, steps: 0 });
        assert_eq!(
            board.stages(),
            BTreeMap::from([(Stage::Policy, 1), (Stage::Finished, 1), (Stage::Failed, 1)])
        );
        assert_eq!(board.cells()[1].step, 2);
        assert_eq!(board.done(), 2);
        assert_eq!(board.diagnosis(), "1 at policy (wait for the policy); last trouble: 503");
    }

    #[test]
    fn what_others_collect_is_done_and_counted_once() {
        let board = Board::new(0..2);
        board.event(&Event::Stage { index: 0, step: 1, stage: Stage::Policy });
        board.event(&Event::Elsewhere { index: 0 });
        board.event(&Event::Elsewhere { index: 0 });
        board.event(&Event::Stage { index: 0, step: 2, stage: Stage::Execute });
        assert_eq!(board.stages(), BTreeMap::from([(Stage::NotStarted, 1), (Stage::Finished, 1)]));
        assert_eq!((board.done(), board.totals().elsewhere), (1, 1));
        board.event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 2 });
        assert_eq!((board.done(), board.totals().elsewhere), (1, 0), "it was finished here as well");
    }

    #[test]
    fn whoever_looks_closer_sees_where_the_agent_is_and_what_it_did() {
        let board = Board::new([7, 9]);
        let seen =
            |url: &str, picture: &str| Event::Seen { index: 9, url: url.into(), picture: picture.into() };
        board.event(&seen("https://a.example/", "step_000.png"));
        board.event(&Event::Decided { index: 9, action: "click [3]".into(), thought: "there".into() });
        board.event(&seen("https://a.example/b", "step_001.png"));
        let (_, trace) = board.closer(1).unwrap();
        let trace = trace.unwrap();
        assert_eq!((trace.url.as_str(), trace.pictures), ("https://a.example/b", 2));
        assert_eq!(trace.steps[0].url, "https://a.example/");
        assert_eq!(board.picture(1), Some("step_001.png".into()));
        assert!(board.closer(0).unwrap().1.is_none() && board.closer(2).is_none());
        // A lost attempt takes its pictures with it.
        board.event(&Event::Retried { index: 9, attempt: 1, why: "the node is gone".into() });
        let trace = board.closer(1).unwrap().1.unwrap();
        assert_eq!(
            (trace.picture, trace.trouble.as_deref(), trace.pictures),
            (None, Some("the node is gone"), 2)
        );
    }
}
