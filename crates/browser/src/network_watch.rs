//! The network events of the page that commands act on, of its frames and of its workers, with the bodies of responses. It uses
//! sessions of its own, and follows when another page takes its place. Service workers are not part of a page: their requests
//! are not seen.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cdp::{CallError, EventHandler, IgnoreEvents, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Notify, watch};

use crate::{
    error::BrowserError,
    tenant::{ClientSession, TenantBrowser},
};

const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait before a page that could not be attached to is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// What the browser keeps of the responses of a page, and of one response.
const MAX_KEPT_BYTES: u32 = 256 << 20;
const MAX_BODY_BYTES: u32 = 64 << 20;

/// Receives network events. Called on the reading task of the connection; must not block.
pub trait NetworkSink: Send + Sync + 'static {
    fn on_network(&self, source: &NetworkSource, method: &str, params: &[u8]);
}

/// The target that an event came from. Request ids are unique within it.
#[derive(Clone)]
pub struct NetworkSource(Session);

impl NetworkSource {
    /// Tells the targets of a tenant apart.
    pub fn id(&self) -> &str {
        self.0.id().unwrap_or_default()
    }

    /// Returns the decoded body of a response that has arrived.
    pub async fn body(&self, request_id: &str) -> Result<Bytes, BrowserError> {
        let params = json!({"requestId": request_id});
        let Body { body, base64_encoded } =
            self.0.call_within(CALL_TIMEOUT, p::NETWORK_GET_RESPONSE_BODY, &params).await?;
        if !base64_encoded {
            return Ok(body.into());
        }
        let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, body);
        decoded
            .map(Bytes::from)
            .map_err(|error| BrowserError::Internal(format!("a body that is not Base64: {error}")))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    body: String,
    base64_encoded: bool,
}

/// Watches the network of one tenant. Dropping it ends that.
pub struct NetworkWatch {
    tenant: TenantBrowser,
    client: ClientSession,
    sink: Arc<dyn NetworkSink>,
    has_started: watch::Sender<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
}

impl TenantBrowser {
    /// Prepares a watch; [`NetworkWatch::run`] reports.
    pub async fn open_network_watch(&self, sink: Arc<dyn NetworkSink>) -> Result<NetworkWatch, BrowserError> {
        let client = self.open_session(Arc::new(IgnoreEvents)).await?;
        Ok(NetworkWatch { tenant: self.clone(), client, sink, has_started: watch::Sender::new(false) })
    }
}

impl NetworkWatch {
    /// Returns a receiver that is true once a page is watched: every later request is reported.
    pub fn has_started(&self) -> watch::Receiver<bool> {
        self.has_started.subscribe()
    }

    /// Watches the current page until the browser is gone.
    pub async fn run(&self) {
        let mut current = self.tenant.context().current_page();
        while self.tenant.connection().close_reason().is_none() {
            let target = current.borrow_and_update().clone();
            if let Some(target) = target {
                let ended = Arc::new(Notify::new());
                match self.attach(&target, Arc::clone(&ended)).await {
                    Ok(_page) => {
                        self.has_started.send_replace(true);
                        tokio::select! {
                            changed = current.changed() => if changed.is_ok() { continue },
                            () = ended.notified() => {}
                        }
                    }
                    Err(error) => tracing::debug!(%error, "cannot watch the network of a page; trying again"),
                }
            }
            let _ = tokio::time::timeout(RETRY_INTERVAL, current.changed()).await;
        }
    }

    async fn attach(&self, target: &str, ended: Arc<Notify>) -> Result<WatchedPage<'_>, CallError> {
        let events = Arc::new(NetworkEvents { sink: Arc::clone(&self.sink), ended: Some(ended) });
        let session = self.client.attach_page(target, events).await?;
        let page = WatchedPage { client: &self.client, session: session.clone() };
        enable(&session);
        // Answered in order: then the network is watched.
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true});
        let _: serde_json::Value =
            session.call_within(CALL_TIMEOUT, p::TARGET_SET_AUTO_ATTACH, &attach).await?;
        Ok(page)
    }
}

fn enable(session: &Session) {
    let params = json!({"maxTotalBufferSize": MAX_KEPT_BYTES, "maxResourceBufferSize": MAX_BODY_BYTES, "maxPostDataSize": MAX_BODY_BYTES});
    session.send_no_reply(p::NETWORK_ENABLE, &params);
}

/// A page that is being watched. Dropping it detaches from the page and, with it, from its frames and workers.
struct WatchedPage<'a> {
    client: &'a ClientSession,
    session: Session,
}

impl Drop for WatchedPage<'_> {
    fn drop(&mut self) {
        self.client.detach_page(&self.session);
    }
}

/// The events of a page, a frame of another process, or a worker.
struct NetworkEvents {
    sink: Arc<dyn NetworkSink>,
    /// Told when the page ends; `None` for frames and workers.
    ended: Option<Arc<Notify>>,
}

impl EventHandler for NetworkEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        if method == p::TARGET_ATTACHED_TO_TARGET {
            let Ok(Attached { session_id }) = cdp::parse_params(params) else { return };
            let events = Arc::new(Self { sink: Arc::clone(&self.sink), ended: None });
            let child = session.connection().attach(&session_id, events);
            enable(&child);
            let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true});
            child.send_no_reply(p::TARGET_SET_AUTO_ATTACH, &attach);
        } else if method.starts_with("Network.") {
            self.sink.on_network(&NetworkSource(session.clone()), method, params);
        }
    }

    fn on_session_end(&self, _: &SessionEnd) {
        if let Some(ended) = &self.ended {
            ended.notify_one();
        }
    }
}
