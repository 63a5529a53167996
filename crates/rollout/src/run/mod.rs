//! A whole run: thousands of episodes at once on a few threads, each independent of the others, every finished
//! one durable before it counts. Owns the queue, the workers and the end of the run.

pub mod event;
mod finish;
pub mod leases;
mod losses;
pub mod merge;
pub mod permits;
pub mod queue;
pub mod state;
pub mod tensorboard;
mod watchdog;
mod worker;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use losses::Losses;
use proto::trajectory::{Task, Trajectory};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use watchdog::watch;

use crate::{
    episode::{EpisodeContext, screenshots::ScreenshotStore},
    judge::Judge,
    run::{event::Event, queue::WorkQueue},
};
use client::http::Deadline;

const FIRST_CONTACT: Duration = Duration::from_secs(5);
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How a run goes about its tasks.
#[derive(Clone, Debug)]
pub struct RunLimits {
    /// Episodes at once: one an instance.
    pub episodes: usize,
    pub task_timeout: Duration,
    pub completion_threshold: f64,
    pub completion_grace: Duration,
    pub max_infra_retries: u32,
    /// Trajectories that may wait for their judge before collecting slows down.
    pub unjudged: usize,
}

/// How a run is asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Take no new tasks; let what runs finish.
    pub soft: CancellationToken,
    /// Now.
    pub hard: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{0}")]
    Disk(String),
    #[error("the policy server refuses our requests: {0}")]
    PolicyRefuses(String),
    #[error("nothing works: {count} episodes were lost and none came to its end; most often: {why}")]
    NothingWorks { count: usize, why: String },
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    pub finished: usize,
    /// Left for a resumed run.
    pub unfinished: usize,
    /// How many were lost to infrastructure, and the reason that came most often.
    pub lost: Option<(usize, String)>,
}

/// Where a collector's tasks come from.
pub enum Source {
    /// These, the rest of so many.
    Own(Vec<Task>, usize),
    /// A queue that all collectors of the run share.
    Queue(WorkQueue),
}

struct Shared {
    context: Arc<EpisodeContext>,
    judge: Judge,
    limits: RunLimits,
    stop: Stop,
    own: Mutex<VecDeque<Task>>,
    queue: Option<WorkQueue>,
    /// Over, with those of earlier parts of the run.
    done: AtomicUsize,
    total: usize,
    finished: AtomicUsize,
    /// The run has waited long enough for the last few.
    grace_over: CancellationToken,
    failure: Mutex<Option<RunError>>,
    finishing: TaskTracker,
    unjudged: Arc<Semaphore>,
    losses: Losses<(Trajectory, ScreenshotStore)>,
}

/// Collects what the source has.
pub async fn collect(
    context: Arc<EpisodeContext>,
    judge: Judge,
    limits: RunLimits,
    source: Source,
    stop: Stop,
) -> Result<Collected, RunError> {
    let (tasks, total, queue) = match source {
        Source::Own(tasks, total) => (tasks, total, None),
        Source::Queue(queue) => (Vec::new(), queue.total(), Some(queue)),
    };
    let count = queue.as_ref().map_or(tasks.len(), |queue| total - queue.done());
    let shared = Arc::new(Shared {
        context,
        judge,
        unjudged: Arc::new(Semaphore::new(limits.unjudged.max(1))),
        own: Mutex::new(tasks.into()),
        queue,
        done: AtomicUsize::new(total - count),
        total,
        finished: AtomicUsize::new(0),
        grace_over: CancellationToken::new(),
        failure: Mutex::new(None),
        finishing: TaskTracker::new(),
        losses: Losses::new(),
        stop,
        limits,
    });
    // Learnt once, not by thousands at the same moment; without an answer the first episodes will learn it.
    let _ = shared.context.farm.supports_step(Deadline::after(FIRST_CONTACT)).await;
    let workers = TaskTracker::new();
    for _ in 0..shared.limits.episodes.min(count).max(1) {
        workers.spawn(worker::work(Arc::clone(&shared)));
    }
    workers.close();
    shared.consider_the_end(None, total - count);
    let listening = shared.queue.is_some().then(|| tokio::spawn(Arc::clone(&shared).hear_of_others()));
    shared.wait_for(&workers).await;
    // Nobody is left to be ended by it.
    shared.grace_over.cancel();
    shared.finishing.close();
    tokio::select! {
        () = shared.finishing.wait() => shared.settle_losses().await,
        () = shared.stop.hard.cancelled() => {}
    }
    if let Some(listening) = listening {
        listening.abort();
    }
    let failure = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let finished = shared.finished.load(Ordering::Relaxed);
    let unfinished = match &shared.queue {
        Some(queue) => {
            queue.close().await;
            total - queue.done()
        }
        None => count - finished,
    };
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Collected { finished, unfinished, lost: shared.losses.summary() }),
    }
}

impl Shared {
    /// Until all workers are done; after a soft stop only for the grace period.
    async fn wait_for(&self, workers: &TaskTracker) {
        let patience = async {
            self.stop.soft.cancelled().await;
            tokio::time::sleep(self.limits.completion_grace).await;
            self.stop.hard.cancel();
        };
        tokio::select! {
            () = workers.wait() => return,
            () = self.stop.hard.cancelled() => {}
            () = patience => {}
        }
        // Episodes see the stop at their next await.
        workers.wait().await;
    }

    async fn next_task(&self) -> Option<Task> {
        if self.stop.soft.is_cancelled() || self.stop.hard.is_cancelled() {
            return None;
        }
        match &self.queue {
            Some(queue) => queue.next(&self.stop).await,
            None => self.own.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        }
    }

    /// What other collectors finish counts as well. Losses that are held back here must not hold up the others: when
    /// nothing else is left, they are settled.
    async fn hear_of_others(self: Arc<Self>) {
        let Some(queue) = &self.queue else { return };
        loop {
            let elsewhere = tokio::time::timeout(LOOK_AROUND, queue.elsewhere()).await.unwrap_or_default();
            for index in elsewhere {
                self.context.announcer.announce(&Event::FinishedElsewhere { index });
            }
            self.note_done(0);
            let held = self.losses.held();
            if held > 0 && queue.waits_only_for(held) {
                self.settle_losses().await;
            }
        }
    }

    /// Counts episodes that are over.
    fn note_done(self: &Arc<Self>, more: usize) {
        let (before, done) = match &self.queue {
            Some(queue) => {
                let done = queue.done();
                (self.done.fetch_max(done, Ordering::Relaxed), done)
            }
            None => {
                let before = self.done.fetch_add(more, Ordering::Relaxed);
                (before, before + more)
            }
        };
        self.consider_the_end(Some(before), done);
    }

    /// Once enough episodes are over, the others get a last while.
    fn consider_the_end(self: &Arc<Self>, before: Option<usize>, done: usize) {
        let enough =
            |count: usize| count as f64 / self.total.max(1) as f64 >= self.limits.completion_threshold;
        if enough(done) && !before.is_some_and(enough) && done < self.total {
            let (grace_over, grace) = (self.grace_over.clone(), self.limits.completion_grace);
            let (left, over) = (self.total - done, self.finishing.clone());
            tracing::info!(
                "{done} of {} tasks are done; the last {left} get {} s more",
                self.total,
                grace.as_secs()
            );
            over.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(grace) => {}
                    () = grace_over.cancelled() => {}
                }
                grace_over.cancel();
            });
        }
        if done >= self.total {
            self.grace_over.cancel();
        }
    }

    /// Ends the run for a reason that no further task can change.
    fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.hard.cancel();
    }
}
