//! Events of a run. Every stage of an episode announces what happens; the run's state, and through it the progress bar, the
//! watchdog and the monitor, only listen and never block an episode.

use std::{path::PathBuf, sync::Arc, time::Duration};

use client::farm::LiveUrl;
use proto::{network::NetworkSummary, trajectory::Outcome};
use tokio::time::Instant;

use super::start_limit::StartStatus;

use super::state::TaskInfo;

/// The stage an episode is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// In the queue.
    NotStarted,
    /// Waiting for a browser.
    Allocate,
    Navigate,
    Metadata,
    Screenshot,
    AcTree,
    Policy,
    Execute,
    Release,
    /// Being judged.
    Reward,
    /// Being written to disk.
    Save,
    Finished,
    Failed,
}

impl Stage {
    pub const ALL: [Self; 13] = [
        Self::NotStarted,
        Self::Allocate,
        Self::Navigate,
        Self::Metadata,
        Self::Screenshot,
        Self::AcTree,
        Self::Policy,
        Self::Execute,
        Self::Release,
        Self::Reward,
        Self::Save,
        Self::Finished,
        Self::Failed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Allocate => "allocate",
            Self::Navigate => "navigate",
            Self::Metadata => "metadata",
            Self::Screenshot => "screenshot",
            Self::AcTree => "ac_tree",
            Self::Policy => "policy",
            Self::Execute => "execute",
            Self::Release => "release",
            Self::Reward => "reward",
            Self::Save => "save",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }

    /// Returns the letter that the monitor shows for the stage.
    pub const fn letter(self) -> char {
        match self {
            Self::NotStarted => 'N',
            Self::Allocate => 'W',
            Self::Navigate => 'n',
            Self::Metadata => 'm',
            Self::Screenshot => 's',
            Self::AcTree => 't',
            Self::Policy => 'a',
            Self::Execute | Self::Release => 'e',
            Self::Reward | Self::Save => 'r',
            Self::Finished => 'F',
            Self::Failed => 'X',
        }
    }

    /// Returns what an episode in this stage waits for.
    pub const fn waits_for(self) -> &'static str {
        match self {
            Self::NotStarted => "its turn",
            Self::Policy => "the policy",
            Self::Reward => "the judge",
            Self::Save => "the disk",
            Self::Finished | Self::Failed => "nothing",
            _ => "a browser",
        }
    }

    /// Returns whether no other stage follows.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Failed)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A task joined a run that has no plan.
    TaskAdded {
        task: Box<TaskInfo>,
    },
    /// An episode entered a stage.
    Stage {
        index: usize,
        step: usize,
        stage: Stage,
    },
    /// An episode has acquired or released its browser; `live_url` is where a person can watch it.
    BrowserChanged {
        index: usize,
        live_url: Option<LiveUrl>,
    },
    /// The farm reported what it recorded or replayed of an episode.
    NetworkReported {
        index: usize,
        summary: Box<NetworkSummary>,
    },
    /// A stage of some episode ended after this duration.
    StageTimed {
        stage: Stage,
        duration: Duration,
    },
    /// The agent was shown a page; its screenshot is on disk.
    Observed {
        index: usize,
        url: String,
        screenshot: PathBuf,
    },
    /// The policy chose the next action.
    Decided {
        index: usize,
        action: String,
        thought: String,
    },
    StepDone {
        index: usize,
    },
    /// An operation of this stage failed. The episode may go on or be retried.
    StageFailed {
        index: usize,
        stage: Stage,
        reason: String,
    },
    /// The episode was lost to infrastructure and starts again.
    Retried {
        index: usize,
        attempt: u32,
        reason: String,
    },
    /// Another collector of the run has saved this trajectory.
    FinishedElsewhere {
        index: usize,
    },
    /// Policy calls are paused, until this moment at most.
    Paused {
        until: Instant,
    },
    /// The pause has ended.
    Resumed,
    /// No episode starts until the consumer of the stream acknowledges more, or episodes start again.
    StartsHeld(Option<StartStatus>),
    /// The trajectory is collected, judged and durable.
    Finished {
        index: usize,
        outcome: Outcome,
        steps: usize,
    },
}

pub trait Listener: Send + Sync {
    /// Called on the task in which the event happens, so it must return quickly.
    fn on_event(&self, event: &Event);
}

/// Passes events to all listeners. Cheap to clone.
#[derive(Clone, Default)]
pub struct Announcer(Arc<[Arc<dyn Listener>]>);

impl Announcer {
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Self {
        Self(listeners.into())
    }

    pub fn announce(&self, event: &Event) {
        for listener in self.0.iter() {
            listener.on_event(event);
        }
    }
}
