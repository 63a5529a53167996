//! The errors of the farm's API, with the message that a client gets. One table maps every error to a wire code;
//! `proto::ErrorCode` maps the code to an HTTP status.

use browser::BrowserError;
use proto::{CommandError, ErrorCode, ids::InvalidId};

#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    #[error("API Key is missing")]
    MissingKey,
    #[error("Invalid API Key.")]
    WrongKey,
    #[error(
        "Invalid API Key. The built-in key is accepted only in requests to localhost or an IP address; to use another \
         host name, set your own key with --api-key or WEBGYM_API_KEY"
    )]
    ForeignHost,
    #[error("{0}")]
    BadRequest(String),
    #[error("there is nothing at {0}; see /docs for the available paths")]
    NotFound(String),
    #[error("{method} is not allowed at {path}; see /docs")]
    WrongMethod { method: String, path: String },
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("Invalid instance UUID")]
    InvalidInstance,
    #[error("this address gives access to no lease: its lease has ended, or the address is incomplete")]
    UnknownSecret,
    #[error("Instance not in use or already released")]
    NotInUse,
    #[error("Node {0} is not found")]
    UnknownNode(String),
    #[error("No available nodes with capacity to create new instance{}", suffix(.0.as_deref()))]
    NoCapacity(Option<String>),
    /// Starts like `NoCapacity`: clients that do not know draining treat the node as full, which is right.
    #[error("No available nodes with capacity to create new instance: this node is being drained")]
    Draining,
    #[error("Instance is already leased")]
    AlreadyLeased,
    #[error("the browser of this instance is lost: {0}; release the lease and acquire another")]
    InstanceLost(String),
    #[error(
        "{0}; release the lease, and record what is missing (on_miss: \"live\") or replay another archive"
    )]
    ReplayMiss(String),
    #[error("the fork is not in the state of its original: {0}")]
    ForkDiffers(String),
    #[error("node {node} cannot be reached: {reason}")]
    NodeUnreachable { node: String, reason: String },
    #[error("the farm is shutting down and accepts no new requests")]
    ShuttingDown,
    #[error("{0}")]
    Browser(BrowserError),
    /// An error response of a node, passed on unchanged.
    #[error("{detail}")]
    Passed { status: u16, code: ErrorCode, detail: String },
    #[error("{0}")]
    Internal(String),
}

fn suffix(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

impl ApiError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::MissingKey => ErrorCode::MissingKey,
            Self::WrongKey | Self::ForeignHost => ErrorCode::WrongKey,
            Self::BadRequest(_) | Self::AlreadyLeased => ErrorCode::BadRequest,
            Self::NotFound(_) | Self::WrongMethod { .. } => ErrorCode::NotFound,
            Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::InvalidInstance | Self::UnknownSecret => ErrorCode::InvalidInstance,
            Self::NotInUse => ErrorCode::NotInUse,
            Self::UnknownNode(_) => ErrorCode::UnknownNode,
            Self::NoCapacity(_) | Self::Draining => ErrorCode::NoCapacity,
            Self::InstanceLost(_) => ErrorCode::InstanceLost,
            Self::ReplayMiss(_) => ErrorCode::ReplayMiss,
            Self::ForkDiffers(_) => ErrorCode::ForkDiffers,
            Self::NodeUnreachable { .. } => ErrorCode::NodeUnreachable,
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::Browser(error) => error.code(),
            Self::Passed { code, .. } => *code,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            Self::Passed { status, .. } => *status,
            Self::WrongMethod { .. } => 405,
            Self::UnknownSecret => 404,
            other => other.code().status(),
        }
    }
}

impl From<BrowserError> for ApiError {
    fn from(error: BrowserError) -> Self {
        match error {
            BrowserError::Lost(gone) => Self::InstanceLost(gone.to_string()),
            other => Self::Browser(other),
        }
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<InvalidId> for ApiError {
    fn from(_: InvalidId) -> Self {
        Self::InvalidInstance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_what_existing_clients_match() {
        let cases = [
            (ApiError::NoCapacity(None), 503, "No available nodes with capacity to create new instance"),
            (
                ApiError::NoCapacity(Some("memory".into())),
                503,
                "No available nodes with capacity to create new instance",
            ),
            (ApiError::Draining, 503, "No available nodes with capacity to create new instance"),
            (ApiError::InvalidInstance, 400, "Invalid instance UUID"),
            (ApiError::NotInUse, 400, "Instance not in use or already released"),
            (ApiError::UnknownNode("http://x".into()), 400, "Node http://x is not found"),
            (ApiError::MissingKey, 401, "API Key is missing"),
            (ApiError::WrongKey, 401, "Invalid API Key."),
            (ApiError::InstanceLost("crash".into()), 500, "lost"),
        ];
        for (error, status, text) in cases {
            assert_eq!(error.status(), status, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
