//! A web server that remembers every request it got: whoever should not have reached it is found out.

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

/// What is at a path.
#[derive(Clone, Debug)]
pub enum Served {
    Page(String),
    Redirect(String),
    /// A page that comes once somebody says so.
    Held(Arc<Notify>),
    /// These headers and bytes.
    File(Vec<(&'static str, &'static str)>, Vec<u8>),
    /// A socket that says one thing: this character, so many times.
    Socket(char, usize),
}

/// Runs until dropped. Paths it does not know are answered too, with a word nobody should read.
pub struct Trap {
    pub address: SocketAddr,
    served: Arc<Mutex<HashMap<String, Served>>>,
    caught: Arc<Mutex<Vec<String>>>,
    serving: AbortHandle,
}

impl Trap {
    pub const SECRET: &str = "the-secret-word";

    pub async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    /// The same on an address of one's own.
    pub async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("an address");
        let (served, caught): (Arc<Mutex<HashMap<String, Served>>>, Arc<Mutex<Vec<String>>>) =
            Default::default();
        let (pages, log) = (Arc::clone(&served), Arc::clone(&caught));
        let answer = async move |request: Request| {
            let path = request.uri().path().to_owned();
            log.lock().unwrap().push(told(&request));
            let served = pages.lock().unwrap().get(&path).cloned();
            if let Some(Served::Held(until)) = &served {
                until.notified().await;
            }
            if let Some(Served::Socket(letter, times)) = served {
                return speak(request, letter, times).await;
            }
            respond(served.as_ref())
        };
        let serving = tokio::spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.expect("it serves");
        });
        Self { address, served, caught, serving: serving.abort_handle() }
    }

    pub fn serve(&self, path: &str, what: Served) {
        self.served.lock().unwrap().insert(path.to_owned(), what);
    }

    /// Every request so far: method and path, and behind them the validator of a cached copy if it came with one.
    pub fn caught(&self) -> Vec<String> {
        self.caught.lock().unwrap().clone()
    }
}

fn told(request: &Request) -> String {
    let validator = request.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let validator = validator.map(|tag| format!(" if-none-match {tag}")).unwrap_or_default();
    format!("{} {}{validator}", request.method(), request.uri().path())
}

async fn speak(request: Request, letter: char, times: usize) -> Response {
    let (mut head, _) = request.into_parts();
    match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
        Ok(upgrade) => upgrade.max_message_size(usize::MAX).on_upgrade(async move |mut socket| {
            let said = letter.to_string().repeat(times);
            let _ = socket.send(Message::Text(said.into())).await;
            // Until the other side has had enough.
            while let Some(Ok(_)) = socket.recv().await {}
        }),
        Err(refused) => refused.into_response(),
    }
}

fn respond(served: Option<&Served>) -> Response {
    match served {
        Some(Served::Held(_) | Served::Socket(..)) => Html("here at last").into_response(),
        Some(Served::File(headers, bytes)) => {
            let answer = Response::builder();
            let answer = headers.iter().fold(answer, |answer, (name, value)| answer.header(*name, *value));
            answer.body(Body::from(bytes.clone())).expect("an answer")
        }
        Some(Served::Page(page)) => Html(page.clone()).into_response(),
        Some(Served::Redirect(to)) => (StatusCode::FOUND, [(header::LOCATION, to.clone())]).into_response(),
        None => ([(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], Trap::SECRET).into_response(),
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
