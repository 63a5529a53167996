//! The closed set of machine-readable error codes of the HTTP API. Each tier maps its own errors to these.

use serde::{Deserialize, Serialize};

/// The stable `code` of an error body. Clients may match on it; the message next to it is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is malformed; sending it again does not help.
    BadRequest,
    /// The path or the method does not exist.
    NotFound,
    MissingKey,
    WrongKey,
    /// The id is malformed, or its lease has ended.
    InvalidInstance,
    /// `/reset` of an instance that is not leased under that id.
    NotInUse,
    UnknownNode,
    NoCapacity,
    /// The browser of the lease crashed or exited. Release the lease and acquire another.
    InstanceLost,
    /// The node of the lease cannot be reached.
    NodeUnreachable,
    /// The element id is not, or no longer, on the page.
    ElementNotFound,
    /// The page did not load; the previous page is still open.
    NavigationFailed,
    /// The URL has a scheme that is not allowed, or leads to an address that pages may not reach.
    UrlRefused,
    /// The action exists in the dialect of the model, but a browser session cannot do it.
    UnsupportedAction,
    /// A person has to confirm the action of the model, which was not carried out.
    ConfirmationRequired,
    /// A page of a replay requested what the archive does not have.
    ReplayMiss,
    /// A fork did not reach the state of its original.
    ForkDiffers,
    /// The page did not answer in time.
    Timeout,
    /// The farm is stopping and accepts no new work.
    ShuttingDown,
    TooLarge,
    /// A bug or a broken component on the server side.
    Internal,
}

impl ErrorCode {
    pub const ALL: [Self; 21] = [
        Self::BadRequest,
        Self::NotFound,
        Self::MissingKey,
        Self::WrongKey,
        Self::InvalidInstance,
        Self::NotInUse,
        Self::UnknownNode,
        Self::NoCapacity,
        Self::InstanceLost,
        Self::NodeUnreachable,
        Self::ElementNotFound,
        Self::NavigationFailed,
        Self::UrlRefused,
        Self::UnsupportedAction,
        Self::ConfirmationRequired,
        Self::ReplayMiss,
        Self::ForkDiffers,
        Self::Timeout,
        Self::ShuttingDown,
        Self::TooLarge,
        Self::Internal,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::MissingKey => "missing_key",
            Self::WrongKey => "wrong_key",
            Self::InvalidInstance => "invalid_instance",
            Self::NotInUse => "not_in_use",
            Self::UnknownNode => "unknown_node",
            Self::NoCapacity => "no_capacity",
            Self::InstanceLost => "instance_lost",
            Self::NodeUnreachable => "node_unreachable",
            Self::ElementNotFound => "element_not_found",
            Self::NavigationFailed => "navigation_failed",
            Self::UrlRefused => "url_refused",
            Self::UnsupportedAction => "unsupported_action",
            Self::ConfirmationRequired => "confirmation_required",
            Self::ReplayMiss => "replay_miss",
            Self::ForkDiffers => "fork_differs",
            Self::Timeout => "timeout",
            Self::ShuttingDown => "shutting_down",
            Self::TooLarge => "too_large",
            Self::Internal => "internal",
        }
    }

    /// Parses a code from its wire form; `None` if it is unknown.
    pub fn from_wire(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The HTTP status of the response that carries this code.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest
            | Self::InvalidInstance
            | Self::NotInUse
            | Self::UnknownNode
            | Self::UrlRefused => 400,
            Self::MissingKey | Self::WrongKey => 401,
            Self::NotFound => 404,
            Self::TooLarge => 413,
            Self::ElementNotFound
            | Self::NavigationFailed
            | Self::UnsupportedAction
            | Self::ConfirmationRequired
            | Self::ReplayMiss
            | Self::ForkDiffers => 422,
            Self::Internal | Self::InstanceLost => 500,
            Self::NodeUnreachable => 502,
            Self::NoCapacity | Self::ShuttingDown => 503,
            Self::Timeout => 504,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_str_matches_the_serde_form() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(ErrorCode::from_wire(code.as_str()), Some(code));
        }
    }
}
