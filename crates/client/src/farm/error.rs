//! Errors of the farm client by kind. Our farm sends an error code; for the Python system, which has none, one function here
//! classifies by status and text.

use proto::ErrorCode;
use serde_json::Value;

use crate::http::{HttpResponse, TransportError, excerpt};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("no free browser: {0}")]
    Full(String),
    #[error("the browser is lost: {0}")]
    InstanceLost(String),
    #[error("the lease is not valid: {0}")]
    InvalidInstance(String),
    #[error("unknown node: {0}")]
    UnknownNode(String),
    #[error("the node cannot be reached: {0}")]
    NodeUnreachable(String),
    #[error("no such element: {0}")]
    ElementNotFound(String),
    #[error("the page did not load: {0}")]
    NavigationFailed(String),
    #[error("the URL is refused: {0}")]
    UrlRefused(String),
    /// The replayed archive does not have what a page requested.
    #[error("the archive lacks what the page needs: {0}")]
    ReplayMiss(String),
    /// The page did not react in time; farm and browser work.
    #[error("the page did not react in time: {0}")]
    PageTimeout(String),
    #[error("timed out: {0}")]
    Timeout(String),
    /// Nothing reached the farm.
    #[error("the farm cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke after the call was sent, so it may have been executed.
    #[error("the farm's response was lost: {0}")]
    ResponseLost(String),
    #[error("the API key was not accepted: {0}")]
    Auth(String),
    #[error("the farm rejects the request: {0}")]
    BadRequest(String),
    #[error("the farm does not support this call: {0}")]
    NotSupported(String),
    #[error("the farm failed: {0}")]
    Other(String),
}

impl ClientError {
    /// Returns whether the lease is unusable and a new one is needed.
    pub fn is_instance_gone(&self) -> bool {
        matches!(
            self,
            Self::InstanceLost(_)
                | Self::InvalidInstance(_)
                | Self::UnknownNode(_)
                | Self::NodeUnreachable(_)
        )
    }

    /// Returns whether the farm or the connection failed, rather than the command.
    pub fn is_infrastructure(&self) -> bool {
        let is_farm_failure =
            matches!(self, Self::Full(_) | Self::Unreachable(_) | Self::ResponseLost(_) | Self::Auth(_));
        self.is_instance_gone() || is_farm_failure
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
            ErrorCode::ReplayMiss => Self::ReplayMiss(detail),
            ErrorCode::Timeout => Self::PageTimeout(detail),
            ErrorCode::MissingKey | ErrorCode::WrongKey => Self::Auth(detail),
            ErrorCode::BadRequest
            | ErrorCode::TooLarge
            | ErrorCode::UnsupportedAction
            | ErrorCode::ConfirmationRequired
            | ErrorCode::ForkDiffers => Self::BadRequest(detail),
            ErrorCode::NotFound => Self::NotSupported(detail),
            ErrorCode::Internal => Self::Other(detail),
        }
    }

    /// Classifies a response that is not a success.
    pub(super) fn of_response(response: &HttpResponse) -> Self {
        let body: Option<Value> = serde_json::from_slice(&response.body).ok();
        let status = response.status.as_u16();
        match body {
            Some(body) => Self::of_body(status, &body),
            None => Self::of_text(status, response.excerpt()),
        }
    }

    pub(super) fn of_body(status: u16, body: &Value) -> Self {
        let detail = ["detail", "message", "error"].iter().find_map(|name| body.get(*name));
        let detail = match detail {
            Some(Value::String(text)) => excerpt(text),
            Some(other) => excerpt(&other.to_string()),
            None => excerpt(&body.to_string()),
        };
        match body.get("code").and_then(Value::as_str).and_then(ErrorCode::from_wire) {
            Some(code) => Self::of_code(code, detail),
            None => Self::of_text(status, detail),
        }
    }

    /// Classifies an error of the Python system, which has only a status and a text. No other code classifies by text.
    fn of_text(status: u16, detail: String) -> Self {
        let contains = |text: &str| detail.contains(text);
        match status {
            401 | 403 => Self::Auth(detail),
            _ if contains("No available nodes with capacity to create new instance") => Self::Full(detail),
            _ if contains("Invalid instance UUID") || contains("Instance not in use or already released") => {
                Self::InvalidInstance(detail)
            }
            _ if contains("Node") && contains("is not found") => Self::UnknownNode(detail),
            _ if contains("net::ERR_") => Self::NavigationFailed(detail),
            404 | 405 => Self::NotSupported(detail),
            400 | 413 | 422 => Self::BadRequest(detail),
            502 => Self::NodeUnreachable(detail),
            503 => Self::Full(detail),
            408 | 504 => Self::Timeout(detail),
            _ => Self::Other(format!("{status}: {detail}")),
        }
    }
}

impl From<TransportError> for ClientError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Unreachable(reason) => Self::Unreachable(reason),
            TransportError::Lost(reason) => Self::ResponseLost(reason),
            TransportError::Timeout => Self::Timeout("the farm did not answer in time".into()),
            TransportError::TooLarge { limit } => {
                Self::Other(format!("the response is larger than {limit} bytes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn error_code_determines_the_kind() {
        for code in ErrorCode::ALL {
            let body = json!({"detail": "why", "code": code.as_str()});
            let by_code = ClientError::of_code(code, "why".into());
            assert_eq!(ClientError::of_body(500, &body), by_code);
            // The code has precedence over status and text.
            let misleading = json!({"detail": "Invalid instance UUID", "code": code.as_str()});
            let kind = std::mem::discriminant(&ClientError::of_body(401, &misleading));
            assert_eq!(kind, std::mem::discriminant(&by_code));
        }
    }

    #[test]
    fn python_system_errors_are_classified() {
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
