//! Drives a Chromium process over its debugging pipe: finds and launches it, routes calls and events by
//! session, fails everything pending the moment the other side is gone, and leaves no process or profile
//! behind. Knows nothing of pages as agents see them, nor of farms.

mod connection;
mod envelope;
mod error;
mod find;
mod flags;
mod guard;
mod launch;
mod profile;
pub mod protocol;
mod sanitise;
mod session;
mod spawner;
mod transport;

pub use connection::{Connection, Events};
pub use error::{CallError, Gone};
pub use find::{BrowserKind, Executable, FindError, find, find_all};
pub use launch::{Launch, LaunchError, Process, Sandbox, Version};
pub use protocol::{Method, NoParams};
pub use session::{Pending, Reply, Session};

/// Decodes the parameters of an event; page text that no Rust string can hold gets U+FFFD in its place.
pub fn params<T: serde::de::DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    envelope::decode(raw)
}

/// A door for the fuzzer: whom a message is for (its id, or none for an event), and its payload.
#[doc(hidden)]
pub fn route(message: &[u8]) -> Result<(Option<u64>, Vec<u8>), String> {
    let mut message = bytes::Bytes::copy_from_slice(message);
    let (id, range) = match envelope::open(&mut message)? {
        envelope::Envelope::Reply { id, outcome: Ok(range) | Err(range) } => (Some(id), range),
        envelope::Envelope::Event { params, .. } => (None, params),
    };
    Ok((id, message[range].to_vec()))
}
