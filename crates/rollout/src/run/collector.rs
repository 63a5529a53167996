//! Collects the tasks of one source: starts workers, counts what is finished here and by other collectors, starts the grace
//! period for the last episodes, and decides when the run is over.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use client::http::Deadline;
use proto::trajectory::Task;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{StartLimit, event::Event, finish::EndedEpisode, losses::Losses, queue::WorkQueue, worker};
use crate::{episode::EpisodeContext, judge::Judge};

const STEP_SUPPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often held losses are reconsidered when other collectors report nothing.
const OTHERS_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Limits on the episodes of a run.
#[derive(Clone, Debug)]
pub struct RunLimits {
    /// Concurrent episodes; each holds one browser.
    pub episodes: usize,
    pub task_timeout: Duration,
    /// Share of finished tasks at which the grace period starts.
    pub completion_threshold: f64,
    pub completion_grace: Duration,
    pub max_infra_retries: u32,
    /// Trajectories that may wait for the judge before workers block.
    pub unjudged: usize,
    /// How far the run may be ahead of the consumer of its stream.
    pub starts: StartLimit,
}

/// Requests a run to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Start no new episodes; let running ones finish.
    pub soft: CancellationToken,
    /// Stop at once.
    pub hard: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{0}")]
    Disk(String),
    #[error("{0}")]
    PromptFailed(String),
    #[error("the policy server refuses our requests: {0}")]
    PolicyRefuses(String),
    #[error("all {count} episodes so far were lost to infrastructure; the most frequent reason: {reason}")]
    AllEpisodesLost { count: usize, reason: String },
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub finished: usize,
    /// Left for a resumed run.
    pub unfinished: usize,
    /// Number of episodes lost to infrastructure, and the most frequent reason.
    pub lost: Option<(usize, String)>,
}

/// Where a collector's tasks come from.
pub enum TaskSource {
    /// Fixed tasks, of `total` in this part of the run.
    Fixed { tasks: Vec<Task>, total: usize },
    /// A queue that all collectors of the run share.
    Queue(WorkQueue),
}

/// A worker that waits until its task may start. The first and the last one are announced.
struct WaitingWorker(Arc<Collector>);

impl WaitingWorker {
    fn new(collector: &Arc<Collector>) -> Self {
        let mut count = collector.waiting_workers.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if *count == 1 {
            collector.context.announcer.announce(&Event::StartsHeld(collector.limits.starts.status()));
        }
        Self(Arc::clone(collector))
    }
}

impl Drop for WaitingWorker {
    fn drop(&mut self) {
        let mut count = self.0.waiting_workers.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            self.0.context.announcer.announce(&Event::StartsHeld(None));
        }
    }
}

/// The result of taking a task.
enum Taken {
    Task(Box<Task>),
    Nothing,
    /// The consumer of the stream must acknowledge more first.
    MustWait,
}

/// The state that the workers of a run share.
pub(super) struct Collector {
    pub(super) context: Arc<EpisodeContext>,
    pub(super) judge: Judge,
    pub(super) limits: RunLimits,
    pub(super) stop: Stop,
    fixed_tasks: Mutex<VecDeque<Task>>,
    /// Workers whose task may not start yet.
    waiting_workers: Mutex<usize>,
    pub(super) queue: Option<WorkQueue>,
    /// Finished tasks of the whole run, including earlier parts and other collectors.
    done: AtomicUsize,
    total: usize,
    /// Tasks finished here.
    pub(super) finished: AtomicUsize,
    has_grace_started: AtomicBool,
    /// Cancelled when the last episodes have had their grace period.
    pub(super) grace_over: CancellationToken,
    failure: Mutex<Option<RunError>>,
    /// Tasks that judge and save finished episodes.
    pub(super) finishing: TaskTracker,
    pub(super) unjudged: Arc<Semaphore>,
    pub(super) losses: Losses<EndedEpisode>,
}

/// Runs all tasks of the source.
pub async fn collect(
    context: Arc<EpisodeContext>,
    judge: Judge,
    limits: RunLimits,
    source: TaskSource,
    stop: Stop,
) -> Result<Collected, RunError> {
    let collector = Arc::new(Collector::new(context, judge, limits, source, stop));
    let remaining = collector.total - collector.done.load(Ordering::Relaxed);
    // Ask once before thousands of episodes would ask at the same moment. If this fails, the first episodes ask again.
    let _ = collector.context.farm.supports_step(Deadline::after(STEP_SUPPORT_TIMEOUT)).await;
    let workers = TaskTracker::new();
    for _ in 0..collector.limits.episodes.min(remaining).max(1) {
        workers.spawn(worker::work(Arc::clone(&collector)));
    }
    workers.close();
    collector.start_grace_if_due(collector.total - remaining);
    let following = collector.queue.is_some().then(|| tokio::spawn(Arc::clone(&collector).follow_others()));
    collector.wait_for_workers(&workers).await;
    collector.wait_for_finishing().await;
    if let Some(following) = following {
        following.abort();
    }
    collector.into_result(remaining).await
}

impl Collector {
    fn new(
        context: Arc<EpisodeContext>,
        judge: Judge,
        limits: RunLimits,
        source: TaskSource,
        stop: Stop,
    ) -> Self {
        let (tasks, total, done, queue) = match source {
            TaskSource::Fixed { tasks, total } => {
                let done = total - tasks.len();
                (tasks, total, done, None)
            }
            TaskSource::Queue(queue) => (Vec::new(), queue.total(), queue.done(), Some(queue)),
        };
        Self {
            context,
            judge,
            unjudged: Arc::new(Semaphore::new(limits.unjudged.max(1))),
            fixed_tasks: Mutex::new(tasks.into()),
            waiting_workers: Mutex::new(0),
            queue,
            done: AtomicUsize::new(done),
            total,
            finished: AtomicUsize::new(0),
            has_grace_started: AtomicBool::new(false),
            grace_over: CancellationToken::new(),
            failure: Mutex::new(None),
            finishing: TaskTracker::new(),
            losses: Losses::new(),
            stop,
            limits,
        }
    }

    /// Waits until all workers are done; after a soft stop, for the grace period only.
    async fn wait_for_workers(&self, workers: &TaskTracker) {
        let grace_after_stop = async {
            self.stop.soft.cancelled().await;
            tokio::time::sleep(self.limits.completion_grace).await;
            self.stop.hard.cancel();
        };
        tokio::select! {
            () = workers.wait() => return,
            () = self.stop.hard.cancelled() => {}
            () = grace_after_stop => {}
        }
        // Episodes react to the hard stop at their next await.
        workers.wait().await;
    }

    /// Waits until finished episodes are judged and saved.
    async fn wait_for_finishing(self: &Arc<Self>) {
        // No episode runs any more, so the grace timer, which `finishing` tracks, can end.
        self.grace_over.cancel();
        self.finishing.close();
        tokio::select! {
            () = self.finishing.wait() => self.settle_losses().await,
            () = self.stop.hard.cancelled() => {}
        }
    }

    async fn into_result(self: Arc<Self>, remaining: usize) -> Result<Collected, RunError> {
        let finished = self.finished.load(Ordering::Relaxed);
        let unfinished = match &self.queue {
            Some(queue) => {
                queue.close().await;
                self.total - queue.done()
            }
            None => remaining - finished,
        };
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(failure) => Err(failure),
            None => Ok(Collected { finished, unfinished, lost: self.losses.summary() }),
        }
    }

    pub(super) async fn next_task(self: &Arc<Self>) -> Option<Task> {
        if self.stop.soft.is_cancelled() || self.stop.hard.is_cancelled() {
            return None;
        }
        match &self.queue {
            Some(queue) => queue.next(&self.stop).await,
            None => self.next_fixed_task().await,
        }
    }

    /// Takes the first task once it may start.
    async fn next_fixed_task(self: &Arc<Self>) -> Option<Task> {
        let mut changes = self.limits.starts.changes();
        let mut waiting = None;
        loop {
            match self.take_fixed_task() {
                Taken::Task(task) => return Some(*task),
                Taken::Nothing => return None,
                Taken::MustWait => waiting.get_or_insert_with(|| WaitingWorker::new(self)),
            };
            tokio::select! {
                () = self.stop.soft.cancelled() => return None,
                () = self.stop.hard.cancelled() => return None,
                () = changes.changed() => {}
            }
        }
    }

    fn take_fixed_task(self: &Arc<Self>) -> Taken {
        let mut tasks = self.fixed_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = |position: &usize| {
            tasks.get(*position).is_some_and(|task| self.limits.starts.try_start(task.trajectory_index))
        };
        if tasks.is_empty() {
            return Taken::Nothing;
        }
        // An attempt whose group has no prefix yet would only wait, so others come first.
        let ready = self.position_of_ready(&tasks);
        let Some(position) = [ready, 0].into_iter().find(starts) else { return Taken::MustWait };
        let task = tasks.remove(position);
        let is_last = tasks.is_empty();
        drop(tasks);
        if is_last {
            self.start_grace_if_due(self.done.load(Ordering::Relaxed));
        }
        task.map_or(Taken::Nothing, |task| Taken::Task(Box::new(task)))
    }

    /// Returns the position of the first task that need not wait for the steps of its group; 0 if there is none.
    fn position_of_ready(&self, tasks: &VecDeque<Task>) -> usize {
        let Some(groups) = &self.context.group_prefixes else { return 0 };
        tasks.iter().position(|task| groups.can_start(task.trajectory_index)).unwrap_or(0)
    }

    /// Counts what other collectors finish. When nothing but held losses is left, settles them, because the other collectors
    /// wait for this one.
    async fn follow_others(self: Arc<Self>) {
        let Some(queue) = &self.queue else { return };
        loop {
            let finished = tokio::time::timeout(OTHERS_POLL_INTERVAL, queue.finished_elsewhere()).await;
            for index in finished.unwrap_or_default() {
                self.context.announcer.announce(&Event::FinishedElsewhere { index });
            }
            self.add_done(0);
            let held = self.losses.held();
            if held > 0 && queue.waits_only_for(held) {
                self.settle_losses().await;
            }
        }
    }

    /// Counts finished tasks. With a queue, its own count is used instead of `more`.
    pub(super) fn add_done(self: &Arc<Self>, more: usize) {
        let done = if let Some(queue) = &self.queue {
            let done = queue.done();
            self.done.fetch_max(done, Ordering::Relaxed).max(done)
        } else {
            self.done.fetch_add(more, Ordering::Relaxed) + more
        };
        self.start_grace_if_due(done);
    }

    /// Starts the grace period of the remaining episodes when the completion threshold is crossed, and ends it when all are
    /// done. Tasks that wait for the consumer of the stream are not cancelled for that, so the period begins when all have
    /// started.
    fn start_grace_if_due(self: &Arc<Self>, done: usize) {
        let is_enough = done as f64 / self.total.max(1) as f64 >= self.limits.completion_threshold;
        let is_due = is_enough && done < self.total && !self.waits_to_start();
        if is_due && !self.has_grace_started.swap(true, Ordering::Relaxed) {
            let (grace_over, grace) = (self.grace_over.clone(), self.limits.completion_grace);
            tracing::info!(
                "{done} of {} tasks are done; time for the other {}: {} s",
                self.total,
                self.total - done,
                grace.as_secs()
            );
            let pause = self.context.pause.clone();
            self.finishing.spawn(async move {
                tokio::select! {
                    () = pause.sleep(grace) => {}
                    () = grace_over.cancelled() => {}
                }
                grace_over.cancel();
            });
        }
        if done >= self.total {
            self.grace_over.cancel();
        }
    }

    /// Returns whether the start limit may still hold tasks back.
    fn waits_to_start(&self) -> bool {
        let tasks = || self.fixed_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        self.limits.starts.is_limited() && !tasks().is_empty()
    }

    /// Stops the run because of an error that would affect every further task.
    pub(super) fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.hard.cancel();
    }
}
