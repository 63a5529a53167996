//! Several machines run one loop: rank 0 decides, the others follow its state and do their part of each phase. Every rank
//! writes a heartbeat with what it works on to the shared disk. No clock is compared between machines: a rank is dead when
//! its heartbeat has not changed for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::SavePath;
use store::durable::{self, Existing};
use store::loop_state::{DeadRank, Heartbeat, Phase};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The rank of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankId {
    pub number: usize,
    pub count: usize,
}

impl RankId {
    pub const SINGLE: Self = Self { number: 0, count: 1 };

    pub const fn is_first(self) -> bool {
        self.number == 0
    }
}

/// One attempt at a phase, by one start of the loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) run_id: String,
    pub(crate) iteration: u64,
    pub(crate) phase: Phase,
    pub(crate) attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobStatus {
    Running,
    Done,
    Failed(String),
}

/// What a rank writes again and again: its heartbeat with what it works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RankReport {
    #[serde(flatten)]
    heartbeat: Heartbeat,
    job: Option<(Job, JobStatus)>,
}

/// Why a phase cannot be completed by all ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    #[error("rank {} ({}) does not answer: no heartbeat for {seconds} s. Start it again with the same command and --resume", dead.rank, dead.host)]
    Dead { dead: DeadRank, seconds: u64 },
    #[error("rank {rank} ({host}) failed: {reason}")]
    Failed { rank: usize, host: String, reason: String },
    #[error(
        "rank {rank} has not joined the loop within {seconds} s. Start it with the same command and --rank {rank}"
    )]
    NotJoined { rank: usize, seconds: u64 },
}

/// The heartbeats of all ranks.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    pub(crate) own: RankId,
    save_path: SavePath,
    stale_after: Duration,
    job: Arc<Mutex<Option<(Job, JobStatus)>>>,
    run_id: Arc<Mutex<Option<String>>>,
}

/// When the heartbeat of a rank last changed, by our clock.
type Seen = BTreeMap<usize, (u64, Instant)>;

impl Ranks {
    pub(crate) fn new(own: RankId, save_path: SavePath, stale_after: Duration) -> Self {
        Self { own, save_path, stale_after, job: Arc::default(), run_id: Arc::default() }
    }

    pub(crate) fn report(&self, job: Job, status: JobStatus) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some((job, status));
        self.write();
    }

    /// Names the start of the loop, so that other ranks know which state is current.
    pub(crate) fn set_run_id(&self, run_id: &str) {
        *self.run_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(run_id.to_owned());
        self.write();
    }

    /// Returns the heartbeat of rank 0: its number, and the start of the loop that it runs.
    pub(crate) fn leader(&self) -> Option<(u64, Option<String>)> {
        Heartbeat::read(&self.save_path, 0).map(|heartbeat| (heartbeat.beat, heartbeat.run_id))
    }

    fn write(&self) {
        let (path, own) = (Heartbeat::path(&self.save_path, self.own.number), self.own.number);
        let heartbeat = Heartbeat {
            host: host_name(),
            process: std::process::id(),
            beat: Heartbeat::read(&self.save_path, own).map_or(0, |last| last.beat + 1),
            run_id: self.run_id.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = durable::write_json(&path, &RankReport { heartbeat, job }, Existing::Replace) {
            tracing::warn!("cannot write the heartbeat of rank {}: {error}", self.own.number);
        }
    }

    fn read(&self, rank: usize) -> Option<RankReport> {
        serde_json::from_slice(&std::fs::read(Heartbeat::path(&self.save_path, rank)).ok()?).ok()
    }

    /// Writes heartbeats until it is dropped.
    pub(crate) async fn beat(self) {
        let interval = (self.stale_after / 5).min(Heartbeat::MAX_INTERVAL);
        loop {
            self.write();
            tokio::time::sleep(interval).await;
        }
    }

    /// Returns when all other ranks have done a job, or one of them cannot.
    pub(crate) async fn others_done(&self, job: &Job) -> Result<(), RankError> {
        let (mut seen, started) = (Seen::new(), Instant::now());
        loop {
            let mut is_done = true;
            for rank in (0..self.own.count).filter(|rank| *rank != self.own.number) {
                is_done &= self.has_done(rank, job, &mut seen, started)?;
            }
            if is_done {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn has_done(&self, rank: usize, job: &Job, seen: &mut Seen, started: Instant) -> Result<bool, RankError> {
        let report = self.read(rank);
        self.check_alive(rank, report.as_ref().map(|report| &report.heartbeat), seen, started)?;
        let Some(RankReport { heartbeat, job: Some((reported, status)) }) = report else { return Ok(false) };
        let host = heartbeat.host;
        match status {
            _ if reported != *job => Ok(false),
            JobStatus::Running => Ok(false),
            JobStatus::Done => Ok(true),
            JobStatus::Failed(reason) => Err(RankError::Failed { rank, host, reason }),
        }
    }

    fn check_alive(
        &self,
        rank: usize,
        heartbeat: Option<&Heartbeat>,
        seen: &mut Seen,
        started: Instant,
    ) -> Result<(), RankError> {
        let seconds = self.stale_after.as_secs();
        let Some(heartbeat) = heartbeat else {
            let is_late = started.elapsed() > self.stale_after;
            return if is_late { Err(RankError::NotJoined { rank, seconds }) } else { Ok(()) };
        };
        let last = seen.entry(rank).or_insert((heartbeat.beat, Instant::now()));
        if last.0 != heartbeat.beat {
            *last = (heartbeat.beat, Instant::now());
        }
        if last.1.elapsed() > self.stale_after {
            let dead = DeadRank { rank, host: heartbeat.host.clone() };
            return Err(RankError::Dead { dead, seconds });
        }
        Ok(())
    }

    /// Returns the error of the first rank that dies. Never returns while all live.
    pub(crate) async fn watch(&self) -> RankError {
        self.watch_ranks(0..self.own.count).await
    }

    /// Returns when rank 0 dies.
    pub(crate) async fn watch_leader(&self) -> RankError {
        self.watch_ranks(0..1).await
    }

    async fn watch_ranks(&self, ranks: std::ops::Range<usize>) -> RankError {
        let (mut seen, started) = (Seen::new(), Instant::now());
        loop {
            for rank in ranks.clone().filter(|rank| *rank != self.own.number) {
                let heartbeat = Heartbeat::read(&self.save_path, rank);
                if let Err(error) = self.check_alive(rank, heartbeat.as_ref(), &mut seen, started) {
                    return error;
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(attempt: u32) -> Job {
        Job { run_id: "run".into(), iteration: 1, phase: Phase::Train, attempt }
    }

    fn ranks(folder: &std::path::Path, number: usize) -> Ranks {
        Ranks::new(RankId { number, count: 2 }, SavePath::new(folder), Duration::from_millis(300))
    }

    #[tokio::test]
    async fn only_the_current_attempt_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (ranks(folder.path(), 0), ranks(folder.path(), 1));
        second.report(job(0), JobStatus::Failed("no memory".into()));
        let error = first.others_done(&job(0)).await.unwrap_err();
        assert!(matches!(&error, RankError::Failed { rank: 1, reason, .. } if reason == "no memory"));
        let waiting = tokio::spawn({
            let first = first.clone();
            async move { first.others_done(&job(1)).await }
        });
        let beating = tokio::spawn(second.clone().beat());
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(!waiting.is_finished(), "the failure of an earlier attempt does not count");
        second.report(job(1), JobStatus::Done);
        waiting.await.unwrap().unwrap();
        beating.abort();
    }

    #[tokio::test]
    async fn dead_and_absent_ranks_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let first = ranks(folder.path(), 0);
        let error = first.others_done(&job(0)).await.unwrap_err().to_string();
        assert!(error.contains("rank 1 has not joined"), "{error}");
        ranks(folder.path(), 1).report(job(0), JobStatus::Running);
        let error = first.others_done(&job(0)).await.unwrap_err().to_string();
        assert!(error.contains("rank 1 (") && error.contains("does not answer"), "{error}");
        assert!(matches!(first.watch().await, RankError::Dead { .. }));
    }
}
