//! The client itself: connection, key, and the retry of calls.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::{Client, RequestBuilder, header::HeaderValue};

use super::ClientError;
use crate::http::{self, Deadline, HttpResponse, KeepAlive, RetryAdvice, RetryPolicy, Retryable, retry};

#[derive(Clone, Debug)]
pub struct FarmClientOptions {
    /// Limit for one attempt at an operation.
    pub operation_timeout: Duration,
    pub retry: RetryPolicy,
    pub max_response_bytes: usize,
    pub keep_alive: KeepAlive,
}

impl Default for FarmClientOptions {
    fn default() -> Self {
        Self {
            operation_timeout: Duration::from_secs(120),
            retry: RetryPolicy::default(),
            max_response_bytes: 64 << 20,
            keep_alive: KeepAlive::Short,
        }
    }
}

/// A client of one farm. Clones share connections and what is known about the farm.
#[derive(Clone, Debug)]
pub struct FarmClient {
    pub(super) http: Client,
    root: Arc<str>,
    key: HeaderValue,
    pub(super) options: Arc<FarmClientOptions>,
    pub(super) step_support: Arc<Mutex<StepSupport>>,
}

/// What is known about `/step` and `/observe`.
#[derive(Debug, Default)]
pub(super) struct StepSupport {
    /// Whether the farm's OpenAPI document has them; `None` before it was read.
    pub(super) is_advertised: Option<bool>,
    /// Nodes that do not have them although the farm does: a master of ours may have nodes of the Python system.
    pub(super) nodes_without: HashSet<String>,
}

/// Whether a call may be sent again when it is unknown if it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Executing it twice has the same effect as once.
    Safe,
    /// Only if the request was not sent.
    IfUnsent,
}

/// An error of a call, with whether the call may be repeated.
struct FailedCall {
    error: ClientError,
    repeat: Repeat,
}

impl Retryable for FailedCall {
    fn retry_advice(&self) -> RetryAdvice {
        match &self.error {
            ClientError::Full(_) => RetryAdvice::RetryAfter(None),
            ClientError::Unreachable(_) => RetryAdvice::Retry,
            ClientError::ResponseLost(_)
            | ClientError::PageTimeout(_)
            | ClientError::Timeout(_)
            | ClientError::NavigationFailed(_)
            | ClientError::NodeUnreachable(_)
            | ClientError::Other(_)
                if self.repeat == Repeat::Safe =>
            {
                RetryAdvice::Retry
            }
            _ => RetryAdvice::Permanent,
        }
    }
}

impl FarmClient {
    /// `root` is the farm's URL, such as `http://host:7000`.
    pub fn new(root: &str, key: &str, options: FarmClientOptions) -> Result<Self, ClientError> {
        let mut key = HeaderValue::from_str(key).map_err(|_| {
            ClientError::Auth("the key has characters that are not allowed in a header".into())
        })?;
        key.set_sensitive(true);
        let root = root.trim_end_matches('/');
        Ok(Self {
            http: http::client_keeping(root, options.keep_alive).map_err(ClientError::Other)?,
            root: root.into(),
            key,
            options: Arc::new(options),
            step_support: Arc::default(),
        })
    }

    pub fn url(&self) -> &str {
        &self.root
    }

    pub(super) fn request(&self, method: reqwest::Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.root)).header("x-api-key", self.key.clone())
    }

    /// Sends a request, with retries where allowed, and parses its response.
    pub(super) async fn call<T>(
        &self,
        deadline: Deadline,
        repeat: Repeat,
        request: impl Fn() -> RequestBuilder,
        read: impl Fn(&HttpResponse) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        self.call_within(self.options.operation_timeout, deadline, repeat, request, read).await
    }

    pub(super) async fn call_within<T>(
        &self,
        timeout: Duration,
        deadline: Deadline,
        repeat: Repeat,
        request: impl Fn() -> RequestBuilder,
        read: impl Fn(&HttpResponse) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let attempt = || async {
            let within = timeout.min(deadline.remaining());
            let response = http::send_request(request(), within, self.options.max_response_bytes).await;
            let result = response.map_err(ClientError::from).and_then(|response| {
                if response.status.is_success() {
                    read(&response)
                } else {
                    Err(ClientError::of_response(&response))
                }
            });
            result.map_err(|error| FailedCall { error, repeat })
        };
        retry(&self.options.retry, deadline, attempt).await.map_err(|failed| failed.error)
    }
}
