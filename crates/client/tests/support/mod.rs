//! A real HTTP server that answers what it is told to, in order, and remembers what it was asked.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri},
};
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Say {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Takes the request and never answers.
    Silence,
    /// Starts a body and breaks off.
    BreakOff,
}

pub(crate) fn say(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    Answer::Say { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
}

pub(crate) fn json(status: u16, body: &Value) -> Answer {
    say(status, "application/json", body.to_string())
}

#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub(crate) struct Server {
    script: Script,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Gives the answers in order; the last one again and again.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let script = Script { answers: Arc::new(Mutex::new(answers.into())), ..Script::default() };
        let router = Router::new().fallback(handle).with_state(script.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { script, address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn handle(
    State(script): State<Script>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let query = uri.query().unwrap_or_default().to_owned();
    let asked = Asked { method, path: uri.path().to_owned(), query, headers, body: body.to_vec() };
    script.asked.lock().unwrap().push(asked);
    let answer = {
        let mut answers = script.answers.lock().unwrap();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
    };
    match answer {
        Answer::Say { status, headers, body } => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).unwrap()
        }
        Answer::Silence => std::future::pending().await,
        Answer::BreakOff => {
            Response::builder().header("content-length", "1000").body(Body::from("{\"half\":")).unwrap()
        }
    }
}

/// An address where nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    format!("http://{address}")
}
