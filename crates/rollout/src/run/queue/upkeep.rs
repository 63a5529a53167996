//! The background task of a collector: sends heartbeats, reports finished trajectories, and refills the stream when the
//! Redis server has lost its data.

use std::{sync::Arc, time::Duration};

use net::redis::RedisConnectionError;
use tokio::time::Instant;

use super::{QueueError, redis_queue::Header, work_queue::QueueInner};

const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);
/// Also the delay after which a collector learns that the others have finished the rest.
const MAX_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
const MAX_REPORT_BATCH: usize = 512;
/// Waits for more trajectories to finish, so that one report covers a burst.
const BATCH_DELAY: Duration = Duration::from_millis(20);

pub(super) async fn run(inner: Arc<QueueInner>) {
    let interval = (inner.stale_after / 4).clamp(MIN_HEARTBEAT_INTERVAL, MAX_HEARTBEAT_INTERVAL);
    let mut next_heartbeat = Instant::now();
    loop {
        let result = if Instant::now() >= next_heartbeat {
            next_heartbeat = Instant::now() + interval;
            inner.heartbeat().await
        } else {
            inner.report_all().await.map_err(|source| inner.unusable(source))
        };
        match result {
            Ok(()) => inner.record_reachable(),
            Err(QueueError::Unusable { source, .. }) => inner.record_unreachable(&source),
            Err(error) => tracing::warn!("{error}"),
        }
        tokio::select! {
            () = tokio::time::sleep_until(next_heartbeat) => {}
            () = inner.has_report.notified() => tokio::time::sleep(BATCH_DELAY).await,
        }
    }
}

impl QueueInner {
    fn unusable(&self, source: RedisConnectionError) -> QueueError {
        QueueError::Unusable { address: self.address.clone(), source }
    }

    /// Finds the stream or fills it, and continues with what this collector had taken before it was interrupted.
    pub(super) async fn join(&self) -> Result<(), QueueError> {
        let unusable = |source| self.unusable(source);
        let header = match self.redis.header().await.map_err(unusable)? {
            Some(header) => header,
            None => self.fill().await?,
        };
        if header.digest != self.digest {
            let address = self.address.clone();
            return Err(QueueError::PlanMismatch {
                address,
                there: header.digest,
                here: self.digest.clone(),
            });
        }
        self.state().generation = header.generation;
        let status = self.redis.heartbeat(self.stale_after).await.map_err(unusable)?;
        self.merge_finished(&status.finished);
        self.report_all().await.map_err(unusable)?;
        // When everything is done, the stream is deleted and has no consumer group to read from.
        if self.state().finished.count() < self.total {
            let left_over = self.redis.unacknowledged().await.map_err(unusable)?;
            self.state().left_over.extend(left_over);
        }
        Ok(())
    }

    /// Fills the stream from the disk. Tasks that no collector has started come first, because the others may be running.
    async fn fill(&self) -> Result<Header, QueueError> {
        let files = self.files.clone();
        let read = tokio::task::spawn_blocking(move || files.read_all()).await;
        let found = read.map_err(|error| QueueError::Disk(error.to_string()))?.map_err(QueueError::Disk)?;
        let mut finished = found.finished;
        finished.extend(&self.state().own);
        finished.retain(|index| *index < self.total);
        let (started, new): (Vec<usize>, Vec<usize>) = (0..self.total)
            .filter(|index| !finished.contains(index))
            .partition(|index| found.started.contains(index));
        let pending = [new, started].concat();
        let finished: Vec<usize> = finished.into_iter().collect();
        let generation = uuid::Uuid::new_v4().simple().to_string();
        let wanted = Header { digest: self.digest.clone(), generation };
        let header = self.redis.fill(&wanted, &finished, &pending).await;
        let header = header.map_err(|source| self.unusable(source))?;
        tracing::info!("the work queue at {} has {} tasks to collect", self.address, pending.len());
        Ok(header.unwrap_or(wanted))
    }

    pub(super) async fn heartbeat(&self) -> Result<(), QueueError> {
        let unusable = |source| self.unusable(source);
        let status = self.redis.heartbeat(self.stale_after).await.map_err(unusable)?;
        self.merge_finished(&status.finished);
        let header = match status.header {
            Some(header) => header,
            None if self.state().finished.count() >= self.total => return Ok(()),
            None => {
                tracing::warn!("the work queue at {} has lost its data; filling it again", self.address);
                self.fill().await?
            }
        };
        self.follow_generation(header.generation);
        self.report_all().await.map_err(unusable)
    }

    /// After a refill, forgets the old entries and reports everything finished here again.
    fn follow_generation(&self, generation: String) {
        let mut state = self.state();
        if state.generation == generation {
            return;
        }
        state.generation = generation;
        state.left_over.clear();
        state.held.values_mut().for_each(|entry| *entry = None);
        state.unreported = state.own.iter().map(|index| (*index, None)).collect();
    }

    /// Adds what other collectors have finished.
    fn merge_finished(&self, bitmap: &[u8]) {
        let mut state = self.state();
        let new = state.finished.merge(bitmap, self.total);
        state.finished_elsewhere.extend(new.iter().copied());
        drop(state);
        if !new.is_empty() {
            self.changed.notify_waiters();
        }
    }

    pub(super) async fn report_all(&self) -> Result<(), RedisConnectionError> {
        loop {
            let batch: Vec<(usize, Option<String>)> = {
                let state = self.state();
                let batch = state.unreported.iter().take(MAX_REPORT_BATCH);
                batch.map(|(index, entry)| (*index, entry.clone())).collect()
            };
            if batch.is_empty() {
                return Ok(());
            }
            self.redis.report(&batch).await?;
            let mut state = self.state();
            for (index, entry) in batch {
                // Another entry for the same task may have arrived meanwhile and still needs a report.
                if state.unreported.get(&index) == Some(&entry) {
                    state.unreported.remove(&index);
                }
            }
        }
    }

    fn record_reachable(&self) {
        if let Some(since) = self.state().unreachable_since.take() {
            tracing::info!(
                "the work queue at {} answers again after {} s",
                self.address,
                since.elapsed().as_secs()
            );
            self.changed.notify_waiters();
        }
    }
}
