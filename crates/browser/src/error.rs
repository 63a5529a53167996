//! The errors of commands on an instance, and their codes on the wire.

use std::time::Duration;

use cdp::{CallError, SessionEnd};
use proto::ErrorCode;

#[derive(Clone, Debug, thiserror::Error)]
pub enum BrowserError {
    /// The page or its browser has ended; only a new instance helps.
    #[error("the browser of this instance is lost: {0}")]
    Lost(SessionEnd),
    #[error("there is no element {id} to act on: {reason}")]
    ElementNotFound { id: String, reason: String },
    #[error("{url} did not load: {reason}{}", redirection(.redirected_to.as_deref()))]
    NavigationFailed {
        url: String,
        reason: String,
        /// Where a redirect led before the visit failed.
        redirected_to: Option<String>,
    },
    #[error("{url:?} cannot be visited: {reason}")]
    UrlRefused { url: String, reason: String },
    #[error("{0}")]
    BadArgument(String),
    #[error("there is no file {0:?}; list the files with GET /files")]
    FileNotFound(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("the page did not answer within {} s: {operation}", after.as_secs())]
    Timeout { operation: String, after: Duration },
    #[error("{0}")]
    Internal(String),
}

fn redirection(target: Option<&str>) -> String {
    target.map(|target| format!(" (it redirects to {target})")).unwrap_or_default()
}

impl BrowserError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Lost(_) => ErrorCode::InstanceLost,
            Self::ElementNotFound { .. } => ErrorCode::ElementNotFound,
            Self::NavigationFailed { .. } => ErrorCode::NavigationFailed,
            Self::UrlRefused { .. } => ErrorCode::UrlRefused,
            Self::BadArgument(_) => ErrorCode::BadRequest,
            Self::FileNotFound(_) => ErrorCode::NotFound,
            Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::Timeout { .. } => ErrorCode::Timeout,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl From<CallError> for BrowserError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::SessionEnded { end, .. } => Self::Lost(end),
            CallError::Deadline { after, method } => Self::Timeout { operation: method.to_string(), after },
            other => Self::Internal(other.to_string()),
        }
    }
}
