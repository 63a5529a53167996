//! How a call to the browser can fail, and why a session or a whole browser is gone.

use std::{fmt, sync::Arc, time::Duration};

use crate::protocol::Method;

/// Why nobody will answer any more. Cheap to clone: every pending call gets one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The page's renderer process crashed.
    Crashed,
    /// The target was closed, or we let go of it.
    Detached,
    /// The browser process ended or closed its pipe. Its last log lines come along.
    Browser(Arc<str>),
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed => f.write_str("the page's renderer crashed"),
            Self::Detached => f.write_str("the page was closed"),
            Self::Browser(log) if log.is_empty() => f.write_str("the browser process is gone"),
            Self::Browser(log) => write!(f, "the browser process is gone; its last words: {log}"),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The browser understood and said no.
    #[error("{method} was refused by the browser: {message} ({code})")]
    Rejected { method: Method, code: i64, message: String },
    #[error("{method} was not answered within {} ms", after.as_millis())]
    Deadline { method: Method, after: Duration },
    #[error("{method} failed: {gone}")]
    Gone { method: Method, gone: Gone },
    #[error("{method} was answered with something unexpected: {why}")]
    BadAnswer { method: Method, why: String },
    /// The browser has stopped reading: thousands of calls wait to be written.
    #[error("{method} could not be sent: the browser does not read its pipe")]
    Congested { method: Method },
}

impl CallError {
    /// The other side is gone for good, so no further call on this session can succeed.
    pub fn gone(&self) -> Option<&Gone> {
        match self {
            Self::Gone { gone, .. } => Some(gone),
            _ => None,
        }
    }

    /// The browser's own words, when it refused.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Rejected { message, .. } => Some(message),
            _ => None,
        }
    }
}
