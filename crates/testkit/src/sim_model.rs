//! A simulated model server: a real HTTP server with the OpenAI chat API whose replies come from a script, for use as
//! policy or judge. It records requests and how many were in progress at the same time.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Response, Uri},
};
use serde_json::{Value, json};

/// One chat completion request.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The index of the request on this server, from 0.
    pub number: usize,
    pub path: String,
    pub model: String,
    pub authorization: String,
    /// The text parts of all messages, concatenated.
    pub text: String,
    /// The URLs of all images.
    pub images: Vec<String>,
    pub body: Value,
}

impl ModelRequest {
    /// Returns the number after the last `Step ` in a policy's prompt.
    pub fn step(&self) -> usize {
        let after = self.text.rsplit("\nStep ").next().unwrap_or_default();
        let after = if self.text.contains("\nStep ") {
            after
        } else {
            self.text.rsplit("Step ").next().unwrap_or_default()
        };
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    }

    /// Returns the task description in a policy's prompt.
    pub fn task(&self) -> &str {
        let after = self.text.split("\nTask: ").nth(1).or_else(|| self.text.split("Task: ").nth(1));
        after.and_then(|text| text.lines().next()).unwrap_or_default()
    }
}

/// How the server responds to a request.
#[derive(Clone, Debug)]
pub enum ModelReply {
    Reply(String),
    Delayed(Duration, String),
    /// An error with this status and message.
    Status(u16, String),
    /// A response with this status and JSON body.
    Json(u16, Value),
    /// 429, with `Retry-After` in seconds when given.
    RateLimited(Option<f64>),
    /// A reply (the second text) of this version of the policy.
    Versioned(&'static str, String),
    /// A reply that ends at the server's length limit.
    Truncated(String),
    /// An empty reply with the finish reason `content_filter`.
    Filtered,
    /// A page that is not JSON.
    Garbage,
    /// The request is never answered.
    Never,
}

impl ModelReply {
    /// A reply with one tool call.
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::Reply(format!(
            "Action: {}\n<tool_call>\n{}\n</tool_call>",
            arguments["action"],
            json!({"name": name, "arguments": arguments})
        ))
    }

    pub fn answer(text: &str) -> Self {
        Self::call("computer_use", &json!({"action": "answer", "text": text}))
    }

    pub fn click(x: u32, y: u32) -> Self {
        Self::call("computer_use", &json!({"action": "left_click", "coordinate": [x, y]}))
    }

    pub fn navigate(url: &str) -> Self {
        Self::call("computer_use", &json!({"action": "navigate", "url": url}))
    }

    pub fn go_back() -> Self {
        Self::call("computer_use", &json!({"action": "go_back"}))
    }
}

pub type ReplyScript = Arc<dyn Fn(&ModelRequest) -> ModelReply + Send + Sync>;

struct ServerState {
    script: ReplyScript,
    latency: Duration,
    record: bool,
    count: AtomicUsize,
    in_progress: AtomicUsize,
    max_in_progress: AtomicUsize,
    requests: Mutex<Vec<ModelRequest>>,
}

pub struct SimModel {
    state: Arc<ServerState>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl SimModel {
    pub async fn start(script: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static) -> Self {
        Self::start_with(Duration::ZERO, true, Arc::new(script)).await
    }

    /// Starts it with a latency for every reply, and with or without a record of the requests.
    pub async fn start_with(latency: Duration, record: bool, script: ReplyScript) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), latency, record, script).await
    }

    /// Starts it at a given address, like a server that restarts.
    pub async fn start_at(address: SocketAddr, latency: Duration, record: bool, script: ReplyScript) -> Self {
        Self::serve(address, latency, record, script, |router| router).await
    }

    /// Starts it with more routes or layers.
    pub(crate) async fn start_wrapped(script: ReplyScript, wrap: impl FnOnce(Router) -> Router) -> Self {
        Self::serve("127.0.0.1:0".parse().unwrap(), Duration::ZERO, true, script, wrap).await
    }

    async fn serve(
        address: SocketAddr,
        latency: Duration,
        record: bool,
        script: ReplyScript,
        wrap: impl FnOnce(Router) -> Router,
    ) -> Self {
        let state = Arc::new(ServerState {
            script,
            latency,
            record,
            count: AtomicUsize::new(0),
            in_progress: AtomicUsize::new(0),
            max_in_progress: AtomicUsize::new(0),
            requests: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(handle).with_state(Arc::clone(&state));
        let router = wrap(router).layer(axum::extract::DefaultBodyLimit::disable());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { state, address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.state.count.load(Ordering::SeqCst)
    }

    /// Returns the highest number of requests in progress at the same time.
    pub fn max_concurrent(&self) -> usize {
        self.state.max_in_progress.load(Ordering::SeqCst)
    }
}

impl Drop for SimModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct InProgress<'a>(&'a ServerState);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn handle(
    State(state): State<Arc<ServerState>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if uri.path().ends_with("/models") {
        return json_response(200, &json!({"data": [{"id": "sim"}]}));
    }
    let now = state.in_progress.fetch_add(1, Ordering::SeqCst) + 1;
    let _in_progress = InProgress(&state);
    state.max_in_progress.fetch_max(now, Ordering::SeqCst);
    let request = parse_request(&state, &uri, &headers, &body);
    let reply = (state.script)(&request);
    if state.record {
        state.requests.lock().unwrap().push(request);
    }
    tokio::time::sleep(state.latency).await;
    match reply {
        ModelReply::Reply(text) => json_response(200, &completion(&text, "stop")),
        ModelReply::Delayed(time, text) => {
            tokio::time::sleep(time).await;
            json_response(200, &completion(&text, "stop"))
        }
        ModelReply::Status(status, message) => json_response(status, &json!({"error": {"message": message}})),
        ModelReply::Json(status, body) => json_response(status, &body),
        ModelReply::RateLimited(after) => {
            let mut response = json_response(429, &json!({"error": {"message": "slow down"}}));
            if let Some(seconds) = after {
                response.headers_mut().insert("retry-after", seconds.to_string().parse().unwrap());
            }
            response
        }
        ModelReply::Versioned(version, text) => {
            let mut response = json_response(200, &completion(&text, "stop"));
            response.headers_mut().insert("x-policy-version", version.parse().unwrap());
            response
        }
        ModelReply::Truncated(text) => json_response(200, &completion(&text, "length")),
        ModelReply::Filtered => json_response(200, &completion("", "content_filter")),
        ModelReply::Garbage => Response::new(Body::from("<html>a proxy's page</html>")),
        ModelReply::Never => std::future::pending().await,
    }
}

fn parse_request(state: &ServerState, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> ModelRequest {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let (mut text, mut images) = (String::new(), Vec::new());
    for message in body["messages"].as_array().into_iter().flatten() {
        match &message["content"] {
            Value::String(content) => text.extend([content, "\n"]),
            content => {
                for part in content.as_array().into_iter().flatten() {
                    text.extend([part["text"].as_str().unwrap_or_default(), "\n"]);
                    images.extend(part["image_url"]["url"].as_str().map(str::to_owned));
                }
            }
        }
    }
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    ModelRequest {
        number: state.count.fetch_add(1, Ordering::SeqCst),
        path: uri.path().to_owned(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        authorization: header("authorization"),
        text,
        images,
        body: if state.record { body } else { Value::Null },
    }
}

fn completion(text: &str, finish_reason: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}]})
}

pub(crate) fn json_response(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}
