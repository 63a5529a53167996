//! The client of a farm: the master's HTTP API, ours or the Python system's. It knows which calls may be repeated, tells
//! errors apart by kind, and uses the one-round-trip calls where they are offered.

mod calls;
mod error;
mod plain;
mod wire;

use std::{
    sync::{Arc, atomic::AtomicU8},
    time::Duration,
};

use reqwest::{Client, RequestBuilder, header::HeaderValue};

pub use error::ClientError;
pub use wire::{
    FarmInfo, Lease, NodeInfo, Observation, ObserveOptions, Screenshot, Viewport, read_screenshot_info,
};

use crate::http::{self, Deadline, Received, RetryPolicy, Transient, Verdict, retrying};

#[derive(Clone, Debug)]
pub struct FarmOptions {
    /// How long one attempt at an operation may take.
    pub operation_timeout: Duration,
    pub retry: RetryPolicy,
    /// Bytes of an answer.
    pub max_response_bytes: usize,
}

impl Default for FarmOptions {
    fn default() -> Self {
        Self {
            operation_timeout: Duration::from_secs(120),
            retry: RetryPolicy::default(),
            max_response_bytes: 64 << 20,
        }
    }
}

/// Clones share connections and what was learnt about the farm.
#[derive(Clone, Debug)]
pub struct FarmClient {
    http: Client,
    root: Arc<str>,
    key: HeaderValue,
    options: Arc<FarmOptions>,
    /// Does the farm offer `/step` and `/observe`? See [`calls::Offer`].
    offer: Arc<AtomicU8>,
}

/// Whether a call may be sent again when nobody knows if it was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Twice does the same as once.
    Harmless,
    /// Only when it never left.
    OnlyUnsent,
}

/// An error together with what may be done about it.
struct Attempted {
    error: ClientError,
    repeat: Repeat,
}

impl Transient for Attempted {
    fn verdict(&self) -> Verdict {
        match &self.error {
            ClientError::Full(_) => Verdict::Later(None),
            ClientError::Unreachable(_) => Verdict::Retry,
            ClientError::AnswerLost(_)
            | ClientError::Timeout(_)
            | ClientError::NavigationFailed(_)
            | ClientError::NodeUnreachable(_)
            | ClientError::Other(_)
                if self.repeat == Repeat::Harmless =>
            {
                Verdict::Retry
            }
            _ => Verdict::Permanent,
        }
    }
}

impl FarmClient {
    /// `root` is the farm's address, such as `http://host:7000`.
    pub fn new(root: &str, key: &str, options: FarmOptions) -> Result<Self, ClientError> {
        let mut key = HeaderValue::from_str(key)
            .map_err(|_| ClientError::Auth("the key has characters that no header can hold".into()))?;
        key.set_sensitive(true);
        let root = root.trim_end_matches('/');
        Ok(Self {
            http: http::client(root).map_err(ClientError::Other)?,
            root: root.into(),
            key,
            options: Arc::new(options),
            offer: Arc::new(AtomicU8::new(0)),
        })
    }

    pub fn address(&self) -> &str {
        &self.root
    }

    fn request(&self, method: reqwest::Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.root)).header("x-api-key", self.key.clone())
    }

    /// Sends a request, again where that makes sense, and reads its answer.
    async fn call<T>(
        &self,
        deadline: Deadline,
        repeat: Repeat,
        request: impl Fn() -> RequestBuilder,
        read: impl Fn(&Received) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        self.call_within(self.options.operation_timeout, deadline, repeat, request, read).await
    }

    async fn call_within<T>(
        &self,
        timeout: Duration,
        deadline: Deadline,
        repeat: Repeat,
        request: impl Fn() -> RequestBuilder,
        read: impl Fn(&Received) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let attempt = || async {
            let within = timeout.min(deadline.remaining());
            let received = http::exchange(request(), within, self.options.max_response_bytes).await;
            let result = received.map_err(ClientError::from).and_then(|received| {
                if received.status.is_success() {
                    read(&received)
                } else {
                    Err(ClientError::of_answer(&received))
                }
            });
            result.map_err(|error| Attempted { error, repeat })
        };
        retrying(&self.options.retry, deadline, attempt).await.map_err(|attempted| attempted.error)
    }
}
