//! A web server that remembers every request it got: whoever should not have reached it is found out.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::Request,
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
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (served, caught): (Arc<Mutex<HashMap<String, Served>>>, Arc<Mutex<Vec<String>>>) =
            Default::default();
        let (pages, log) = (Arc::clone(&served), Arc::clone(&caught));
        let answer = async move |request: Request| {
            let path = request.uri().path().to_owned();
            log.lock().unwrap().push(format!("{} {path}", request.method()));
            let served = pages.lock().unwrap().get(&path).cloned();
            if let Some(Served::Held(until)) = &served {
                until.notified().await;
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

    /// Every request so far: method and path.
    pub fn caught(&self) -> Vec<String> {
        self.caught.lock().unwrap().clone()
    }
}

fn respond(served: Option<&Served>) -> Response {
    match served {
        Some(Served::Held(_)) => Html("here at last").into_response(),
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
