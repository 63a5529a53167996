//! Takes tasks from the queue: first those of an interrupted run of this collector, then untaken ones, then those of
//! collectors that died.

use std::time::Duration;

use net::redis::RedisConnectionError;
use proto::trajectory::Task;
use tokio::time::Instant;

use super::{
    redis_queue::Entry,
    work_queue::{QueueInner, rank_of},
};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// A Redis server that has not answered for this many times `stale_after` is given up.
const GIVE_UP_FACTOR: u32 = 15;

impl QueueInner {
    pub(super) async fn next(&self) -> Option<Task> {
        let _lock = self.take_lock.lock().await;
        let mut pause = FIRST_PAUSE;
        loop {
            let found = match self.pop_left_over() {
                Some(entry) => Ok(Some(entry)),
                None if self.state().finished.count() >= self.total => return None,
                None => self.take_entry().await,
            };
            match found {
                Ok(Some((entry, index))) => match self.hold(entry, index).await {
                    Some(task) => return Some(task),
                    None => continue,
                },
                Ok(None) => {}
                // The stream is gone, because everything is done or because the server has lost its data.
                Err(error) if error.code() == Some("NOGROUP") => _ = self.heartbeat().await,
                Err(error) => self.record_unreachable(&error),
            }
            if self.is_given_up() {
                tracing::error!(
                    "the work queue at {} has not answered for too long; no more tasks are taken",
                    self.address
                );
                return None;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.changed.notified() => {}
            }
            pause = (pause * 2).min(MAX_PAUSE).min(self.stale_after);
        }
    }

    fn pop_left_over(&self) -> Option<Entry> {
        self.state().left_over.pop_front()
    }

    /// Takes an entry that no collector has taken, or else one of a dead collector.
    async fn take_entry(&self) -> Result<Option<Entry>, RedisConnectionError> {
        if self.state().has_lost_response {
            self.recover_lost_entries().await?;
            if let Some(entry) = self.pop_left_over() {
                return Ok(Some(entry));
            }
        }
        let taken = self.redis.take().await?;
        self.state().is_drained = taken.is_none();
        if taken.is_some() {
            return Ok(taken);
        }
        // After an outage, the other collectors need time for a heartbeat before they count as dead.
        if self.state().claim_after.is_some_and(|after| Instant::now() < after) {
            return Ok(None);
        }
        let Some((entry, owner)) = self.redis.claim(self.stale_after).await? else { return Ok(None) };
        tracing::info!("{owner} has no heartbeat; its task {} is taken over", entry.1);
        self.read_files_of(rank_of(&owner)).await;
        Ok(Some(entry))
    }

    /// Reads what a dead collector saved: it may have died between saving a trajectory and reporting it.
    async fn read_files_of(&self, rank: Option<u32>) {
        let files = self.files.clone();
        let Ok(Ok(found)) = tokio::task::spawn_blocking(move || files.read_rank(rank)).await else { return };
        let mut state = self.state();
        for index in found.finished.into_iter().filter(|index| *index < self.total) {
            if state.finished.insert(index) {
                state.finished_elsewhere.push(index);
                state.unreported.entry(index).or_insert(None);
            }
        }
    }

    /// Finds entries that Redis has assigned to this collector and that it does not work on.
    async fn recover_lost_entries(&self) -> Result<(), RedisConnectionError> {
        self.state().has_lost_response = false;
        let entries = self.redis.unacknowledged().await;
        let mut state = self.state();
        match entries {
            Ok(entries) => {
                let is_known = |index: &usize| state.held.contains_key(index) || state.own.contains(index);
                let unknown: Vec<Entry> = entries.into_iter().filter(|(_, index)| !is_known(index)).collect();
                state.left_over = unknown.into();
                Ok(())
            }
            Err(error) => {
                state.has_lost_response = true;
                Err(error)
            }
        }
    }

    /// Returns the task of an entry, unless it is finished or already running here.
    async fn hold(&self, entry: String, index: usize) -> Option<Task> {
        let is_known = self.state().finished.contains(index);
        let is_finished = is_known || self.redis.is_finished(index).await.unwrap_or(false);
        let mut state = self.state();
        if let Some(held) = state.held.get_mut(&index) {
            *held = Some(entry);
            return None;
        }
        let task = self.tasks.get(&index).filter(|_| !is_finished).cloned();
        if task.is_some() {
            state.held.insert(index, Some(entry));
        } else {
            state.unreported.insert(index, Some(entry));
            drop(state);
            self.has_report.notify_one();
        }
        task
    }

    fn is_given_up(&self) -> bool {
        let unreachable = self.state().unreachable_since.map(|since| since.elapsed());
        unreachable.is_some_and(|time| time > self.stale_after * GIVE_UP_FACTOR)
    }
}
