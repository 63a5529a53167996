//! What all episodes of a run share: clients, permits, listeners, logs and settings.

use std::{path::PathBuf, sync::Arc, time::Duration};

use client::{chat::ModelClient, farm::FarmClient};
use store::Journal;

use crate::{
    config::{PolicyConfig, Split},
    policy::PromptOptions,
    prompts::PolicyPrompts,
    run::{event::Announcer, leases::LeaseLog, permits::RequestPermits},
    session_options::SessionSource,
};

/// What all episodes of a run share.
pub struct EpisodeContext {
    pub farm: FarmClient,
    pub policy: ModelClient,
    pub permits: RequestPermits,
    pub announcer: Announcer,
    pub leases: Option<LeaseLog>,
    pub journal: Journal,
    pub sessions: SessionSource,
    pub settings: Settings,
}

/// Settings of all episodes, from the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub prompting: PromptOptions,
    pub prompts: Arc<PolicyPrompts>,
    /// Lines of the page's text that the model gets; 0 for none.
    pub page_text_lines: usize,
    pub model: String,
    pub policy: PolicyConfig,
    pub split: Split,
    pub lifetime_mins: u32,
    pub operation_timeout: Duration,
    pub save_path: PathBuf,
    pub images: PathBuf,
    /// The file that lists start pages that did not load.
    pub navigation_errors: PathBuf,
}
