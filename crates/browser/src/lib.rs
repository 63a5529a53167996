//! One browser instance as an agent uses it: a single page to observe and act on. Owns the rules of the page (one tab, no
//! blocking dialogs, wait until settled) and its screenshots. Knows nothing about farms and leases.
//!
//! The path of a click, each module calling only the ones below it:
//!
//! 1. `instance/mod.rs`: `Instance::execute` dispatches the command and records when the action starts;
//! 2. `instance/act.rs`: maps the mark id to an element id and carries the command out;
//! 3. `page/element_actions.rs`: finds the point to click, through `page/script.rs` (calls the page script, `script/*.js`)
//!    and, for cross-origin frames, `page/frames.rs` (converts the point to page coordinates);
//! 4. `input/mouse.rs`: sends the mouse events; `input/mod.rs` waits until the page has handled them;
//! 5. `instance/tabs.rs`: settles, and follows the click if it opened or closed a window;
//! 6. `page/settle.rs`: waits for navigation and network (`page/page_state.rs` and `page/channels.rs`, fed by
//!    `page/events.rs`), then for the page script to find the page quiet (`script/settle.js`) and complete
//!    (`script/building.js`).

mod clients;
mod clipboard;
mod context;
mod determinism;
mod emulation;
mod error;
mod files;
mod host;
mod input;
mod instance;
mod marks;
mod network_watch;
mod options;
mod page;
mod screencast;
mod state;
mod tenant;
mod window_events;

pub use clients::{StartGuard, TargetWatcher};
pub use determinism::{DETERMINISM_FLAG, Determinism};
pub use error::BrowserError;
pub use files::{DownloadState, FileBudget, FileInfo, FileOrigin, NodeSpace};
pub use host::Host;
pub use instance::{Inspector, Instance, Observation, ObserveRequest, Screenshot, StepResult};
pub use network_watch::{NetworkSink, NetworkSource, NetworkWatch};
pub use options::{Options, SettleOptions};
pub use page::settle::Settled;
pub use page::{PROXY_ERROR_HEADER, View};
pub use screencast::{
    ConsoleEntry, Frame, NextFrame, PageInfo, PersonInput, Screencast, ScreencastOptions, ScreencastSink,
};
pub use tenant::{ClientSession, PageClaim, TenantBrowser, TenantContext, WatchGuard};

pub use cdp::{
    BrowserKind, CallError, Connection, EventHandler, Executable, FindError, ForwardError, ForwardedReply,
    Launch, LaunchError, Sandbox, Session, SessionEnd, find_browser, find_browsers, parse_params, protocol,
};
