//! Drives a Chromium process over its debugging pipe: finds and launches it, routes calls and events by session,
//! fails every pending call as soon as the session or the browser ends, and leaves no process or profile behind.
//! Knows nothing about agents, instances or farms.

mod connection;
mod description;
mod envelope;
mod error;
mod find;
mod flags;
mod forward;
mod launch;
mod profile;
pub mod protocol;
mod reaper;
mod sanitize;
mod session;
mod spawner;
mod stderr_log;
mod transport;

pub use connection::{Connection, EventHandler, IgnoreEvents};
pub use description::DescriptionError;
pub use error::{CallError, SessionEnd};
pub use find::{BrowserKind, Executable, FindError, find_browser, find_browsers};
pub use forward::{ForwardError, ForwardedReply};
pub use launch::{Launch, LaunchError, Process, Sandbox, Version};
pub use protocol::{Method, NoParams};
pub use session::{PendingCall, Reply, Session};

/// Decodes the parameters of an event. Lone surrogates in page text are replaced by U+FFFD.
pub fn parse_params<T: serde::de::DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    envelope::decode(raw)
}

/// Entry point for the fuzzer: returns the id of a reply (`None` for an event) and the payload of the message.
#[doc(hidden)]
pub fn route(message: &[u8]) -> Result<(Option<u64>, Vec<u8>), String> {
    let mut message = bytes::Bytes::copy_from_slice(message);
    let (id, range) = match envelope::open(&mut message)? {
        envelope::Envelope::Reply { id, outcome: Ok(range) | Err(range) } => (Some(id), range),
        envelope::Envelope::Event { params, .. } => (None, params),
    };
    Ok((id, message[range].to_vec()))
}
