//! The closed set of machine-readable reasons a call can fail for. Each tier maps its own errors to these.

use serde::{Deserialize, Serialize};

/// The stable `code` of an error body. Clients may match on it; the sentence beside it is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is not one we understand; sending it again will not help.
    BadRequest,
    /// No such path or method here.
    NotFound,
    MissingKey,
    WrongKey,
    /// The id is malformed, or its lease has ended.
    InvalidInstance,
    /// `/reset` of something that is not leased under that id.
    NotInUse,
    UnknownNode,
    NoCapacity,
    /// The browser behind the lease is gone. Release it and take another.
    InstanceLost,
    /// The node behind the lease cannot be reached.
    NodeUnreachable,
    /// The element id is not on the page (any more).
    ElementNotFound,
    /// The page did not load; the page before is still there.
    NavigationFailed,
    /// The address is one that pages may not reach, or a scheme that is refused.
    UrlRefused,
    /// The page did not answer in time.
    Timeout,
    /// The farm is stopping and takes no new work.
    ShuttingDown,
    TooLarge,
    /// A bug or a broken part on our side.
    Internal,
}

impl ErrorCode {
    pub const ALL: [Self; 17] = [
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
            Self::Timeout => "timeout",
            Self::ShuttingDown => "shutting_down",
            Self::TooLarge => "too_large",
            Self::Internal => "internal",
        }
    }

    /// The code for a word on the wire, when it is one of ours.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// The one table from reason to HTTP status.
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
            Self::ElementNotFound | Self::NavigationFailed => 422,
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
    fn the_word_of_a_code_is_the_one_serde_writes() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(ErrorCode::from_word(code.as_str()), Some(code));
        }
    }
}
