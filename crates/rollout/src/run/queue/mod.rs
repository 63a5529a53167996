//! One queue for all collectors of a run, in Redis: each takes the next task when it has room, so a slow or dead one
//! holds nobody up. What counts is on disk; the queue only says who works on what, and can be made again from there.

mod bits;
mod disk;
mod ledger;
mod tend;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bits::Bits;
use disk::Disk;
use ledger::{Entry, Header, Ledger};
use net::redis::{RedisConnection, RedisConnectionError, redact_password};
use proto::trajectory::Task;
use tokio::{
    sync::{Mutex as Turn, Notify},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    plan::{Plan, SharedPlan},
    run::Stop,
};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that is away for so many times as long as a collector may be silent is not waited for any more.
const PATIENCE: u32 = 15;
/// How often the last reports are tried when a run ends.
const LAST_TRIES: u32 = 6;

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(
        "the work queue at {address} cannot be used: {source}. Start Redis there, or correct env_config.work_queue"
    )]
    Unusable { address: String, source: RedisConnectionError },
    #[error(
        "the work queue at {address} holds another plan for this run: its digest is {there}, ours is {here}. Start all \
         collectors with the same configuration, or a new run with --fresh"
    )]
    Disagree { address: String, there: String, here: String },
    #[error("cannot read what the ranks have collected: {0}")]
    Disk(String),
    #[error("{0}")]
    NoPlan(&'static str),
}

/// Sees whether the queue's server answers, before a run begins.
pub async fn contact(address: &str) -> Result<(), QueueError> {
    let unusable = |source| QueueError::Unusable { address: redact_password(address), source };
    RedisConnection::to(address)
        .map_err(unusable)?
        .run::<()>(&net::redis::cmd("PING"))
        .await
        .map_err(unusable)
}

/// A collector's end of the queue. Dropped, it gives no more signs of life.
pub struct WorkQueue {
    inner: Arc<Inner>,
    tending: JoinHandle<()>,
}

struct Inner {
    ledger: Ledger,
    address: String,
    digest: String,
    total: usize,
    /// By trajectory index. Kept, because a task may come back when its collector dies.
    tasks: HashMap<usize, Task>,
    disk: Disk,
    stale: Duration,
    state: Mutex<State>,
    /// One asks at a time, however many wait: so nobody's patience becomes a storm.
    turn: Turn<()>,
    /// Somebody has news for those who wait.
    news: Notify,
    /// There is something to report.
    report: Notify,
}

#[derive(Default)]
struct State {
    generation: String,
    /// What was taken before an interruption, to be taken up first.
    left_over: VecDeque<Entry>,
    /// Being collected here. Without an entry when the stream was made again meanwhile.
    held: HashMap<usize, Option<String>>,
    /// The stream had nothing left when it was last looked at.
    drained: bool,
    /// Durable here.
    own: BTreeSet<usize>,
    /// Durable here, and Redis does not know it yet.
    unreported: BTreeMap<usize, Option<String>>,
    /// Durable somewhere.
    done: Bits,
    /// Done elsewhere since somebody last asked.
    elsewhere: Vec<usize>,
    /// Collected here although another was first.
    late: usize,
    away_since: Option<Instant>,
    /// An answer was lost: something may have been given to us that we do not know of.
    unsure: bool,
    claims_after: Option<Instant>,
}

impl WorkQueue {
    /// Joins the queue of a run, filling it if nobody has.
    pub async fn open(address: &str, plan: &Plan, stale: Duration) -> Result<Self, QueueError> {
        let shared = plan.shared.as_ref().ok_or(QueueError::NoPlan(
            "the journal to resume is of a run without a work queue; resume it without env_config.work_queue",
        ))?;
        let shown = redact_password(address);
        let link = RedisConnection::to(address)
            .map_err(|source| QueueError::Unusable { address: shown.clone(), source })?;
        let index = |task: &Task| usize::try_from(task.trajectory_index).unwrap_or(0);
        let own: BTreeSet<usize> =
            plan.finished.keys().filter_map(|index| usize::try_from(*index).ok()).collect();
        let mut state =
            State { unreported: own.iter().map(|index| (*index, None)).collect(), own, ..State::default() };
        state.own.iter().for_each(|index| _ = state.done.insert(*index));
        let inner = Arc::new(Inner {
            ledger: Ledger::new(link, &run_name(plan, shared), &collector(plan.id.rank)),
            address: shown,
            digest: shared.digest(),
            total: shared.total(),
            tasks: plan.tasks.iter().map(|task| (index(task), task.clone())).collect(),
            disk: Disk { save_path: plan.save_path.clone(), id: plan.id, run_id: shared.run_id.clone() },
            stale,
            state: Mutex::new(state),
            turn: Turn::new(()),
            news: Notify::new(),
            report: Notify::new(),
        });
        inner.join().await?;
        let tending = tokio::spawn(tend::tend(Arc::clone(&inner)));
        Ok(Self { inner, tending })
    }

    /// The next task for this collector; waits while others may still die. `None` when all are done, or the run stops.
    pub async fn next(&self, stop: &Stop) -> Option<Task> {
        tokio::select! {
            biased;
            () = stop.soft.cancelled() => None,
            () = stop.hard.cancelled() => None,
            task = self.inner.next() => task,
        }
    }

    /// A trajectory is durable here.
    pub fn finished(&self, index: usize) {
        self.inner.finished(index);
    }

    /// Whether another collector has made this one durable, so that ours is not needed. In doubt it has not.
    pub async fn is_done_elsewhere(&self, index: usize) -> bool {
        self.inner.is_done_elsewhere(index).await
    }

    /// This one was collected here for nothing.
    pub fn drop_late(&self, index: usize) {
        let mut state = self.inner.state();
        state.late += 1;
        let entry = state.held.remove(&index).flatten();
        state.unreported.insert(index, entry);
        drop(state);
        self.inner.report.notify_one();
    }

    pub fn total(&self) -> usize {
        self.inner.total
    }

    /// How many are durable, wherever.
    pub fn done(&self) -> usize {
        self.inner.state().done.count()
    }

    /// There is nothing left to take, and all that is on its way here are these many.
    pub fn waits_only_for(&self, count: usize) -> bool {
        let state = self.inner.state();
        state.drained && state.held.len() == count
    }

    /// Waits for news and tells which were done elsewhere.
    pub async fn elsewhere(&self) -> Vec<usize> {
        loop {
            let news = self.inner.news.notified();
            let found = std::mem::take(&mut self.inner.state().elsewhere);
            if !found.is_empty() {
                return found;
            }
            news.await;
        }
    }

    /// Reports what is left to report, and takes the stream away when everything is done.
    pub async fn close(&self) {
        self.tending.abort();
        self.inner.close().await;
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        self.tending.abort();
    }
}

fn run_name(plan: &Plan, shared: &SharedPlan) -> String {
    format!("{}-{}-{}-{}", plan.id.split, plan.id.iteration, shared.seed, shared.run_id)
}

/// How a rank is called in the stream's group.
fn collector(rank: Option<u32>) -> String {
    rank.map_or_else(|| "collector".to_owned(), |rank| format!("rank-{rank}"))
}

fn rank_of(collector: &str) -> Option<u32> {
    collector.strip_prefix("rank-")?.parse().ok()
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Option<Task> {
        let _turn = self.turn.lock().await;
        let mut pause = FIRST_PAUSE;
        loop {
            let found = match self.left_over() {
                Some(entry) => Ok(Some(entry)),
                None if self.state().done.count() >= self.total => return None,
                None => self.look_for_more().await,
            };
            match found {
                Ok(Some((entry, index))) => match self.hold(entry, index).await {
                    Some(task) => return Some(task),
                    None => continue,
                },
                Ok(None) => {}
                // The stream is gone: because all is done, or because the server has lost its memory.
                Err(error) if error.code() == Some("NOGROUP") => _ = self.beat().await,
                Err(error) => self.note_away(&error),
            }
            if self.is_given_up() {
                tracing::error!(
                    "the work queue at {} does not come back; no more tasks are taken",
                    self.address
                );
                return None;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.news.notified() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE).min(self.stale);
        }
    }

    fn left_over(&self) -> Option<Entry> {
        self.state().left_over.pop_front()
    }

    /// What nobody has had, else what a dead collector had.
    async fn look_for_more(&self) -> Result<Option<Entry>, RedisConnectionError> {
        if self.state().unsure {
            self.ask_what_is_ours().await?;
            if let Some(entry) = self.left_over() {
                return Ok(Some(entry));
            }
        }
        let taken = self.ledger.take().await?;
        self.state().drained = taken.is_none();
        if taken.is_some() {
            return Ok(taken);
        }
        // After an outage everybody else gets the time to give a sign of life first.
        if self.state().claims_after.is_some_and(|after| Instant::now() < after) {
            return Ok(None);
        }
        let Some((entry, owner)) = self.ledger.claim(self.stale).await? else { return Ok(None) };
        tracing::info!("{owner} gives no sign of life; task {} is taken over from it", entry.1);
        // It may have died between writing a trajectory down and saying so.
        let disk = self.disk.clone();
        let read = tokio::task::spawn_blocking(move || disk.read(Some(rank_of(&owner)))).await;
        if let Ok(Ok(found)) = read {
            let mut state = self.state();
            for index in found.finished.into_iter().filter(|index| *index < self.total) {
                if state.done.insert(index) {
                    state.elsewhere.push(index);
                    state.unreported.entry(index).or_insert(None);
                }
            }
        }
        Ok(Some(entry))
    }

    /// What the stream holds us to, and we do not work on.
    async fn ask_what_is_ours(&self) -> Result<(), RedisConnectionError> {
        self.state().unsure = false;
        let asked = self.ledger.unacknowledged().await;
        let mut state = self.state();
        match asked {
            Ok(ours) => {
                let is_known = |index: &usize| state.held.contains_key(index) || state.own.contains(index);
                let unknown: Vec<Entry> = ours.into_iter().filter(|(_, index)| !is_known(index)).collect();
                state.left_over = unknown.into();
                Ok(())
            }
            Err(error) => {
                state.unsure = true;
                Err(error)
            }
        }
    }

    /// The task behind an entry, unless it is done or on its way here already.
    async fn hold(&self, entry: String, index: usize) -> Option<Task> {
        let known = self.state().done.contains(index);
        let done = known || self.ledger.is_done(index).await.unwrap_or(false);
        let mut state = self.state();
        if let Some(held) = state.held.get_mut(&index) {
            *held = Some(entry);
            return None;
        }
        let task = self.tasks.get(&index).filter(|_| !done).cloned();
        if task.is_some() {
            state.held.insert(index, Some(entry));
        } else {
            state.unreported.insert(index, Some(entry));
            drop(state);
            self.report.notify_one();
        }
        task
    }

    fn finished(&self, index: usize) {
        let mut state = self.state();
        let entry = state.held.remove(&index).flatten();
        state.own.insert(index);
        state.done.insert(index);
        state.unreported.insert(index, entry);
        drop(state);
        self.report.notify_one();
        self.news.notify_waiters();
    }

    async fn is_done_elsewhere(&self, index: usize) -> bool {
        let (known, away) = {
            let state = self.state();
            (state.done.contains(index) && !state.own.contains(&index), state.away_since.is_some())
        };
        known || (!away && self.ledger.is_done(index).await.unwrap_or(false))
    }

    fn note_away(&self, error: &RedisConnectionError) {
        let mut state = self.state();
        state.claims_after = Some(Instant::now() + self.stale);
        state.unsure = true;
        if state.away_since.is_none() {
            state.away_since = Some(Instant::now());
            tracing::warn!("the work queue at {} does not answer ({error}); what runs goes on", self.address);
        }
    }

    fn is_given_up(&self) -> bool {
        let gone = self.state().away_since.map(|since| since.elapsed());
        gone.is_some_and(|gone| gone > self.stale * PATIENCE)
    }

    async fn close(&self) {
        let mut pause = FIRST_PAUSE;
        for _ in 0..LAST_TRIES {
            if self.report_all().await.is_ok() {
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 3;
        }
        let (left, late, complete) = {
            let state = self.state();
            (state.unreported.len(), state.late, state.done.count() >= self.total)
        };
        if left > 0 {
            tracing::warn!(
                "the work queue at {} could not be told of {left} finished trajectories; they are safe on disk",
                self.address
            );
        }
        if late > 0 {
            tracing::info!(
                "{late} episodes were dropped here because another collector had finished them first"
            );
        }
        let _ = self.ledger.leave().await;
        if complete && left == 0 {
            let _ = self.ledger.retire().await;
        }
    }
}
