//! A real HTTP server that gives scripted responses in order and records the requests.

#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri},
};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Clone, Debug)]
pub(crate) enum ScriptedResponse {
    Respond {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Accepts the request and never responds.
    Silence,
    /// Sends part of a body and closes the connection.
    Disconnect,
}

pub(crate) fn respond(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> ScriptedResponse {
    ScriptedResponse::Respond {
        status,
        headers: vec![("content-type", content_type.to_owned())],
        body: body.into(),
    }
}

pub(crate) fn json_response(status: u16, body: &Value) -> ScriptedResponse {
    respond(status, "application/json", body.to_string())
}

#[derive(Clone, Default)]
struct Script {
    responses: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

pub(crate) struct Server {
    script: Script,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts a server that gives the responses in order and repeats the last one.
    pub(crate) async fn start(responses: Vec<ScriptedResponse>) -> Self {
        let script = Script { responses: Arc::new(Mutex::new(responses.into())), ..Script::default() };
        let router = Router::new().fallback(handle).with_state(script.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { script, address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.script.requests.lock().unwrap().clone()
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
    let request =
        ReceivedRequest { method, path: uri.path().to_owned(), query, headers, body: body.to_vec() };
    script.requests.lock().unwrap().push(request);
    let response = {
        let mut responses = script.responses.lock().unwrap();
        if responses.len() > 1 { responses.pop_front().unwrap() } else { responses[0].clone() }
    };
    match response {
        ScriptedResponse::Respond { status, headers, body } => {
            let mut builder = Response::builder().status(status);
            for (name, value) in headers {
                builder = builder.header(name, value);
            }
            builder.body(Body::from(body)).unwrap()
        }
        ScriptedResponse::Silence => std::future::pending().await,
        ScriptedResponse::Disconnect => {
            // An error of the body closes the connection, after a pause in which the first part is sent.
            let part = stream::once(async { Ok(Bytes::from_static(b"{\"half\":")) });
            let error = stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("disconnected by the script"))
            });
            let body = Body::from_stream(part.chain(error));
            Response::builder().header("content-length", "1000").body(body).unwrap()
        }
    }
}

/// Returns an address at which no server listens.
pub(crate) async fn closed_port_url() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    format!("http://{address}")
}
