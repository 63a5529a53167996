//! How a call to the browser can fail, and why a session or the whole browser ended.

use std::{fmt, sync::Arc, time::Duration};

use crate::protocol::Method;

/// Why a session ended. Cheap to clone: every pending call gets a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The page's renderer process crashed.
    Crashed,
    /// The target was closed, or we detached from it.
    Detached,
    /// The browser process exited or closed its pipe. Carries its last log lines.
    BrowserExited(Arc<str>),
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed => f.write_str("the page's renderer crashed"),
            Self::Detached => f.write_str("the page was closed"),
            Self::BrowserExited(log) if log.is_empty() => f.write_str("the browser process has exited"),
            Self::BrowserExited(log) => {
                write!(f, "the browser process has exited; its last log lines: {log}")
            }
        }
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The browser answered with a protocol error.
    #[error("{method} was rejected by the browser: {message} ({code})")]
    Rejected { method: Method, code: i64, message: String },
    #[error("{method} was not answered within {} ms", after.as_millis())]
    Deadline { method: Method, after: Duration },
    #[error("{method} failed: {end}")]
    SessionEnded { method: Method, end: SessionEnd },
    #[error("{method} returned an unexpected reply: {reason}")]
    InvalidReply { method: Method, reason: String },
    /// The browser stopped reading its pipe and the queue of outgoing messages is full.
    #[error("{method} could not be sent: the browser does not read its pipe")]
    Congested { method: Method },
}

impl CallError {
    /// Why the session ended, if it did; then no further call on it can succeed.
    pub fn session_end(&self) -> Option<&SessionEnd> {
        match self {
            Self::SessionEnded { end, .. } => Some(end),
            _ => None,
        }
    }

    /// The browser's error message, if it rejected the call.
    pub fn rejection(&self) -> Option<&str> {
        match self {
            Self::Rejected { message, .. } => Some(message),
            _ => None,
        }
    }
}
