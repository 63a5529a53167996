//! The client itself: sessions, attempts and authentication.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{Client, header::HeaderValue};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::{
    CallGate, ChatRequest, Completion, ModelError,
    completion::CompletionError,
    images::{self, ImageMode, Images},
    message::has_encoded_url,
    raw_prompt,
};
use crate::http::{self, Deadline, HttpResponse, RetryPolicy, retry};

#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Maximum of concurrent requests; further ones wait in order.
    pub sessions: usize,
    /// Limit for one attempt.
    pub attempt_timeout: Duration,
    pub retry: RetryPolicy,
    pub images: Images,
    pub max_response_bytes: usize,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            sessions: 64,
            attempt_timeout: Duration::from_secs(240),
            retry: RetryPolicy::default(),
            images: Images::Auto,
            max_response_bytes: 16 << 20,
        }
    }
}

/// The right to send one request at a time.
struct SessionPermit<'a> {
    permit: Option<SemaphorePermit<'a>>,
    ended: &'a Notify,
}

impl Drop for SessionPermit<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.ended.notify_waiters();
    }
}

/// A client of one chat server. Clones share connections, sessions and the image mode.
#[derive(Clone, Debug)]
pub struct ModelClient {
    pub(super) http: Client,
    /// The URL up to and including `/v1`.
    pub(super) root: Arc<str>,
    authorization: Option<HeaderValue>,
    options: Arc<ModelOptions>,
    sessions: Arc<Semaphore>,
    image_mode: Arc<ImageMode>,
    gate: Arc<CallGate>,
    /// Notified when a request ends.
    ended: Arc<Notify>,
}

impl ModelClient {
    /// Creates a client of a vLLM server. `/v1` is added to the URL unless it is there.
    pub fn vllm(server: &str, options: ModelOptions) -> Result<Self, ModelError> {
        let server = server.trim_end_matches('/');
        let root = if server.ends_with("/v1") { server.to_owned() } else { format!("{server}/v1") };
        Self::new(&root, options)
    }

    /// Creates a client of a service with an API key. `base_url` is what its paths start with.
    pub fn openai(base_url: &str, key: Option<&str>, options: ModelOptions) -> Result<Self, ModelError> {
        let client = Self::new(base_url.trim_end_matches('/'), options)?;
        match key {
            Some(key) => client.with_api_key(key),
            None => Ok(client),
        }
    }

    /// Sends an API key with every request.
    pub fn with_api_key(mut self, key: &str) -> Result<Self, ModelError> {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            ModelError::Setup("the API key has characters that are not allowed in a header".into())
        })?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    fn new(root: &str, options: ModelOptions) -> Result<Self, ModelError> {
        Ok(Self {
            http: http::client(root).map_err(ModelError::Setup)?,
            root: root.into(),
            authorization: None,
            sessions: Arc::new(Semaphore::new(options.sessions.max(1))),
            image_mode: Arc::new(ImageMode::new(options.images, root)),
            options: Arc::new(options),
            gate: Arc::default(),
            ended: Arc::default(),
        })
    }

    pub fn url(&self) -> &str {
        &self.root
    }

    /// Returns the number of requests in progress and the maximum.
    pub fn sessions_in_use(&self) -> (usize, usize) {
        let sessions = self.options.sessions.max(1);
        (sessions.saturating_sub(self.sessions.available_permits()), sessions)
    }

    /// Returns the gate that stops and restarts the requests of this client and its clones.
    pub fn gate(&self) -> &CallGate {
        &self.gate
    }

    /// Waits until no request is in progress.
    pub async fn wait_until_idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.sessions_in_use().0 == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Requests a completion. The deadline covers the wait for a session, all attempts and the pauses between them.
    pub async fn complete(&self, request: ChatRequest, deadline: Deadline) -> Result<Completion, ModelError> {
        self.complete_with_prompt(request, deadline).await.map(|(completion, _)| completion)
    }

    /// Requests a completion. Also returns the messages as [`raw_prompt`] does.
    pub async fn complete_with_prompt(
        &self,
        request: ChatRequest,
        deadline: Deadline,
    ) -> Result<(Completion, String), ModelError> {
        if request.has_images() && (self.image_mode.may_change() || !self.image_mode.uses_files()) {
            let completion =
                retry(&self.options.retry, deadline, || self.attempt(&request, deadline)).await?;
            return Ok((completion, raw_prompt(&request.messages)));
        }
        let body = images::body(&request, true).await?;
        let stored = (has_encoded_url(&request.messages) || request.image_detail.is_some())
            .then(|| raw_prompt(&request.messages));
        // Thousands of requests wait for their completions, so only the serialized form is kept.
        drop(request);
        let attempt = || async {
            let _session = self.session(deadline).await?;
            self.post(body.bytes.clone(), deadline).await
        };
        let completion = retry(&self.options.retry, deadline, attempt).await?;
        Ok((completion, stored.unwrap_or_else(|| body.messages().to_owned())))
    }

    /// Waits for a session while the gate is open. A session permits one request.
    async fn session(&self, deadline: Deadline) -> Result<SessionPermit<'_>, ModelError> {
        let timeout = || ModelError::Timeout { doing: "waiting for a session" };
        let session = async {
            loop {
                self.gate.wait_until_open().await;
                let permit = self.sessions.acquire().await.map_err(|_| timeout())?;
                let session = SessionPermit { permit: Some(permit), ended: &self.ended };
                // The gate may have been closed meanwhile. Once it is closed, only holders of sessions send requests.
                if !self.gate.is_closed() {
                    return Ok(session);
                }
            }
        };
        tokio::time::timeout(deadline.remaining(), session).await.unwrap_or_else(|_| Err(timeout()))
    }

    /// Sends a request with images and finds out which image mode works.
    async fn attempt(&self, request: &ChatRequest, deadline: Deadline) -> Result<Completion, ModelError> {
        let _session = self.session(deadline).await?;
        let as_files = self.image_mode.uses_files();
        let result = self.post(images::body(request, as_files).await?.bytes, deadline).await;
        match result {
            // A server that cannot read our files refuses the request, vLLM with status 500. If it accepts the images
            // inside the request, that was the cause.
            Err(ModelError::Refused { status: 400..=599, .. })
                if as_files && self.image_mode.may_change() =>
            {
                let result_inside = self.post(images::body(request, false).await?.bytes, deadline).await;
                if result_inside.is_ok() {
                    self.image_mode.settle(false);
                }
                match result_inside {
                    Err(ModelError::PromptTooLarge { .. }) | Ok(_) => result_inside,
                    Err(_) => result,
                }
            }
            Ok(completion) => {
                self.image_mode.settle(as_files);
                Ok(completion)
            }
            other => other,
        }
    }

    async fn post(&self, body: Bytes, deadline: Deadline) -> Result<Completion, ModelError> {
        let post = self.http.post(format!("{}/chat/completions", self.root));
        let post = self.authorized(post).header("content-type", "application/json").body(body);
        let response = self.send(post, self.options.attempt_timeout.min(deadline.remaining())).await?;
        let completion = Completion::read(&response.body).map_err(|error| bad_response(error, &response))?;
        Ok(Completion { policy_version: response.policy_version, ..completion })
    }

    pub(super) fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.authorization {
            Some(value) => request.header(reqwest::header::AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    pub(super) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        within: Duration,
    ) -> Result<HttpResponse, ModelError> {
        let response = http::send_request(request, within, self.options.max_response_bytes).await?;
        if response.status.is_success() { Ok(response) } else { Err(ModelError::refused(&response)) }
    }

    /// Returns whether the server answers a single request, with any status.
    pub async fn is_reachable(&self, within: Duration) -> bool {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        http::send_request(get, within, 1 << 20).await.is_ok()
    }
}

fn bad_response(error: CompletionError, response: &HttpResponse) -> ModelError {
    let reason = match error {
        CompletionError::TooLarge(limit) => return ModelError::TooLarge { limit },
        CompletionError::Invalid(_) if !response.encoding.is_empty() => {
            format!("it is compressed ({}), which was not requested", response.encoding)
        }
        CompletionError::Invalid(reason) => reason,
    };
    let content_type = match response.content_type.as_str() {
        "" => "no content type".to_owned(),
        named => named.to_owned(),
    };
    ModelError::BadResponse { reason, content_type, body: response.excerpt() }
}
