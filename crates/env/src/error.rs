//! Why a message of a client could not be carried out, and the error code of the OpenEnv protocol for each reason.

use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvError {
    #[error("the message is not JSON: {0}")]
    InvalidJson(String),
    #[error("unknown message type {0:?}; accepted: reset, step, state, mcp, close")]
    UnknownType(String),
    #[error("{0}")]
    Invalid(String),
    #[error("no episode is running; send reset first")]
    NoEpisode,
    #[error("the episode has ended; send reset to start the next one")]
    EpisodeEnded,
    #[error(
        "no session became free in time: {active_sessions} of {max_sessions} are in use; try again later"
    )]
    Capacity { active_sessions: usize, max_sessions: usize },
    #[error("the server is draining and starts no more episodes")]
    Draining,
    #[error("the episode could not start: {0}")]
    Start(String),
    #[error("the session was idle for {0} s and has ended")]
    Idle(u64),
    #[error("more than {0} messages were sent without waiting for a response")]
    TooManyPending(usize),
    #[error("the screenshot cannot be saved: {0}")]
    Disk(String),
}

impl EnvError {
    /// Returns the code of the OpenEnv protocol.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "INVALID_JSON",
            Self::UnknownType(_) => "UNKNOWN_TYPE",
            Self::Invalid(_) => "VALIDATION_ERROR",
            Self::NoEpisode | Self::EpisodeEnded | Self::Disk(_) => "EXECUTION_ERROR",
            Self::Capacity { .. } | Self::Draining => "CAPACITY_REACHED",
            Self::Start(_) => "FACTORY_ERROR",
            Self::Idle(_) | Self::TooManyPending(_) => "SESSION_ERROR",
        }
    }

    /// Formats the error as the data of an `error` message.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut data = Map::from_iter([
            ("message".to_owned(), json!(self.to_string())),
            ("code".to_owned(), json!(self.code())),
        ]);
        if let Self::Capacity { active_sessions, max_sessions } = self {
            data.insert("active_sessions".to_owned(), json!(active_sessions));
            data.insert("max_sessions".to_owned(), json!(max_sessions));
        }
        data
    }
}
