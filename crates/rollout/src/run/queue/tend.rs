//! What a collector does for the queue while it works: signs of life, reports of what is durable, and filling the
//! stream again when the server has lost it.

use std::{sync::Arc, time::Duration};

use net::redis::RedisConnectionError;
use tokio::time::Instant;

use super::{Header, Inner, QueueError};

const SHORTEST_BEAT: Duration = Duration::from_millis(200);
/// Also how late a collector learns that the others have done the rest.
const LONGEST_BEAT: Duration = Duration::from_secs(2);
const REPORTED_AT_ONCE: usize = 512;
/// Reports come in bursts; one covers them.
const GATHER: Duration = Duration::from_millis(20);

pub(super) async fn tend(inner: Arc<Inner>) {
    let beat = (inner.stale / 4).clamp(SHORTEST_BEAT, LONGEST_BEAT);
    let mut next = Instant::now();
    loop {
        let tended = if Instant::now() >= next {
            next = Instant::now() + beat;
            inner.beat().await
        } else {
            inner.report_all().await.map_err(QueueError::from_link)
        };
        match tended {
            Ok(()) => inner.note_back(),
            Err(QueueError::Unusable { source, .. }) => inner.note_away(&source),
            Err(error) => tracing::warn!("{error}"),
        }
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = inner.report.notified() => tokio::time::sleep(GATHER).await,
        }
    }
}

impl QueueError {
    fn from_link(source: RedisConnectionError) -> Self {
        Self::Unusable { address: String::new(), source }
    }
}

impl Inner {
    /// Finds the stream or fills it, and takes up what this collector had before it was interrupted.
    pub(super) async fn join(&self) -> Result<(), QueueError> {
        let unusable = |source| QueueError::Unusable { address: self.address.clone(), source };
        let header = match self.ledger.look().await.map_err(unusable)? {
            Some(header) => header,
            None => self.fill().await?,
        };
        if header.digest != self.digest {
            let address = self.address.clone();
            return Err(QueueError::Disagree { address, there: header.digest, here: self.digest.clone() });
        }
        self.state().generation = header.generation;
        let news = self.ledger.beat(self.stale).await.map_err(unusable)?;
        self.learn(&news.done);
        self.report_all().await.map_err(unusable)?;
        // A stream that was taken away because everything is done has no group to ask.
        if self.state().done.count() < self.total {
            let left_over = self.ledger.unacknowledged().await.map_err(unusable)?;
            self.state().left_over.extend(left_over);
        }
        Ok(())
    }

    /// Fills the stream from what is on disk: what nobody has begun first, since the rest may be on its way.
    async fn fill(&self) -> Result<Header, QueueError> {
        let disk = self.disk.clone();
        let read = tokio::task::spawn_blocking(move || disk.read(None)).await;
        let found = read.map_err(|error| QueueError::Disk(error.to_string()))?.map_err(QueueError::Disk)?;
        let mut done = found.finished;
        done.extend(&self.state().own);
        done.retain(|index| *index < self.total);
        let (begun, fresh): (Vec<usize>, Vec<usize>) = (0..self.total)
            .filter(|index| !done.contains(index))
            .partition(|index| found.begun.contains(index));
        let todo = [fresh, begun].concat();
        let done: Vec<usize> = done.into_iter().collect();
        let generation = uuid::Uuid::new_v4().simple().to_string();
        let wanted = Header { digest: self.digest.clone(), generation };
        let unusable = |source| QueueError::Unusable { address: self.address.clone(), source };
        let header = self.ledger.fill(&wanted, &done, &todo).await.map_err(unusable)?;
        tracing::info!("the work queue at {} has {} tasks to collect", self.address, todo.len());
        Ok(header.unwrap_or(wanted))
    }

    pub(super) async fn beat(&self) -> Result<(), QueueError> {
        let news = self.ledger.beat(self.stale).await.map_err(QueueError::from_link)?;
        self.learn(&news.done);
        let header = match news.header {
            Some(header) => header,
            None if self.state().done.count() >= self.total => return Ok(()),
            None => {
                tracing::warn!("the work queue at {} has lost its memory; filling it again", self.address);
                self.fill().await?
            }
        };
        self.follow(header.generation);
        self.report_all().await.map_err(QueueError::from_link)
    }

    /// A stream that was made again knows nothing of what is finished or held here.
    fn follow(&self, generation: String) {
        let mut state = self.state();
        if state.generation == generation {
            return;
        }
        state.generation = generation;
        state.left_over.clear();
        state.held.values_mut().for_each(|entry| *entry = None);
        state.unreported = state.own.iter().map(|index| (*index, None)).collect();
    }

    fn learn(&self, done: &[u8]) {
        let mut state = self.state();
        let new = state.done.merge(done, self.total);
        state.elsewhere.extend(new.iter().copied());
        drop(state);
        if !new.is_empty() {
            self.news.notify_waiters();
        }
    }

    pub(super) async fn report_all(&self) -> Result<(), RedisConnectionError> {
        loop {
            let some: Vec<(usize, Option<String>)> = {
                let state = self.state();
                let some = state.unreported.iter().take(REPORTED_AT_ONCE);
                some.map(|(index, entry)| (*index, entry.clone())).collect()
            };
            if some.is_empty() {
                return Ok(());
            }
            self.ledger.report(&some).await?;
            let mut state = self.state();
            for (index, entry) in some {
                // Another entry for it may have come meanwhile.
                if state.unreported.get(&index) == Some(&entry) {
                    state.unreported.remove(&index);
                }
            }
        }
    }

    fn note_back(&self) {
        if let Some(since) = self.state().away_since.take() {
            tracing::info!(
                "the work queue at {} answers again after {} s",
                self.address,
                since.elapsed().as_secs()
            );
            self.news.notify_waiters();
        }
    }
}
