//! Errors of the chat client by kind, and which kinds allow a retry.

use std::{path::PathBuf, time::Duration};

use crate::http::{HttpResponse, RetryAdvice, Retryable, TransportError, excerpt};

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("the model server cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("timed out while {doing}")]
    Timeout { doing: &'static str },
    #[error("the model server asks to slow down{}", delay_text(*retry_after))]
    RateLimited { retry_after: Option<Duration> },
    #[error(
        "the model server answered {status} with a redirect to {to}; redirects are not followed, configure that URL instead"
    )]
    Redirected { status: u16, to: String },
    #[error("the model server answered {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("the prompt does not fit the model: {body}")]
    PromptTooLarge { body: String },
    #[error("the model server's response cannot be used: {reason} ({content_type}): {body}")]
    BadResponse { reason: String, content_type: String, body: String },
    #[error("the model server's response is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("cannot read the image {}: {source}", path.display())]
    Image { path: PathBuf, source: std::io::Error },
    #[error("not a chat server (it answered {status} to POST /v1/chat/completions)")]
    NoChatServer { status: u16 },
    #[error("{url} does not serve {wanted}; it serves {served}")]
    NotServed { wanted: String, url: String, served: String },
    #[error("no model is configured, and {url} serves {served}")]
    NoneNamed { url: String, served: String },
    #[error("cannot set up the model client: {0}")]
    Setup(String),
}

impl ModelError {
    pub(super) fn refused(response: &HttpResponse) -> Self {
        match response.status.as_u16() {
            429 => Self::RateLimited { retry_after: response.retry_after },
            // With `Retry-After`, the server is only overloaded.
            503 if response.retry_after.is_some() => Self::RateLimited { retry_after: response.retry_after },
            status @ (301 | 302 | 303 | 307 | 308) => {
                let to = excerpt(&response.location);
                Self::Redirected {
                    status,
                    to: if to.is_empty() { "an unknown location".to_owned() } else { to },
                }
            }
            400 | 413 | 422 if says_prompt_is_too_large(&response.body) => {
                Self::PromptTooLarge { body: response.excerpt() }
            }
            status => Self::Refused { status, body: response.excerpt() },
        }
    }

    /// Returns whether the server failed, rather than the request or the reply.
    pub fn is_infrastructure(&self) -> bool {
        self.retry_advice() != RetryAdvice::Permanent
            || matches!(self, Self::Setup(_) | Self::TooLarge { .. } | Self::Redirected { .. })
    }
}

/// Returns whether an error says that the prompt has too many tokens or too many images, in the words of vLLM, SGLang,
/// llama.cpp and OpenAI.
fn says_prompt_is_too_large(body: &[u8]) -> bool {
    const TEXTS: [&str; 7] = [
        "context length",
        "context_length_exceeded",
        "context window",
        "context size",
        "prompt is too long",
        "image(s) may be provided",
        "too many images",
    ];
    let body = String::from_utf8_lossy(body).to_lowercase();
    TEXTS.iter().any(|text| body.contains(text))
}

fn delay_text(delay: Option<Duration>) -> String {
    match delay {
        Some(time) => format!(" and to come back in {} s", time.as_secs_f64().ceil()),
        None => String::new(),
    }
}

impl From<TransportError> for ModelError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Unreachable(reason) | TransportError::Lost(reason) => {
                Self::Unreachable { reason }
            }
            TransportError::Timeout => Self::Timeout { doing: "waiting for the model server" },
            TransportError::TooLarge { limit } => Self::TooLarge { limit },
        }
    }
}

impl Retryable for ModelError {
    fn retry_advice(&self) -> RetryAdvice {
        match self {
            // 408 and 425 ask for a retry. An unusable response may have been damaged in transit, so a retry may succeed.
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::BadResponse { .. }
            | Self::Refused { status: 408 | 425 | 500..=599, .. } => RetryAdvice::Retry,
            Self::RateLimited { retry_after } => RetryAdvice::RetryAfter(*retry_after),
            Self::Refused { .. }
            | Self::PromptTooLarge { .. }
            | Self::Redirected { .. }
            | Self::TooLarge { .. }
            | Self::Image { .. }
            | Self::NoChatServer { .. }
            | Self::NotServed { .. }
            | Self::NoneNamed { .. }
            | Self::Setup(_) => RetryAdvice::Permanent,
        }
    }
}
