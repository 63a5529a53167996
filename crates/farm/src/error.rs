//! Why the farm could not do what it was asked, with the sentence a client gets. One place maps every reason to
//! a wire code; `proto::ErrorCode` maps the code to a status.

use browser::BrowserError;
use proto::{CommandError, ErrorCode, ids::InvalidId};

#[derive(Clone, Debug, thiserror::Error)]
pub enum FarmError {
    #[error("API Key is missing")]
    MissingKey,
    #[error("Invalid API Key.")]
    WrongKey,
    #[error(
        "Invalid API Key. The built-in key opens only to requests addressed to localhost or a plain address; set an own key \
         with --api-key or WEBGYM_API_KEY to use another name"
    )]
    ForeignHost,
    #[error("{0}")]
    BadRequest(String),
    #[error("there is nothing at {0}; see /docs for what there is")]
    NotFound(String),
    #[error("{method} is not allowed at {path}; see /docs")]
    WrongMethod { method: String, path: String },
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("Invalid instance UUID")]
    InvalidInstance,
    #[error("Instance not in use or already released")]
    NotInUse,
    #[error("Node {0} is not found")]
    UnknownNode(String),
    #[error("No available nodes with capacity to create new instance{}", because(.0.as_deref()))]
    NoCapacity(Option<String>),
    /// The same words: whoever knows no draining takes the node for full, which is right.
    #[error("No available nodes with capacity to create new instance: this node is being drained")]
    Draining,
    #[error("Instance is already leased")]
    AlreadyLeased,
    #[error("the browser of this instance is lost: {0}; release it and take another")]
    InstanceLost(String),
    #[error("node {node} cannot be reached: {why}")]
    NodeUnreachable { node: String, why: String },
    #[error("the farm is shutting down and takes no new work")]
    ShuttingDown,
    #[error("{0}")]
    Browser(BrowserError),
    /// What a node answered, passed on as it was said.
    #[error("{detail}")]
    Passed { status: u16, code: ErrorCode, detail: String },
    #[error("{0}")]
    Internal(String),
}

fn because(why: Option<&str>) -> String {
    why.map(|why| format!(": {why}")).unwrap_or_default()
}

impl FarmError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::MissingKey => ErrorCode::MissingKey,
            Self::WrongKey | Self::ForeignHost => ErrorCode::WrongKey,
            Self::BadRequest(_) | Self::AlreadyLeased => ErrorCode::BadRequest,
            Self::NotFound(_) | Self::WrongMethod { .. } => ErrorCode::NotFound,
            Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::InvalidInstance => ErrorCode::InvalidInstance,
            Self::NotInUse => ErrorCode::NotInUse,
            Self::UnknownNode(_) => ErrorCode::UnknownNode,
            Self::NoCapacity(_) | Self::Draining => ErrorCode::NoCapacity,
            Self::InstanceLost(_) => ErrorCode::InstanceLost,
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
            other => other.code().status(),
        }
    }
}

impl From<BrowserError> for FarmError {
    fn from(error: BrowserError) -> Self {
        match error {
            BrowserError::Lost(gone) => Self::InstanceLost(gone.to_string()),
            other => Self::Browser(other),
        }
    }
}

impl From<CommandError> for FarmError {
    fn from(error: CommandError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<InvalidId> for FarmError {
    fn from(_: InvalidId) -> Self {
        Self::InvalidInstance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_clients_find_the_words_they_look_for() {
        let cases = [
            (FarmError::NoCapacity(None), 503, "No available nodes with capacity to create new instance"),
            (
                FarmError::NoCapacity(Some("memory".into())),
                503,
                "No available nodes with capacity to create new instance",
            ),
            (FarmError::Draining, 503, "No available nodes with capacity to create new instance"),
            (FarmError::InvalidInstance, 400, "Invalid instance UUID"),
            (FarmError::NotInUse, 400, "Instance not in use or already released"),
            (FarmError::UnknownNode("http://x".into()), 400, "Node http://x is not found"),
            (FarmError::MissingKey, 401, "API Key is missing"),
            (FarmError::WrongKey, 401, "Invalid API Key."),
            (FarmError::InstanceLost("crash".into()), 500, "lost"),
        ];
        for (error, status, words) in cases {
            assert_eq!(error.status(), status, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
