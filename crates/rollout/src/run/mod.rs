//! A whole run: thousands of episodes at once on a few threads, each independent of the others, every finished
//! one durable before it counts. Owns the queue, the workers and the end of the run.

mod finish;
mod losses;
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

use crate::{episode::Surroundings, gallery::Gallery, http::Deadline, judge::Judge};

const FIRST_CONTACT: Duration = Duration::from_secs(5);

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

struct Shared {
    around: Arc<Surroundings>,
    judge: Judge,
    limits: RunLimits,
    stop: Stop,
    queue: Mutex<VecDeque<Task>>,
    /// Over, with those of earlier parts of the run.
    done: AtomicUsize,
    total: usize,
    finished: AtomicUsize,
    /// The run has waited long enough for the last few.
    grace_over: CancellationToken,
    failure: Mutex<Option<RunError>>,
    finishing: TaskTracker,
    unjudged: Arc<Semaphore>,
    losses: Losses<(Trajectory, Gallery)>,
}

/// Collects `tasks`, the rest of a run of `total`.
pub async fn collect(
    around: Arc<Surroundings>,
    judge: Judge,
    limits: RunLimits,
    tasks: Vec<Task>,
    total: usize,
    stop: Stop,
) -> Result<Collected, RunError> {
    let count = tasks.len();
    let shared = Arc::new(Shared {
        around,
        judge,
        unjudged: Arc::new(Semaphore::new(limits.unjudged.max(1))),
        queue: Mutex::new(tasks.into()),
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
    let _ = shared.around.farm.offers_step(Deadline::after(FIRST_CONTACT)).await;
    let workers = TaskTracker::new();
    for _ in 0..shared.limits.episodes.min(count).max(1) {
        workers.spawn(worker::work(Arc::clone(&shared)));
    }
    workers.close();
    shared.note_done(0);
    shared.wait_for(&workers).await;
    // Nobody is left to be ended by it.
    shared.grace_over.cancel();
    shared.finishing.close();
    tokio::select! {
        () = shared.finishing.wait() => shared.settle_losses().await,
        () = shared.stop.hard.cancelled() => {}
    }
    let failure = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let finished = shared.finished.load(Ordering::Relaxed);
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Collected { finished, unfinished: count - finished, lost: shared.losses.summary() }),
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

    fn next_task(&self) -> Option<Task> {
        if self.stop.soft.is_cancelled() || self.stop.hard.is_cancelled() {
            return None;
        }
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Counts episodes that are over; once enough are, the others get a last while.
    fn note_done(self: &Arc<Self>, more: usize) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let share = done as f64 / self.total.max(1) as f64;
        let before = (done - more) as f64 / self.total.max(1) as f64;
        let threshold = self.limits.completion_threshold;
        let crossed = share >= threshold && (before < threshold || more == 0) && done < self.total;
        if crossed {
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
