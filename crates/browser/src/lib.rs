//! One browser instance as an agent knows it: a single page it can look at and act on. Owns the rules of the
//! page (one tab, no blocking dialogs, wait until settled) and the pictures of it; knows no farm and no leases.

mod context;
mod error;
mod host;
mod input;
mod instance;
mod marks;
mod options;
mod page;

pub use error::BrowserError;
pub use host::Host;
pub use instance::{Inspector, Instance, Observation, ObserveRequest, Screenshot, StepResult};
pub use options::{Options, SettleOptions};
pub use page::settle::Settled;

pub use cdp::{
    BrowserKind, Connection, Executable, FindError, Launch, LaunchError, Sandbox, SessionEnd, find_browser,
    find_browsers,
};
