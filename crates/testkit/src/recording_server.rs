//! A web server that records every request, so that a test can check what reached it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{
        FromRequestParts, Request,
        ws::{Message, WebSocketUpgrade},
    },
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use tokio::{net::TcpListener, sync::Notify, task::AbortHandle};

/// What the server returns for a path.
#[derive(Clone, Debug)]
pub enum Served {
    Page(String),
    Redirect(String),
    /// What a proxy answers that wants other credentials.
    ProxyAuthentication,
    /// A page that is sent only after a notification.
    Held(Arc<Notify>),
    /// A body with these headers.
    File(Vec<(&'static str, &'static str)>, Vec<u8>),
    /// A WebSocket that sends one message: this character, repeated.
    Socket(char, usize),
}

/// Runs until dropped. Unknown paths return [`RecordingServer::SECRET`], which no test page should be able to read.
pub struct RecordingServer {
    pub address: SocketAddr,
    served: Arc<Mutex<HashMap<String, Served>>>,
    requests: Arc<Mutex<Vec<String>>>,
    serving: AbortHandle,
}

impl RecordingServer {
    pub const SECRET: &str = "the-secret-word";

    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Starts it on a given address.
    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("an address");
        let served = Arc::<Mutex<HashMap<String, Served>>>::default();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (pages, log) = (Arc::clone(&served), Arc::clone(&requests));
        let answer = async move |request: Request| {
            let path = request.uri().path().to_owned();
            log.lock().unwrap().push(describe(&request));
            let served = pages.lock().unwrap().get(&path).cloned();
            if let Some(Served::Held(until)) = &served {
                until.notified().await;
            }
            if let Some(Served::Socket(letter, times)) = served {
                return send_message(request, letter, times).await;
            }
            respond(served.as_ref())
        };
        let serving = tokio::spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.expect("the server runs");
        });
        Self { address, served, requests, serving: serving.abort_handle() }
    }

    pub fn serve(&self, path: &str, what: Served) {
        self.served.lock().unwrap().insert(path.to_owned(), what);
    }

    /// Returns all requests so far as method and path, followed by the `If-None-Match` validator if there is one.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn describe(request: &Request) -> String {
    let validator = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let validator = validator.map(|tag| format!(" if-none-match {tag}")).unwrap_or_default();
    format!("{} {}{validator}", request.method(), request.uri().path())
}

async fn send_message(request: Request, letter: char, times: usize) -> Response {
    let (mut head, _) = request.into_parts();
    match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
        Ok(upgrade) => upgrade.max_message_size(usize::MAX).on_upgrade(async move |mut socket| {
            let text = letter.to_string().repeat(times);
            let _ = socket.send(Message::Text(text.into())).await;
            // Keep the socket open until the client closes it.
            while let Some(Ok(_)) = socket.recv().await {}
        }),
        Err(refused) => refused.into_response(),
    }
}

fn respond(served: Option<&Served>) -> Response {
    match served {
        Some(Served::Held(_) | Served::Socket(..)) => Html("here at last").into_response(),
        Some(Served::File(headers, bytes)) => {
            let response = Response::builder();
            let response =
                headers.iter().fold(response, |response, (name, value)| response.header(*name, *value));
            response.body(Body::from(bytes.clone())).expect("a valid response")
        }
        Some(Served::Page(page)) => Html(page.clone()).into_response(),
        Some(Served::ProxyAuthentication) => StatusCode::PROXY_AUTHENTICATION_REQUIRED.into_response(),
        Some(Served::Redirect(to)) => (StatusCode::FOUND, [(header::LOCATION, to.clone())]).into_response(),
        None => ([(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], RecordingServer::SECRET).into_response(),
    }
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
