//! The client of an OpenAI-compatible chat server: vLLM for the policy, any such service for the judge. Bounded in
//! sessions, time and size; retried by kind of error; pictures by file address or inside the request.

mod answer;
mod error;
mod images;
mod message;
mod preflight;
mod request;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{Client, header::HeaderValue};
use tokio::sync::{Semaphore, SemaphorePermit};

use answer::Unusable;
pub use answer::{Completion, Usage};
pub use error::ModelError;
pub use images::Images;
pub use message::{Message, Part, Role, file_url, raw_prompt, to_json};
pub use request::ChatRequest;

use crate::http::{self, Deadline, Received, RetryPolicy, retrying};
use images::Carrier;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Requests at once; further ones wait in order.
    pub sessions: usize,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    pub retry: RetryPolicy,
    pub images: Images,
    /// Bytes of an answer.
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

/// Clones share connections, sessions and what was learnt about pictures.
#[derive(Clone, Debug)]
pub struct ModelClient {
    http: Client,
    /// Address up to and including `/v1`.
    root: Arc<str>,
    authorization: Option<HeaderValue>,
    options: Arc<ModelOptions>,
    places: Arc<Semaphore>,
    carrier: Arc<Carrier>,
}

impl ModelClient {
    /// A vLLM server by its address; `/v1` is added unless it is there.
    pub fn vllm(server: &str, options: ModelOptions) -> Result<Self, ModelError> {
        let server = server.trim_end_matches('/');
        let root = if server.ends_with("/v1") { server.to_owned() } else { format!("{server}/v1") };
        Self::new(&root, None, options)
    }

    /// A service by the address its paths start from, with the key it wants.
    pub fn openai(base_url: &str, key: Option<&str>, options: ModelOptions) -> Result<Self, ModelError> {
        Self::new(base_url.trim_end_matches('/'), key, options)
    }

    fn new(root: &str, key: Option<&str>, options: ModelOptions) -> Result<Self, ModelError> {
        let authorization = key.map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                ModelError::Setup("the API key has characters that no header can hold".into())
            })?;
            value.set_sensitive(true);
            Ok::<_, ModelError>(value)
        });
        Ok(Self {
            http: http::client(root).map_err(ModelError::Setup)?,
            root: root.into(),
            authorization: authorization.transpose()?,
            places: Arc::new(Semaphore::new(options.sessions.max(1))),
            carrier: Arc::new(Carrier::new(options.images, root)),
            options: Arc::new(options),
        })
    }

    pub fn address(&self) -> &str {
        &self.root
    }

    /// How many requests are under way, of how many at once.
    pub fn busy(&self) -> (usize, usize) {
        let sessions = self.options.sessions.max(1);
        (sessions.saturating_sub(self.places.available_permits()), sessions)
    }

    /// Asks for one completion. Waiting for a session, all attempts and the pauses between them end by `deadline`.
    pub async fn complete(&self, request: ChatRequest, deadline: Deadline) -> Result<Completion, ModelError> {
        self.converse(request, deadline).await.map(|(completion, _)| completion)
    }

    /// The same, and the messages as JSON text with their pictures as `file://` addresses.
    pub async fn converse(
        &self,
        request: ChatRequest,
        deadline: Deadline,
    ) -> Result<(Completion, String), ModelError> {
        if request.has_images() && (self.carrier.may_switch() || !self.carrier.prefers_files()) {
            let completion =
                retrying(&self.options.retry, deadline, || self.attempt(&request, deadline)).await?;
            return Ok((completion, raw_prompt(&request.messages)));
        }
        let body = images::body(&request, true).await?;
        // Thousands wait for their answers: one form of the question is enough.
        drop(request);
        let attempt = || async {
            let _place = self.place(deadline).await?;
            self.post(body.bytes.clone(), deadline).await
        };
        let completion = retrying(&self.options.retry, deadline, attempt).await?;
        Ok((completion, body.messages().to_owned()))
    }

    async fn place(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, ModelError> {
        let waited = tokio::time::timeout(deadline.remaining(), self.places.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or(ModelError::Timeout { doing: "waiting for a session" })
    }

    /// An attempt whose pictures may have to travel another way than it seemed.
    async fn attempt(&self, request: &ChatRequest, deadline: Deadline) -> Result<Completion, ModelError> {
        let _place = self.place(deadline).await?;
        let as_files = self.carrier.prefers_files();
        let result = self.post(images::body(request, as_files).await?.bytes, deadline).await;
        match result {
            // A server that cannot read our files refuses the request; the same one with the pictures inside tells.
            Err(ModelError::Refused { status: 400..=499, .. }) if as_files && self.carrier.may_switch() => {
                let inside = self.post(images::body(request, false).await?.bytes, deadline).await;
                if inside.is_ok() {
                    self.carrier.settle_on(false);
                }
                inside.or(result)
            }
            Ok(completion) => {
                self.carrier.settle_on(as_files);
                Ok(completion)
            }
            other => other,
        }
    }

    async fn post(&self, body: Bytes, deadline: Deadline) -> Result<Completion, ModelError> {
        let post = self.http.post(format!("{}/chat/completions", self.root));
        let post = self.authorized(post).header("content-type", "application/json").body(body);
        let received = self.send(post, self.options.attempt_timeout.min(deadline.remaining())).await?;
        Completion::read(&received.body).map_err(|problem| unusable(problem, &received))
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.authorization {
            Some(value) => request.header(reqwest::header::AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder, within: Duration) -> Result<Received, ModelError> {
        let received = http::exchange(request, within, self.options.max_response_bytes).await?;
        if received.status.is_success() { Ok(received) } else { Err(ModelError::refused(&received)) }
    }

    /// Is anyone there? Any HTTP answer counts; one quick try.
    pub async fn is_reachable(&self, within: Duration) -> bool {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        http::exchange(get, within, 1 << 20).await.is_ok()
    }
}

fn unusable(problem: Unusable, received: &Received) -> ModelError {
    let reason = match problem {
        Unusable::TooLarge(limit) => return ModelError::TooLarge { limit },
        Unusable::Because(_) if !received.encoding.is_empty() => {
            format!("it is packed ({}), which was not asked for", received.encoding)
        }
        Unusable::Because(reason) => reason,
    };
    let content_type = match received.content_type.as_str() {
        "" => "of no content type".to_owned(),
        named => named.to_owned(),
    };
    ModelError::BadAnswer { reason, content_type, body: received.excerpt() }
}
