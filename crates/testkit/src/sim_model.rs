//! A model without a model: a real HTTP server that speaks the OpenAI dialect and says what a script tells it to,
//! as policy or as judge. Remembers what was asked and how much at once.

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

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Counted from 0 over the whole server.
    pub number: usize,
    pub path: String,
    pub model: String,
    pub authorization: String,
    /// All texts of all messages, one after the other.
    pub text: String,
    /// The addresses of all pictures.
    pub images: Vec<String>,
    pub body: Value,
}

impl Question {
    /// The number after the last `Step ` in a policy's prompt.
    pub fn step(&self) -> usize {
        let after = self.text.rsplit("\nStep ").next().unwrap_or_default();
        let after = if self.text.contains("\nStep ") {
            after
        } else {
            self.text.rsplit("Step ").next().unwrap_or_default()
        };
        after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    }

    /// The task's words in a policy's prompt.
    pub fn task(&self) -> &str {
        let after = self.text.split("\nTask: ").nth(1).or_else(|| self.text.split("Task: ").nth(1));
        after.and_then(|text| text.lines().next()).unwrap_or_default()
    }
}

/// What the server does about it.
#[derive(Clone, Debug)]
pub enum Said {
    Reply(String),
    After(Duration, String),
    /// A refusal with this status and these words.
    Status(u16, String),
    /// 429, with `Retry-After` in seconds when given.
    SlowDown(Option<f64>),
    /// A reply that the server cut off at its length limit.
    Cut(String),
    /// A completion that the server's content filter cut.
    Filtered,
    Garbage,
    Silence,
}

impl Said {
    /// A reply with one tool call in it.
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

pub type Speaker = Arc<dyn Fn(&Question) -> Said + Send + Sync>;

struct Shared {
    speaker: Speaker,
    latency: Duration,
    remember: bool,
    count: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
    asked: Mutex<Vec<Question>>,
}

pub struct SimModel {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl SimModel {
    pub async fn start(speaker: impl Fn(&Question) -> Said + Send + Sync + 'static) -> Self {
        Self::start_with(Duration::ZERO, true, Arc::new(speaker)).await
    }

    /// With a latency for every reply, and with or without a memory of what was asked.
    pub async fn start_with(latency: Duration, remember: bool, speaker: Speaker) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), latency, remember, speaker).await
    }

    /// At a given address, as a server that comes back.
    pub async fn start_at(address: SocketAddr, latency: Duration, remember: bool, speaker: Speaker) -> Self {
        let shared = Arc::new(Shared {
            speaker,
            latency,
            remember,
            count: AtomicUsize::new(0),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            asked: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let router = router.layer(axum::extract::DefaultBodyLimit::disable());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Question> {
        self.shared.asked.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// The most questions at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }
}

impl Drop for SimModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Counted<'a>(&'a Shared);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if uri.path().ends_with("/models") {
        return say(200, &json!({"data": [{"id": "sim"}]}));
    }
    let now = shared.now.fetch_add(1, Ordering::SeqCst) + 1;
    let _counted = Counted(&shared);
    shared.most.fetch_max(now, Ordering::SeqCst);
    let question = read(&shared, &uri, &headers, &body);
    let said = (shared.speaker)(&question);
    if shared.remember {
        shared.asked.lock().unwrap().push(question);
    }
    tokio::time::sleep(shared.latency).await;
    match said {
        Said::Reply(text) => say(200, &completion(&text, "stop")),
        Said::After(time, text) => {
            tokio::time::sleep(time).await;
            say(200, &completion(&text, "stop"))
        }
        Said::Status(status, words) => say(status, &json!({"error": {"message": words}})),
        Said::SlowDown(after) => {
            let mut response = say(429, &json!({"error": {"message": "slow down"}}));
            if let Some(seconds) = after {
                response.headers_mut().insert("retry-after", seconds.to_string().parse().unwrap());
            }
            response
        }
        Said::Cut(text) => say(200, &completion(&text, "length")),
        Said::Filtered => say(200, &completion("", "content_filter")),
        Said::Garbage => Response::new(Body::from("<html>a proxy's page</html>")),
        Said::Silence => std::future::pending().await,
    }
}

fn read(shared: &Shared, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Question {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let (mut text, mut images) = (String::new(), Vec::new());
    for message in body["messages"].as_array().into_iter().flatten() {
        match &message["content"] {
            Value::String(words) => text.extend([words, "\n"]),
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
    Question {
        number: shared.count.fetch_add(1, Ordering::SeqCst),
        path: uri.path().to_owned(),
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        authorization: header("authorization"),
        text,
        images,
        body: if shared.remember { body } else { Value::Null },
    }
}

fn completion(text: &str, finish_reason: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}]})
}

fn say(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}
