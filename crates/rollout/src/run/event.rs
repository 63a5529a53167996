//! What a run says about itself while it goes on. Every stage announces; progress bar, watchdog, metrics and
//! monitor only listen, and nobody waits for them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use proto::trajectory::Outcome;

/// What an episode is doing.
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
    /// Being written down.
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

    /// The letter a monitor shows.
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

    /// On whom an episode in this stage waits.
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

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An episode went on to its next stage.
    Stage {
        index: usize,
        step: usize,
        stage: Stage,
    },
    /// A stage took this long.
    Took {
        stage: Stage,
        time: Duration,
    },
    /// The agent sees a page; its picture is on disk.
    Seen {
        index: usize,
        url: String,
        picture: PathBuf,
    },
    /// The agent has decided what to do.
    Decided {
        index: usize,
        action: String,
        thought: String,
    },
    StepDone {
        index: usize,
    },
    /// Something went wrong and is being tried again.
    Trouble {
        index: usize,
        stage: Stage,
        why: String,
    },
    /// The episode was lost to infrastructure and starts afresh.
    Retried {
        index: usize,
        attempt: u32,
        why: String,
    },
    /// Another collector of the run has made it durable.
    Elsewhere {
        index: usize,
    },
    /// Collected, judged and durable.
    Finished {
        index: usize,
        outcome: Outcome,
        steps: usize,
    },
}

pub trait Listener: Send + Sync {
    /// Called where the event happens: note it and return.
    fn event(&self, event: &Event);
}

/// Tells all listeners. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Announcer(Arc<[Arc<dyn Listener>]>);

impl Announcer {
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Self {
        Self(listeners.into())
    }

    pub fn say(&self, event: &Event) {
        for listener in self.0.iter() {
            listener.event(event);
        }
    }
}
