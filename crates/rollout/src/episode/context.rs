//! What all episodes of a run share: clients, permits, listeners, logs and settings.

use std::{path::PathBuf, sync::Arc, time::Duration};

use client::{chat::ModelClient, farm::FarmClient};
use proto::ImageFormat;
use store::Journal;

use crate::{
    config::{PolicyConfig, Split},
    policy::PromptOptions,
    prompts::PolicyPrompts,
    run::{GroupPrefixes, Pause, PolicyVersion, event::Announcer, leases::LeaseLog, permits::RequestPermits},
    session_options::SessionSource,
};

/// What all episodes of a run share.
pub struct EpisodeContext {
    pub farm: FarmClient,
    pub policy: ModelClient,
    pub policy_version: PolicyVersion,
    pub pause: Pause,
    pub permits: RequestPermits,
    pub announcer: Announcer,
    pub leases: Option<LeaseLog>,
    pub journal: Journal,
    pub sessions: SessionSource,
    pub settings: Settings,
    /// The steps that the attempts of groups share; unset if every attempt starts at the beginning.
    pub group_prefixes: Option<GroupPrefixes>,
}

/// Names the groups of attempts of an iteration.
#[derive(Clone, Debug)]
pub struct Groups {
    pub iteration: u64,
    /// The number of attempts in a group.
    pub size: usize,
}

impl Groups {
    /// Returns the id of a trajectory's group. It is unique in the save path.
    pub fn id_of(&self, trajectory_index: i64) -> String {
        let position = usize::try_from(trajectory_index).unwrap_or(0) / self.size;
        format!("train-{}-{position}", self.iteration)
    }
}

/// Settings of all episodes, from the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub prompting: PromptOptions,
    pub prompts: Arc<PolicyPrompts>,
    /// Lines of the page's text that the model gets; 0 for none.
    pub page_text_lines: usize,
    pub screenshot_format: ImageFormat,
    pub model: String,
    pub policy: PolicyConfig,
    pub split: Split,
    /// The groups of attempts; unset if every task is attempted once.
    pub groups: Option<Groups>,
    pub lifetime_mins: u32,
    pub operation_timeout: Duration,
    pub save_path: PathBuf,
    pub images: PathBuf,
    /// The file that lists start pages that did not load.
    pub navigation_errors: PathBuf,
}
