//! One attempt at one task: observe the page, ask the policy, act, until the agent answers or an end condition holds. An
//! episode owns its steps, which stay when it is cut short.

mod attempt;
mod context;
mod decide;
mod ending;
pub mod fingerprint;
mod observe;
mod prefix;
mod recording;
pub mod screenshots;
mod session;
mod setup;
mod start_page;
mod white_jpeg;

pub use attempt::Episode;
pub use context::{EpisodeContext, Groups, Settings};
pub use ending::{Ending, is_ended_by_agent};
pub(crate) use session::BrowserSession;
pub use setup::FIELD as SETUP_FIELD;
pub use setup::prepare_page;
