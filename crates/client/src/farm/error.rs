//! Why a call to the farm failed, by kind. Our own farm says it with a code; for the Python system, which has none, the
//! one function here reads status and words.

use proto::ErrorCode;
use serde_json::Value;

use crate::http::{Broken, Received, excerpt};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("no free browser: {0}")]
    Full(String),
    #[error("the browser is lost: {0}")]
    InstanceLost(String),
    #[error("the lease is not valid (any more): {0}")]
    InvalidInstance(String),
    #[error("the node is not known: {0}")]
    UnknownNode(String),
    #[error("the node cannot be reached: {0}")]
    NodeUnreachable(String),
    #[error("no such element: {0}")]
    ElementNotFound(String),
    #[error("the page did not load: {0}")]
    NavigationFailed(String),
    #[error("the address is refused: {0}")]
    UrlRefused(String),
    #[error("timed out: {0}")]
    Timeout(String),
    /// Nothing reached the farm.
    #[error("the farm cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke after the call was sent; it may have been carried out.
    #[error("the farm's answer was lost: {0}")]
    AnswerLost(String),
    #[error("the farm refuses our key: {0}")]
    Auth(String),
    #[error("the farm does not understand: {0}")]
    BadRequest(String),
    /// The farm has no such call.
    #[error("the farm does not offer this: {0}")]
    NotOffered(String),
    #[error("the farm failed: {0}")]
    Other(String),
}

impl ClientError {
    /// The lease is of no use any more; a fresh one may be.
    pub fn instance_is_gone(&self) -> bool {
        matches!(
            self,
            Self::InstanceLost(_)
                | Self::InvalidInstance(_)
                | Self::UnknownNode(_)
                | Self::NodeUnreachable(_)
        )
    }

    /// The farm or the way to it failed, not what was asked for.
    pub fn is_infrastructure(&self) -> bool {
        let there =
            matches!(self, Self::Full(_) | Self::Unreachable(_) | Self::AnswerLost(_) | Self::Auth(_));
        self.instance_is_gone() || there
    }

    pub(super) fn of_code(code: ErrorCode, detail: String) -> Self {
        match code {
            ErrorCode::NoCapacity => Self::Full(detail),
            ErrorCode::InstanceLost => Self::InstanceLost(detail),
            ErrorCode::InvalidInstance | ErrorCode::NotInUse => Self::InvalidInstance(detail),
            ErrorCode::UnknownNode => Self::UnknownNode(detail),
            ErrorCode::NodeUnreachable | ErrorCode::ShuttingDown => Self::NodeUnreachable(detail),
            ErrorCode::ElementNotFound => Self::ElementNotFound(detail),
            ErrorCode::NavigationFailed => Self::NavigationFailed(detail),
            ErrorCode::UrlRefused => Self::UrlRefused(detail),
            ErrorCode::Timeout => Self::Timeout(detail),
            ErrorCode::MissingKey | ErrorCode::WrongKey => Self::Auth(detail),
            ErrorCode::BadRequest | ErrorCode::TooLarge => Self::BadRequest(detail),
            ErrorCode::NotFound => Self::NotOffered(detail),
            ErrorCode::Internal => Self::Other(detail),
        }
    }

    /// From an answer that is not a success.
    pub(super) fn of_answer(received: &Received) -> Self {
        let body: Option<Value> = serde_json::from_slice(&received.body).ok();
        let status = received.status.as_u16();
        match body {
            Some(body) => Self::of_body(status, &body),
            None => Self::of_words(status, received.excerpt()),
        }
    }

    pub(super) fn of_body(status: u16, body: &Value) -> Self {
        let words = ["detail", "message", "error"].iter().find_map(|name| body.get(*name));
        let detail = match words {
            Some(Value::String(text)) => excerpt(text),
            Some(other) => excerpt(&other.to_string()),
            None => excerpt(&body.to_string()),
        };
        match body.get("code").and_then(Value::as_str).and_then(ErrorCode::from_wire) {
            Some(code) => Self::of_code(code, detail),
            None => Self::of_words(status, detail),
        }
    }

    /// The Python system: only status and sentence. Nowhere else are errors told apart by their words.
    fn of_words(status: u16, detail: String) -> Self {
        let says = |words: &str| detail.contains(words);
        match status {
            401 | 403 => Self::Auth(detail),
            _ if says("No available nodes with capacity to create new instance") => Self::Full(detail),
            _ if says("Invalid instance UUID") || says("Instance not in use or already released") => {
                Self::InvalidInstance(detail)
            }
            _ if says("Node") && says("is not found") => Self::UnknownNode(detail),
            _ if says("net::ERR_") => Self::NavigationFailed(detail),
            404 | 405 => Self::NotOffered(detail),
            400 | 413 | 422 => Self::BadRequest(detail),
            502 => Self::NodeUnreachable(detail),
            503 => Self::Full(detail),
            408 | 504 => Self::Timeout(detail),
            _ => Self::Other(format!("{status}: {detail}")),
        }
    }
}

impl From<Broken> for ClientError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Unreachable(reason) => Self::Unreachable(reason),
            Broken::Lost(reason) => Self::AnswerLost(reason),
            Broken::Timeout => Self::Timeout("the farm did not answer in time".into()),
            Broken::TooLarge { limit } => Self::Other(format!("the answer is larger than {limit} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_code_of_ours_has_its_kind() {
        for code in ErrorCode::ALL {
            let body = json!({"detail": "why", "code": code.as_str()});
            let by_code = ClientError::of_code(code, "why".into());
            assert_eq!(ClientError::of_body(500, &body), by_code);
            // The code wins over status and words.
            let misleading = json!({"detail": "Invalid instance UUID", "code": code.as_str()});
            let kind = std::mem::discriminant(&ClientError::of_body(401, &misleading));
            assert_eq!(kind, std::mem::discriminant(&by_code));
        }
    }

    #[test]
    fn the_words_of_the_python_system_are_understood() {
        let text = |t: &str| t.to_owned();
        let full = "No available nodes with capacity to create new instance";
        let cases = [
            (503, json!({"detail": full}), ClientError::Full(text(full))),
            (
                500,
                json!({"detail": "Invalid instance UUID"}),
                ClientError::InvalidInstance(text("Invalid instance UUID")),
            ),
            (
                400,
                json!({"detail": "Instance not in use or already released"}),
                ClientError::InvalidInstance(text("Instance not in use or already released")),
            ),
            (
                400,
                json!({"detail": "Node http://x is not found"}),
                ClientError::UnknownNode(text("Node http://x is not found")),
            ),
            (401, json!({"detail": "Invalid API Key."}), ClientError::Auth(text("Invalid API Key."))),
            (
                500,
                json!({"status": "error", "message": "net::ERR_NAME_NOT_RESOLVED at x"}),
                ClientError::NavigationFailed(text("net::ERR_NAME_NOT_RESOLVED at x")),
            ),
            (422, json!({"detail": [{"msg": "bad"}]}), ClientError::BadRequest(text("[{\"msg\":\"bad\"}]"))),
            (502, json!({}), ClientError::NodeUnreachable(text("{}"))),
            (500, json!({"detail": "x"}), ClientError::Other(text("500: x"))),
        ];
        for (status, body, wanted) in cases {
            assert_eq!(ClientError::of_body(status, &body), wanted, "{body}");
        }
    }
}
