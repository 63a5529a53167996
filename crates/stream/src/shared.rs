//! What the connections of a stream share: where items are, how far the consumer has acknowledged, and whether the run goes
//! on.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use rollout::run::{Pause, StartLimit};
use serde_json::{Value, json};
use store::{
    IterationId, Journal, JournalError, SavePath,
    journal::{self, FinishedPosition, JournalReader},
    layout::acknowledged_path,
};
use tokio::sync::{mpsc, watch};

use crate::{
    acknowledged::AcknowledgedFile,
    cursor::Cursor,
    error::RequestError,
    index::{Index, Member},
    item::{Format, Message, SentTrajectory},
};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot read what the consumer of the stream has acknowledged: {0}")]
    Acknowledged(std::io::Error),
}

/// Why no further items follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Everything is collected.
    Finished,
    /// The run was stopped and can be resumed.
    Stopped,
    /// The run failed.
    Failed(String),
}

impl EndReason {
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        match self {
            Self::Failed(detail) => Some(detail),
            _ => None,
        }
    }
}

/// How far the stream is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Number of items that can be read.
    pub(crate) available: u64,
    pub(crate) acknowledged: u64,
    pub(crate) end: Option<EndReason>,
    /// Whether anybody reads or has read the stream.
    pub(crate) has_consumer: bool,
    /// Whether a consumer was told that nothing follows.
    pub(crate) is_end_sent: bool,
}

pub(crate) struct Shared {
    run: u32,
    id: IterationId,
    journal: PathBuf,
    save_path: SavePath,
    group_size: usize,
    total: usize,
    index: RwLock<Index>,
    pub(crate) progress: watch::Sender<Progress>,
    acknowledged_file: Mutex<AcknowledgedFile>,
    pub(crate) pause: Pause,
    starts: StartLimit,
}

/// What is streamed: a run and its journal.
pub struct StreamedRun {
    pub journal: Journal,
    pub id: IterationId,
    pub save_path: SavePath,
    /// The number of attempts at each task; items are groups if it is more than 1.
    pub group_size: usize,
    /// The number of trajectories of the whole run.
    pub total: usize,
    pub pause: Pause,
    pub starts: StartLimit,
}

impl Shared {
    /// Reads what the journal has so far. Returns the positions of what follows.
    pub(crate) fn open(
        run: StreamedRun,
    ) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<FinishedPosition>), StartError> {
        let StreamedRun { journal, id, save_path, group_size, total, pause, starts } = run;
        let path = journal.path().to_owned();
        // First, so that nothing is missed. What is found twice gets one place in the index.
        let following = journal.follow_finished();
        let checksum = journal::run_checksum(&path)?;
        let mut index = Index::new(group_size);
        journal::finished_positions(&path)?.iter().for_each(|finished| index.add(finished));
        let file = AcknowledgedFile::new(acknowledged_path(&path), checksum);
        let available = index.len() as u64;
        let acknowledged = file.read().map_err(StartError::Acknowledged)?.min(available);
        starts.set_acknowledged(usize::try_from(acknowledged).unwrap_or(usize::MAX));
        let shared = Self {
            run: checksum,
            id,
            journal: path,
            save_path,
            group_size: group_size.max(1),
            total: total / group_size.max(1),
            index: RwLock::new(index),
            progress: watch::Sender::new(Progress { available, acknowledged, ..Progress::default() }),
            acknowledged_file: Mutex::new(file),
            pause,
            starts,
        };
        Ok((Arc::new(shared), following))
    }

    /// Adds what finishes to the index, until the journal is closed.
    pub(crate) async fn follow(self: Arc<Self>, mut finished: mpsc::UnboundedReceiver<FinishedPosition>) {
        while let Some(position) = finished.recv().await {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.add(&position);
            let available = index.len() as u64;
            drop(index);
            self.progress.send_if_modified(|progress| {
                std::mem::replace(&mut progress.available, available) != available
            });
        }
    }

    pub(crate) fn end(&self, reason: EndReason) {
        self.progress.send_modify(|progress| progress.end = Some(reason));
    }

    pub(crate) fn cursor(&self, position: u64) -> String {
        Cursor { run: self.run, position }.to_string()
    }

    /// Returns the number of the item that a cursor names. 0 stands for the beginning.
    pub(crate) fn position_of(&self, cursor: &str) -> Result<u64, RequestError> {
        let parsed = cursor
            .parse::<Cursor>()
            .map_err(|error| RequestError::Invalid(format!("{cursor:?} is {error}")))?;
        if parsed.run != self.run {
            return Err(RequestError::OtherRun { cursor: cursor.to_owned(), run: self.run });
        }
        let available = self.progress.borrow().available;
        if parsed.position > available {
            return Err(RequestError::NotYet { cursor: cursor.to_owned(), available });
        }
        Ok(parsed.position)
    }

    /// Makes the acknowledgment of an item and all earlier ones durable. Blocks. An earlier cursor changes nothing.
    pub(crate) fn acknowledge(&self, position: u64) -> std::io::Result<()> {
        let file = self.acknowledged_file.lock().unwrap_or_else(PoisonError::into_inner);
        if position > self.progress.borrow().acknowledged {
            file.write(position)?;
            self.progress.send_modify(|progress| progress.acknowledged = position);
            self.starts.set_acknowledged(usize::try_from(position).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    /// Reads an item from the journal. Blocks.
    pub(crate) fn read_item(
        &self,
        reader: &mut Option<JournalReader>,
        position: u64,
        format: Format,
        with_images: bool,
    ) -> Result<Vec<u8>, String> {
        let members: Vec<Member> = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            index.item(position).ok_or("the item is not there any more")?.to_vec()
        };
        let reader = match reader {
            Some(reader) => reader,
            None => reader.insert(JournalReader::open(&self.journal).map_err(|error| error.to_string())?),
        };
        let mut trajectories = Vec::with_capacity(members.len());
        for member in &members {
            let trajectory = journal::read_finished_at(reader, member.offset);
            trajectories.push(trajectory.map_err(|error| error.to_string())?);
        }
        let images_of = with_images.then_some(&self.save_path);
        let cursor = self.cursor(position);
        let mut sent = trajectories.iter().map(|one| SentTrajectory::new(one, self.id, images_of));
        let message = match (self.group_size, sent.next()) {
            (1, Some(trajectory)) => Message::Trajectory { cursor, trajectory },
            (_, first) => Message::Group {
                cursor,
                group_id: trajectories.first().and_then(|one| one.metadata.group_id.as_deref()),
                trajectories: first.into_iter().chain(sent).collect(),
            },
        };
        format.encode(&message)
    }

    pub(crate) fn status(&self) -> Value {
        let Progress { available, acknowledged, end, .. } = self.progress.borrow().clone();
        let pause = self.pause.status();
        let limit = self.starts.status().map(
            |status| json!({"started": status.started, "unacknowledged": status.unacknowledged(), "limit": status.limit}),
        );
        json!({
            "run": format!("{:08x}", self.run), "split": self.id.split.as_str(), "iteration": self.id.iteration,
            "rank": self.id.rank, "items": if self.group_size > 1 { "groups" } else { "trajectories" },
            "group_size": self.group_size, "total": self.total, "available": available, "acknowledged": acknowledged,
            "acknowledged_cursor": self.cursor(acknowledged), "state": end.as_ref().map_or("collecting", EndReason::as_str),
            "start_limit": limit, "is_paused": pause.remaining.is_some(),
            "pause_seconds_left": pause.remaining.as_ref().map(Duration::as_secs_f64),
            "policy_calls_in_flight": pause.in_flight,
        })
    }
}
