//! Why a model did not answer, by kind, and what each kind says about trying again.

use std::{path::PathBuf, time::Duration};

use crate::http::{Broken, Received, Transient, Verdict, excerpt};

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("the model server cannot be reached: {reason}")]
    Unreachable { reason: String },
    #[error("no time left while {doing}")]
    Timeout { doing: &'static str },
    #[error("the model server asks to slow down{}", patience(*retry_after))]
    RateLimited { retry_after: Option<Duration> },
    #[error(
        "the model server answered {status} and points to {to}; redirects are not followed, name that address instead"
    )]
    Redirected { status: u16, to: String },
    #[error("the model server answered {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("the model server's answer cannot be used: {reason} ({content_type}): {body}")]
    BadAnswer { reason: String, content_type: String, body: String },
    #[error("the model server's answer is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("cannot read the image {}: {source}", path.display())]
    Image { path: PathBuf, source: std::io::Error },
    #[error("what answers there is no chat server: it says {status} to POST /v1/chat/completions")]
    NoChatServer { status: u16 },
    #[error("{at} does not serve {wanted}, but {served}")]
    NotServed { wanted: String, at: String, served: String },
    #[error("no model is named, and {at} serves {served}")]
    NoneNamed { at: String, served: String },
    #[error("cannot set up the model client: {0}")]
    Setup(String),
}

impl ModelError {
    pub(super) fn refused(received: &Received) -> Self {
        match received.status.as_u16() {
            429 => Self::RateLimited { retry_after: received.retry_after },
            // Not broken but busy, by its own word.
            503 if received.retry_after.is_some() => Self::RateLimited { retry_after: received.retry_after },
            status @ (301 | 302 | 303 | 307 | 308) => {
                let to = excerpt(&received.location);
                Self::Redirected { status, to: if to.is_empty() { "nowhere".to_owned() } else { to } }
            }
            status => Self::Refused { status, body: received.excerpt() },
        }
    }

    /// The server is not there or not well: the episode is not to blame.
    pub fn is_infrastructure(&self) -> bool {
        self.verdict() != Verdict::Permanent
            || matches!(self, Self::Setup(_) | Self::TooLarge { .. } | Self::Redirected { .. })
    }
}

fn patience(asked: Option<Duration>) -> String {
    match asked {
        Some(time) => format!(" and to come back in {} s", time.as_secs_f64().ceil()),
        None => String::new(),
    }
}

impl From<Broken> for ModelError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Unreachable(reason) | Broken::Lost(reason) => Self::Unreachable { reason },
            Broken::Timeout => Self::Timeout { doing: "waiting for the model server" },
            Broken::TooLarge { limit } => Self::TooLarge { limit },
        }
    }
}

impl Transient for ModelError {
    fn verdict(&self) -> Verdict {
        match self {
            // 408 and 425 are a server's own way of saying "again".
            // An answer that is none was garbled on its way, as far as we can tell: the same question may get a good one.
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::BadAnswer { .. }
            | Self::Refused { status: 408 | 425 | 500..=599, .. } => Verdict::Retry,
            Self::RateLimited { retry_after } => Verdict::Later(*retry_after),
            Self::Refused { .. }
            | Self::Redirected { .. }
            | Self::TooLarge { .. }
            | Self::Image { .. }
            | Self::NoChatServer { .. }
            | Self::NotServed { .. }
            | Self::NoneNamed { .. }
            | Self::Setup(_) => Verdict::Permanent,
        }
    }
}
