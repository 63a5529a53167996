//! The CDP endpoint of a lease: a virtual browser that contains only the contexts and targets of one tenant, for any client
//! of the Chrome DevTools Protocol. Several tenants share one Chromium, so nothing is tunnelled: every call is checked against
//! the table of reviewed methods ([`policy`]), and what concerns the browser itself is answered here ([`root`]).
//!
//! The path of a call: `socket` reads a message, `client` decides and passes it to the session of the page, and the reply
//! goes from the reader of the browser's pipe into the `outbox` of the client. Payloads are never parsed on that path.

mod client;
mod description;
mod endpoint;
mod events;
mod filter;
mod message;
mod outbox;
mod params;
pub(crate) mod policy;
mod root;
mod socket;
mod state;
mod targets;

use std::time::Duration;

pub(crate) use endpoint::{OpenCdp, serve};
pub(crate) use outbox::CloseReason;

/// Entry point for the fuzzer: what a message of a client that owns only the context `own` and the target `own` passes to its
/// page, if anything.
#[doc(hidden)]
pub fn filter_for_fuzzing(message: &str) -> Option<(String, String)> {
    struct Own;
    impl params::Owner for Own {
        fn owns_context(&self, id: &str) -> bool {
            id == "own"
        }
        fn owns_target(&self, id: &str) -> bool {
            id == "own"
        }
    }
    let call: message::ClientCall<'_> = serde_json::from_str(message).ok()?;
    let decision = policy::decide(&call.method);
    let is_forwarded = matches!(
        decision,
        policy::Decision::Forward | policy::Decision::ForwardUrl | policy::Decision::Context
    );
    if !is_forwarded || params::check(&call.method, decision, call.params, &Own).is_err() {
        return None;
    }
    let params = call.params.map_or("{}", |params| params.get());
    Some((call.method.into_owned(), params.to_owned()))
}

/// The largest message of a client.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// Messages that may wait for a client that does not read.
const MAX_QUEUED_MESSAGES: usize = 16 << 10;
/// The same in bytes; a single larger message is allowed.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Connections of one lease at the same time.
pub(crate) const MAX_SOCKETS: usize = 16;
/// Sessions of one connection with pages and workers.
const MAX_SESSIONS: usize = 512;
/// Browser sessions of one connection.
const MAX_ROOTS: usize = 16;
/// Calls of one connection that wait for their reply.
const MAX_PENDING_CALLS: usize = 4096;
/// Contexts that one connection may create.
const MAX_CONTEXTS: usize = 8;
/// How long a new page waits for a client to set it up.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a dialog waits for a client to answer it; then it is accepted.
const DIALOG_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the answer to a call waits until a target is attached.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// A client that sends nothing for this long, not even an answer to pings, is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
