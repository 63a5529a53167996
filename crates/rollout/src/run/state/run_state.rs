//! Updates the counts, cells and traces of a run with each event and answers queries about them.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::{
    network::{MatchCounts, NetworkSummary},
    trajectory::{Outcome, Task},
};

use super::{
    TaskInfo, Trace,
    pace::{Latency, Pace, PaceMeter, RecentDurations},
    trace::Traces,
};
use crate::run::{
    StartStatus,
    event::{Event, Listener, Stage},
};

/// The state of one task.
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

/// Durations of a stage since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    pub count: u64,
    pub total: Duration,
    pub max: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub tasks: usize,
    pub steps: u64,
    pub retried: u64,
    pub failures: u64,
    /// Tasks that other collectors of the same run finished.
    pub finished_elsewhere: usize,
    pub outcomes: BTreeMap<&'static str, usize>,
    /// How archives answered the requests of replayed episodes, by the website of the task.
    pub coverage: BTreeMap<String, MatchCounts>,
}

/// Failures in a stage: how many, and the reason of the latest.
type StageFailures = (u64, String);

/// Cells of a run without a plan. Beyond them, a task that joins takes the cell of the oldest finished one.
const MAX_ADDED_CELLS: usize = 2000;

pub struct RunState {
    started: Instant,
    /// Whether tasks join while the run goes on.
    is_open_ended: bool,
    inner: Mutex<RunStateInner>,
}

struct RunStateInner {
    /// The tasks by position.
    tasks: Vec<TaskInfo>,
    /// Tasks that joined since the run began.
    added: u64,
    /// Trajectory index → position of its cell. A rank has only some of the trajectories.
    positions: HashMap<usize, usize>,
    cells: Vec<Cell>,
    stages: BTreeMap<Stage, usize>,
    totals: Totals,
    timings: BTreeMap<Stage, Timing>,
    failures: BTreeMap<Stage, StageFailures>,
    paused_until: Option<tokio::time::Instant>,
    held_starts: Option<StartStatus>,
    last_progress: Instant,
    pace: PaceMeter,
    recent: BTreeMap<Stage, RecentDurations>,
    traces: Traces,
}

impl RunState {
    /// Creates the state for tasks of which only the trajectory indices are known, in display order.
    pub fn new(indices: impl IntoIterator<Item = usize>) -> Self {
        Self::with(indices.into_iter().map(TaskInfo::unknown).collect())
    }

    /// Creates the state for the given tasks, followed by the indices `finished` in an earlier part of the run.
    pub fn of_tasks<'a>(
        tasks: impl IntoIterator<Item = &'a Task>,
        finished: impl IntoIterator<Item = i64>,
    ) -> Self {
        let known = tasks.into_iter().filter_map(|task| {
            let index = usize::try_from(task.trajectory_index).ok()?;
            Some(TaskInfo::of(task, index))
        });
        let finished = finished.into_iter().filter_map(|index| usize::try_from(index).ok());
        Self::with(known.chain(finished.map(TaskInfo::unknown)).collect())
    }

    /// Creates the state of a run without a plan: tasks join with [`Event::TaskAdded`], and the latest of them are kept.
    pub fn open_ended() -> Self {
        Self { is_open_ended: true, ..Self::with(Vec::new()) }
    }

    fn with(tasks: Vec<TaskInfo>) -> Self {
        let (count, now) = (tasks.len(), Instant::now());
        let inner = RunStateInner {
            added: 0,
            positions: tasks.iter().enumerate().map(|(position, task)| (task.index, position)).collect(),
            cells: vec![Cell::default(); count],
            stages: BTreeMap::from([(Stage::NotStarted, count)]),
            totals: Totals { tasks: count, ..Totals::default() },
            timings: BTreeMap::new(),
            failures: BTreeMap::new(),
            paused_until: None,
            held_starts: None,
            last_progress: now,
            pace: PaceMeter::new(now),
            recent: BTreeMap::new(),
            traces: Traces::new(count),
            tasks,
        };
        Self { started: now, is_open_ended: false, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, RunStateInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn cells(&self) -> Vec<Cell> {
        self.inner().cells.clone()
    }

    pub fn totals(&self) -> Totals {
        self.inner().totals.clone()
    }

    /// Returns how many episodes are in each stage; empty stages are left out.
    pub fn stages(&self) -> BTreeMap<Stage, usize> {
        let mut stages = self.inner().stages.clone();
        stages.retain(|_, count| *count > 0);
        stages
    }

    pub fn timings(&self) -> BTreeMap<Stage, Timing> {
        self.inner().timings.clone()
    }

    pub fn pace(&self) -> Pace {
        self.inner().pace.pace(Instant::now())
    }

    /// Returns the recent latency of each stage.
    pub fn latencies(&self) -> BTreeMap<Stage, Latency> {
        self.inner().recent.iter().map(|(stage, recent)| (*stage, recent.latency())).collect()
    }

    /// Returns whether tasks join while the run goes on, so that nobody knows how many there will be.
    pub const fn is_open_ended(&self) -> bool {
        self.is_open_ended
    }

    /// Returns the tasks by position.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.inner().tasks.clone()
    }

    /// Returns the task at a position.
    pub fn task(&self, position: usize) -> Option<TaskInfo> {
        self.inner().tasks.get(position).cloned()
    }

    /// Returns a number that changes whenever the list of tasks does.
    pub fn revision(&self) -> u64 {
        self.inner().added
    }

    /// Returns the cell and the trace of the task at a position. There is no trace before the task starts, and none for tasks
    /// that finished long ago.
    pub fn task_detail(&self, position: usize) -> Option<(Cell, Option<Trace>)> {
        let inner = self.inner();
        Some((*inner.cells.get(position)?, inner.traces.get(position)))
    }

    /// Returns the path of the latest screenshot of the task at a position.
    pub fn latest_screenshot(&self, position: usize) -> Option<PathBuf> {
        self.inner().traces.screenshot(position)
    }

    /// Returns how many tasks are finished, with any outcome, here or elsewhere.
    pub fn done(&self) -> usize {
        let totals = &self.inner().totals;
        totals.outcomes.values().sum::<usize>() + totals.finished_elsewhere
    }

    /// Counts a trajectory that an earlier part of a resumed run finished.
    pub fn add_finished(&self, index: usize, outcome: Outcome) {
        self.inner().finish(index, outcome);
    }

    /// Returns the time since the last progress of any episode.
    pub fn stalled(&self) -> Duration {
        self.inner().last_progress.elapsed()
    }

    /// Returns the number of failures in a stage and the reason of the latest.
    pub fn failures(&self, stage: Stage) -> Option<(u64, String)> {
        self.inner().failures.get(&stage).cloned()
    }

    /// Returns the time until the current pause ends by itself; `None` if the run is not paused.
    pub fn pause_remaining(&self) -> Option<Duration> {
        let until = self.inner().paused_until?;
        Some(until.saturating_duration_since(tokio::time::Instant::now()))
    }

    /// Returns why no further episodes start; `None` if they do.
    pub fn held_starts(&self) -> Option<StartStatus> {
        self.inner().held_starts
    }

    /// Explains why the run waits on request of the consumer of its stream; `None` if it does not.
    pub fn hold(&self) -> Option<String> {
        if let Some(remaining) = self.pause_remaining() {
            let seconds = remaining.as_secs();
            return Some(format!(
                "policy calls are paused for at most {seconds} s more (POST /resume ends it)"
            ));
        }
        let held = self.held_starts()?;
        let (count, limit) = (held.unacknowledged(), held.limit);
        Some(format!(
            "no episode starts until the consumer of the stream acknowledges more: {count} items are started and not \
             acknowledged, and env_config.max_staleness allows {limit}"
        ))
    }

    /// Describes what episodes wait for, with the latest failure of each stage.
    pub fn diagnosis(&self) -> String {
        let hold = self.hold();
        let inner = self.inner();
        let waiting = inner.stages.iter().filter(|(stage, count)| **count > 0 && !stage.is_final());
        let lines = waiting.map(|(stage, count)| {
            let failure = inner.failures.get(stage).map(|(_, reason)| format!("; latest failure: {reason}"));
            format!(
                "{count} in stage {} (waiting for {}){}",
                stage.as_str(),
                stage.waits_for(),
                failure.unwrap_or_default()
            )
        });
        let lines: Vec<String> = hold.into_iter().chain(lines).collect();
        if lines.is_empty() { "no episode is running".to_owned() } else { lines.join(", ") }
    }
}

impl RunStateInner {
    fn position(&self, index: usize) -> Option<usize> {
        self.positions.get(&index).copied()
    }

    fn cell(&mut self, index: usize) -> Option<&mut Cell> {
        let position = self.position(index)?;
        self.cells.get_mut(position)
    }

    /// Adds a task. Counts and totals include the tasks whose cells are taken.
    fn add_task(&mut self, task: &TaskInfo) {
        self.added += 1;
        self.totals.tasks += 1;
        *self.stages.entry(Stage::NotStarted).or_default() += 1;
        let position = if let Some(position) = self.replaceable() {
            self.positions.remove(&self.tasks[position].index);
            self.tasks[position] = task.clone();
            self.cells[position] = Cell::default();
            self.traces.clear(position);
            position
        } else {
            self.tasks.push(task.clone());
            self.cells.push(Cell::default());
            self.traces.push();
            self.tasks.len() - 1
        };
        self.positions.insert(task.index, position);
        self.last_progress = Instant::now();
    }

    /// Returns the position of the oldest finished task, once there are enough cells.
    fn replaceable(&self) -> Option<usize> {
        if self.cells.len() < MAX_ADDED_CELLS {
            return None;
        }
        let finished = (0..self.cells.len()).filter(|position| self.cells[*position].stage.is_final());
        finished.min_by_key(|position| self.tasks[*position].index)
    }

    fn set_stage(&mut self, index: usize, stage: Stage) {
        let Some(cell) = self.cell(index) else { return };
        let before = std::mem::replace(&mut cell.stage, stage);
        if let Some(count) = self.stages.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        *self.stages.entry(stage).or_default() += 1;
    }

    /// Marks a task as finished by another collector. Its outcome is not known here.
    fn finish_elsewhere(&mut self, index: usize) {
        if self.cell(index).is_some_and(|cell| !cell.stage.is_final()) {
            self.set_stage(index, Stage::Finished);
            self.totals.finished_elsewhere += 1;
            if let Some(position) = self.position(index) {
                self.traces.finish(position);
            }
        }
    }

    fn finish(&mut self, index: usize, outcome: Outcome) {
        if self.is_finished_elsewhere(index) {
            self.totals.finished_elsewhere -= 1;
        }
        let failed = matches!(outcome, Outcome::InfraLost | Outcome::Cancelled | Outcome::ReplayMiss);
        self.set_stage(index, if failed { Stage::Failed } else { Stage::Finished });
        if let Some(cell) = self.cell(index) {
            cell.outcome = Some(outcome);
        }
        *self.totals.outcomes.entry(outcome.as_str()).or_default() += 1;
        if let Some(position) = self.position(index) {
            self.traces.finish(position);
        }
    }

    fn record_network(&mut self, index: usize, summary: &NetworkSummary) {
        let Some(position) = self.position(index) else { return };
        self.traces.record_network(position, summary);
        if summary.matches.total() > 0
            && let Some(task) = self.tasks.get(position)
        {
            let site = store::metrics::site(&task.website).to_owned();
            self.totals.coverage.entry(site).or_default().add(&summary.matches);
        }
    }

    fn is_finished_elsewhere(&self, index: usize) -> bool {
        let cell = self.position(index).and_then(|position| self.cells.get(position));
        cell.is_some_and(|cell| cell.stage == Stage::Finished && cell.outcome.is_none())
    }

    /// Counts work done and resets the stall timer.
    fn record_progress(&mut self, steps: u64, trajectories: u64) {
        self.totals.steps += steps;
        self.last_progress = Instant::now();
        self.pace.add(steps, trajectories, self.last_progress);
    }

    fn record_duration(&mut self, stage: Stage, duration: Duration) {
        let timing = self.timings.entry(stage).or_default();
        timing.count += 1;
        timing.total += duration;
        timing.max = timing.max.max(duration);
        self.recent.entry(stage).or_default().push(duration);
        self.last_progress = Instant::now();
    }

    fn record_failure(&mut self, index: usize, stage: Stage, reason: &str) {
        self.totals.failures += 1;
        if let Some(position) = self.position(index) {
            self.traces.record_failure(position, reason);
        }
        let (count, latest) = self.failures.entry(stage).or_default();
        *count += 1;
        reason.clone_into(latest);
    }

    fn record_retry(&mut self, index: usize, attempt: u32, reason: &str) {
        self.totals.retried += 1;
        if let Some(position) = self.position(index) {
            self.traces.restart(position, reason);
        }
        if let Some(cell) = self.cell(index) {
            cell.attempt = attempt;
        }
    }
}

impl Listener for RunState {
    fn on_event(&self, event: &Event) {
        let mut inner = self.inner();
        match event {
            Event::TaskAdded { task } => inner.add_task(task),
            // A task finished elsewhere stays finished, even while an episode for it still runs here.
            Event::Stage { index, .. } if inner.is_finished_elsewhere(*index) => {}
            Event::Stage { index, step, stage } => {
                inner.set_stage(*index, *stage);
                if let Some(cell) = inner.cell(*index) {
                    cell.step = *step as u32;
                }
            }
            Event::StageTimed { stage, duration } => inner.record_duration(*stage, *duration),
            Event::BrowserChanged { index, live_url } => {
                if let Some(position) = inner.position(*index) {
                    inner.traces.set_live_url(position, live_url.clone());
                }
            }
            Event::NetworkReported { index, summary } => inner.record_network(*index, summary),
            Event::Observed { index, url, screenshot } => {
                if let Some(position) = inner.position(*index) {
                    inner.traces.record_observation(position, url, screenshot);
                }
            }
            Event::Decided { index, action, thought } => {
                if let Some(position) = inner.position(*index) {
                    inner.traces.record_decision(position, action, thought);
                }
            }
            Event::StepDone { .. } => inner.record_progress(1, 0),
            Event::StageFailed { index, stage, reason } => inner.record_failure(*index, *stage, reason),
            Event::Retried { index, attempt, reason } => inner.record_retry(*index, *attempt, reason),
            Event::FinishedElsewhere { index } => {
                inner.finish_elsewhere(*index);
                inner.last_progress = Instant::now();
            }
            Event::Paused { until } => inner.paused_until = Some(*until),
            Event::Resumed => {
                inner.paused_until = None;
                inner.last_progress = Instant::now();
            }
            Event::StartsHeld(status) => inner.held_starts = *status,
            Event::Finished { index, outcome, .. } => {
                inner.finish(*index, *outcome);
                inner.record_progress(0, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_update_cells_and_counts() {
        let state = RunState::new(0..3);
        state.on_event(&Event::Stage { index: 1, step: 2, stage: Stage::Policy });
        state.on_event(&Event::StageFailed { index: 1, stage: Stage::Policy, reason: "503".into() });
        state.on_event(&Event::Finished { index: 2, outcome: Outcome::Success, steps: 4 });
        state.on_event(&Event::Finished { index: 0, outcome: Outcome::InfraLost, steps: 0 });
        assert_eq!(
            state.stages(),
            BTreeMap::from([(Stage::Policy, 1), (Stage::Finished, 1), (Stage::Failed, 1)])
        );
        assert_eq!(state.cells()[1].step, 2);
        assert_eq!(state.done(), 2);
        assert_eq!(state.diagnosis(), "1 in stage policy (waiting for the policy); latest failure: 503");
    }

    #[test]
    fn task_finished_elsewhere_counts_once() {
        let state = RunState::new(0..2);
        state.on_event(&Event::Stage { index: 0, step: 1, stage: Stage::Policy });
        state.on_event(&Event::FinishedElsewhere { index: 0 });
        state.on_event(&Event::FinishedElsewhere { index: 0 });
        state.on_event(&Event::Stage { index: 0, step: 2, stage: Stage::Execute });
        assert_eq!(state.stages(), BTreeMap::from([(Stage::NotStarted, 1), (Stage::Finished, 1)]));
        assert_eq!((state.done(), state.totals().finished_elsewhere), (1, 1));
        state.on_event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 2 });
        assert_eq!((state.done(), state.totals().finished_elsewhere), (1, 0), "it also finished here");
    }

    #[test]
    fn added_task_takes_the_cell_of_the_oldest_finished_one() {
        let state = RunState::open_ended();
        let add = |index: usize| {
            let task = TaskInfo { index, task_id: index.to_string(), ..TaskInfo::default() };
            state.on_event(&Event::TaskAdded { task: Box::new(task) });
        };
        let finish = |index| {
            state.on_event(&Event::Decided { index, action: "answer".into(), thought: String::new() });
            state.on_event(&Event::Finished { index, outcome: Outcome::Success, steps: 1 });
        };
        (0..MAX_ADDED_CELLS).for_each(add);
        finish(7);
        finish(3);
        add(MAX_ADDED_CELLS);
        assert_eq!(state.cells().len(), MAX_ADDED_CELLS);
        assert_eq!(state.task(3).unwrap().index, MAX_ADDED_CELLS, "7 finished earlier, but 3 is older");
        assert_eq!(
            (state.task_detail(3).unwrap().1.is_none(), state.task_detail(7).unwrap().1.is_none()),
            (true, false)
        );
        state.on_event(&Event::Stage { index: MAX_ADDED_CELLS, step: 2, stage: Stage::Policy });
        state.on_event(&Event::Stage { index: 3, step: 9, stage: Stage::Execute });
        assert_eq!((state.cells()[3].stage, state.cells()[3].step), (Stage::Policy, 2), "3 is gone");
        assert_eq!((state.totals().tasks, state.done()), (MAX_ADDED_CELLS + 1, 2));
        assert_eq!(state.stages()[&Stage::Finished], 2);
        add(MAX_ADDED_CELLS + 1);
        add(MAX_ADDED_CELLS + 2);
        assert_eq!(state.cells().len(), MAX_ADDED_CELLS + 1, "running tasks keep their cells");
        assert_eq!(state.revision(), MAX_ADDED_CELLS as u64 + 3);
    }

    #[test]
    fn detail_shows_page_and_actions_of_task() {
        let state = RunState::new([7, 9]);
        let observed = |url: &str, screenshot: &str| Event::Observed {
            index: 9,
            url: url.into(),
            screenshot: screenshot.into(),
        };
        state.on_event(&observed("https://a.example/", "step_000.png"));
        state.on_event(&Event::Decided { index: 9, action: "click [3]".into(), thought: "there".into() });
        state.on_event(&observed("https://a.example/b", "step_001.png"));
        let (_, trace) = state.task_detail(1).unwrap();
        let trace = trace.unwrap();
        assert_eq!((trace.url.as_str(), trace.screenshot_count), ("https://a.example/b", 2));
        assert_eq!(trace.steps[0].url, "https://a.example/");
        assert_eq!(state.latest_screenshot(1), Some("step_001.png".into()));
        assert!(state.task_detail(0).unwrap().1.is_none() && state.task_detail(2).is_none());
        // The screenshots of a lost attempt are deleted.
        state.on_event(&Event::Retried { index: 9, attempt: 1, reason: "the node is gone".into() });
        let trace = state.task_detail(1).unwrap().1.unwrap();
        assert_eq!(
            (trace.screenshot, trace.failure.as_deref(), trace.screenshot_count),
            (None, Some("the node is gone"), 2)
        );
    }
}
