//! A collector's handle of the work queue, and the state that its two parts share: taking tasks (`taking`) and the background
//! task that keeps Redis up to date (`upkeep`).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use net::redis::{RedisConnection, RedisConnectionError, redact_password};
use proto::trajectory::Task;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    task::JoinHandle,
    time::Instant,
};

use super::{
    QueueError,
    bitmap::IndexBitmap,
    disk::RunFiles,
    redis_queue::{Entry, RedisQueue},
    upkeep,
};
use crate::{
    plan::{Plan, SharedPlan},
    run::Stop,
};

const FIRST_CLOSE_PAUSE: Duration = Duration::from_millis(100);
/// Attempts to report finished trajectories when the run ends.
const MAX_CLOSE_ATTEMPTS: u32 = 6;

/// A collector's handle of the queue. Dropping it ends the heartbeat.
pub struct WorkQueue {
    inner: Arc<QueueInner>,
    upkeep: JoinHandle<()>,
}

pub(super) struct QueueInner {
    pub(super) redis: RedisQueue,
    /// For messages, without a password.
    pub(super) address: String,
    /// Digest of the plan.
    pub(super) digest: String,
    pub(super) total: usize,
    /// All tasks by trajectory index, because a task returns to the queue when its collector dies.
    pub(super) tasks: HashMap<usize, Task>,
    pub(super) files: RunFiles,
    /// Time without a heartbeat after which a collector counts as dead.
    pub(super) stale_after: Duration,
    state: Mutex<QueueState>,
    /// Held while asking Redis for a task, so that many waiting workers do not ask at once.
    pub(super) take_lock: AsyncMutex<()>,
    /// Notifies waiting workers that something changed.
    pub(super) changed: Notify,
    /// Notifies the upkeep task that there is something to report.
    pub(super) has_report: Notify,
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) generation: String,
    /// Entries that this collector took before an interruption; they are run first.
    pub(super) left_over: VecDeque<Entry>,
    /// Tasks being collected here, with their stream entry; without one when the stream was refilled meanwhile.
    pub(super) held: HashMap<usize, Option<String>>,
    /// The stream had no untaken entry at the last read.
    pub(super) is_drained: bool,
    /// Trajectories saved here.
    pub(super) own: BTreeSet<usize>,
    /// Finished trajectories that Redis does not know of yet, with the entry to acknowledge.
    pub(super) unreported: BTreeMap<usize, Option<String>>,
    /// Trajectories saved by any collector.
    pub(super) finished: IndexBitmap,
    /// Trajectories finished by other collectors and not yet returned by [`WorkQueue::finished_elsewhere`].
    pub(super) finished_elsewhere: Vec<usize>,
    /// Episodes collected here although another collector had finished the task.
    redundant: usize,
    /// When Redis stopped answering.
    pub(super) unreachable_since: Option<Instant>,
    /// A response was lost, so Redis may have assigned an entry to us that we do not know of.
    pub(super) has_lost_response: bool,
    /// No entries are claimed from other collectors before this time.
    pub(super) claim_after: Option<Instant>,
}

impl WorkQueue {
    /// Joins the queue of a run and fills it if no other collector did.
    pub async fn open(address: &str, plan: &Plan, stale_after: Duration) -> Result<Self, QueueError> {
        let shared = plan.shared.as_ref().ok_or(QueueError::NoSharedPlan)?;
        let shown = redact_password(address);
        let connection = RedisConnection::to(address)
            .map_err(|source| QueueError::Unusable { address: shown.clone(), source })?;
        let index = |task: &Task| usize::try_from(task.trajectory_index).unwrap_or(0);
        let inner = Arc::new(QueueInner {
            redis: RedisQueue::new(connection, &run_name(plan, shared), &consumer(plan.id.rank)),
            address: shown,
            digest: shared.digest(),
            total: shared.total(),
            tasks: plan.tasks.iter().map(|task| (index(task), task.clone())).collect(),
            files: RunFiles { save_path: plan.save_path.clone(), id: plan.id, run_id: shared.run_id.clone() },
            stale_after,
            state: Mutex::new(QueueState::resumed(plan)),
            take_lock: AsyncMutex::new(()),
            changed: Notify::new(),
            has_report: Notify::new(),
        });
        inner.join().await?;
        let upkeep = tokio::spawn(upkeep::run(Arc::clone(&inner)));
        Ok(Self { inner, upkeep })
    }

    /// Returns the next task. Waits while other collectors run tasks, because a dead collector's task must be taken over.
    /// Returns `None` when all tasks are finished or the run stops.
    pub async fn next(&self, stop: &Stop) -> Option<Task> {
        tokio::select! {
            biased;
            () = stop.soft.cancelled() => None,
            () = stop.hard.cancelled() => None,
            task = self.inner.next() => task,
        }
    }

    /// Records that a trajectory was saved here.
    pub fn mark_finished(&self, index: usize) {
        self.inner.mark_finished(index);
    }

    /// Returns whether another collector has saved this trajectory. Returns `false` when Redis does not answer.
    pub async fn is_finished_elsewhere(&self, index: usize) -> bool {
        self.inner.is_finished_elsewhere(index).await
    }

    /// Records that an episode was dropped because another collector had finished the task.
    pub fn mark_redundant(&self, index: usize) {
        let mut state = self.inner.state();
        state.redundant += 1;
        let entry = state.held.remove(&index).flatten();
        state.unreported.insert(index, entry);
        drop(state);
        self.inner.has_report.notify_one();
    }

    pub fn total(&self) -> usize {
        self.inner.total
    }

    /// Returns how many trajectories any collector has saved.
    pub fn done(&self) -> usize {
        self.inner.state().finished.count()
    }

    /// Returns whether the stream is drained and exactly `count` tasks are held here.
    pub fn waits_only_for(&self, count: usize) -> bool {
        let state = self.inner.state();
        state.is_drained && state.held.len() == count
    }

    /// Waits until other collectors have finished trajectories, and returns their indices.
    pub async fn finished_elsewhere(&self) -> Vec<usize> {
        loop {
            let changed = self.inner.changed.notified();
            let found = std::mem::take(&mut self.inner.state().finished_elsewhere);
            if !found.is_empty() {
                return found;
            }
            changed.await;
        }
    }

    /// Reports what is not reported yet, and deletes the stream when everything is done.
    pub async fn close(&self) {
        self.upkeep.abort();
        self.inner.close().await;
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

fn run_name(plan: &Plan, shared: &SharedPlan) -> String {
    format!("{}-{}-{}-{}", plan.id.split, plan.id.iteration, shared.seed, shared.run_id)
}

/// Returns the name of a rank in the consumer group.
fn consumer(rank: Option<u32>) -> String {
    rank.map_or_else(|| "collector".to_owned(), |rank| format!("rank-{rank}"))
}

pub(super) fn rank_of(consumer: &str) -> Option<u32> {
    consumer.strip_prefix("rank-")?.parse().ok()
}

impl QueueState {
    /// The state of a collector that has perhaps finished some trajectories before.
    fn resumed(plan: &Plan) -> Self {
        let own: BTreeSet<usize> =
            plan.finished.keys().filter_map(|index| usize::try_from(*index).ok()).collect();
        let mut finished = IndexBitmap::default();
        for index in &own {
            finished.insert(*index);
        }
        Self {
            unreported: own.iter().map(|index| (*index, None)).collect(),
            own,
            finished,
            ..Self::default()
        }
    }
}

impl QueueInner {
    pub(super) fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark_finished(&self, index: usize) {
        let mut state = self.state();
        let entry = state.held.remove(&index).flatten();
        state.own.insert(index);
        state.finished.insert(index);
        state.unreported.insert(index, entry);
        drop(state);
        self.has_report.notify_one();
        self.changed.notify_waiters();
    }

    async fn is_finished_elsewhere(&self, index: usize) -> bool {
        let (is_known, is_unreachable) = {
            let state = self.state();
            let is_known = state.finished.contains(index) && !state.own.contains(&index);
            (is_known, state.unreachable_since.is_some())
        };
        is_known || (!is_unreachable && self.redis.is_finished(index).await.unwrap_or(false))
    }

    pub(super) fn record_unreachable(&self, error: &RedisConnectionError) {
        let mut state = self.state();
        state.claim_after = Some(Instant::now() + self.stale_after);
        state.has_lost_response = true;
        if state.unreachable_since.is_none() {
            state.unreachable_since = Some(Instant::now());
            tracing::warn!(
                "the work queue at {} does not answer ({error}); running episodes continue",
                self.address
            );
        }
    }

    async fn close(&self) {
        self.report_before_close().await;
        let (unreported, redundant, is_complete) = {
            let state = self.state();
            (state.unreported.len(), state.redundant, state.finished.count() >= self.total)
        };
        if unreported > 0 {
            tracing::warn!(
                "{unreported} finished trajectories could not be reported to the work queue at {}; they are safe on disk",
                self.address
            );
        }
        if redundant > 0 {
            tracing::info!(
                "{redundant} episodes were dropped because another collector had finished their tasks first"
            );
        }
        let _ = self.redis.leave().await;
        if is_complete && unreported == 0 {
            let _ = self.redis.retire().await;
        }
    }

    async fn report_before_close(&self) {
        let mut pause = FIRST_CLOSE_PAUSE;
        for _ in 0..MAX_CLOSE_ATTEMPTS {
            if self.report_all().await.is_ok() {
                return;
            }
            tokio::time::sleep(pause).await;
            pause *= 3;
        }
    }
}
