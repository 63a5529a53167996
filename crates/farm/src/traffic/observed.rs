//! Records the traffic with hosts whose connections are passed on unread, as the browser reports it. Bodies are decoded, headers
//! are those that the page may know, and requests of service workers are missing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use browser::{NetworkSink, NetworkSource, TenantBrowser, parse_params, protocol as p};
use bytes::Bytes;
use jiff::Timestamp;
use replay::{
    Exchange, Headers, Outcome, Request, Response,
    exchange::{Direction, Frame, FrameData, Timing},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::Traffic;
use crate::error::ApiError;

/// Requests in flight that are followed.
const MAX_OPEN: usize = 5000;
const START_TIMEOUT: Duration = Duration::from_secs(10);

struct Observer {
    traffic: Weak<Traffic>,
    open: Mutex<HashMap<Key, Open>>,
}

/// A target and the id of a request in it.
type Key = (String, String);

struct Open {
    exchange: Exchange,
    since: Instant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    request_id: String,
    request: SentRequest,
    #[serde(default, rename = "type")]
    kind: String,
    redirect_response: Option<ReceivedResponse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentRequest {
    url: String,
    method: String,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    post_data_entries: Vec<PostData>,
}

#[derive(Deserialize)]
struct PostData {
    /// Base64.
    #[serde(default)]
    bytes: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceivedResponse {
    status: u16,
    #[serde(default)]
    status_text: String,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default, rename = "remoteIPAddress")]
    remote: String,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    from_service_worker: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received {
    request_id: String,
    response: ReceivedResponse,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    error_text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SocketCreated {
    request_id: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SocketFrame {
    request_id: String,
    response: SocketMessage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SocketMessage {
    opcode: f64,
    payload_data: String,
}

impl Traffic {
    /// Records until the end of the lease what the proxy cannot read, if there is such a thing.
    pub(crate) async fn observe(self: &Arc<Self>, tenant: &TenantBrowser) -> Result<(), ApiError> {
        if self.options.tunnel_hosts.is_empty() || self.recording().is_none() {
            return Ok(());
        }
        let observer = Arc::new(Observer { traffic: Arc::downgrade(self), open: Mutex::default() });
        let watch = tenant.open_network_watch(Arc::<Observer>::clone(&observer)).await?;
        let mut has_started = watch.has_started();
        let ended = self.ended.clone();
        self.writers.spawn(async move {
            tokio::select! {
                () = watch.run() => ended.cancelled().await,
                () = ended.cancelled() => {}
            }
            observer.close_sockets();
        });
        // The first command must be part of the recording.
        let _ = tokio::time::timeout(START_TIMEOUT, has_started.wait_for(|has_started| *has_started)).await;
        Ok(())
    }

    fn write(self: &Arc<Self>, exchange: Exchange) {
        let traffic = Arc::clone(self);
        self.writers.spawn(async move { traffic.append(exchange).await });
    }
}

impl NetworkSink for Observer {
    fn on_network(&self, source: &NetworkSource, method: &str, params: &[u8]) {
        let Some(traffic) = self.traffic.upgrade() else { return };
        let key = |request_id: String| (source.id().to_owned(), request_id);
        match method {
            p::NETWORK_REQUEST_WILL_BE_SENT => {
                if let Ok(sent) = parse_params::<Sent>(params) {
                    self.send(&traffic, key(sent.request_id.clone()), sent);
                }
            }
            p::NETWORK_RESPONSE_RECEIVED | p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED => {
                if let Ok(Received { request_id, response }) = parse_params(params) {
                    self.receive(&key(request_id), response);
                }
            }
            p::NETWORK_LOADING_FINISHED | p::NETWORK_LOADING_FAILED => {
                if let Ok(Ended { request_id, error_text }) = parse_params(params) {
                    self.end(&traffic, source, &key(request_id), error_text);
                }
            }
            p::NETWORK_WEB_SOCKET_CREATED => {
                if let Ok(SocketCreated { request_id, url }) = parse_params(params) {
                    // The archive has the URL of the handshake.
                    let url = url.replacen("ws", "http", 1);
                    self.begin(&traffic, key(request_id), Request::get(url), "websocket");
                }
            }
            p::NETWORK_WEB_SOCKET_FRAME_SENT | p::NETWORK_WEB_SOCKET_FRAME_RECEIVED => {
                if let Ok(SocketFrame { request_id, response }) = parse_params(params) {
                    let direction = if method == p::NETWORK_WEB_SOCKET_FRAME_SENT {
                        Direction::Sent
                    } else {
                        Direction::Received
                    };
                    self.add_frame(&key(request_id), direction, response);
                }
            }
            p::NETWORK_WEB_SOCKET_CLOSED => {
                if let Ok(Ended { request_id, .. }) = parse_params(params)
                    && let Some(closed) = self.open().remove(&key(request_id))
                {
                    traffic.write(closed.exchange);
                }
            }
            _ => {}
        }
    }
}

impl Observer {
    fn open(&self) -> MutexGuard<'_, HashMap<Key, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, traffic: &Arc<Traffic>, key: Key, sent: Sent) {
        // A redirect keeps the id: the request before it has its response now.
        if let Some(redirect) = sent.redirect_response {
            self.receive(&key, redirect);
            if let Some(redirected) = self.open().remove(&key) {
                traffic.write(redirected.exchange);
            }
        }
        let body: Vec<u8> = sent
            .request
            .post_data_entries
            .iter()
            .flat_map(|part| STANDARD.decode(&part.bytes).unwrap_or_default())
            .collect();
        let request = Request {
            method: sent.request.method,
            url: sent.request.url,
            headers: headers(&sent.request.headers),
            body: body.into(),
        };
        self.begin(traffic, key, request, &sent.kind.to_ascii_lowercase());
    }

    /// Follows a request to a host that is passed on unread.
    fn begin(&self, traffic: &Traffic, key: Key, request: Request, kind: &str) {
        // Plain HTTP requests reach the proxy one by one, which records them itself.
        let url = Url::parse(&request.url).ok().filter(|url| url.scheme() == "https" || kind == "websocket");
        let host = url.as_ref().and_then(Url::host_str);
        let mut open = self.open();
        if !host.is_some_and(|host| traffic.is_tunnelled(host)) || open.len() >= MAX_OPEN {
            return;
        }
        let mut exchange =
            Exchange::new(Timestamp::now(), request, Outcome::Failed("net::ERR_ABORTED".into()));
        exchange.session.clone_from(&traffic.options.session);
        exchange.resource_type = Some(kind.to_owned());
        open.insert(key, Open { exchange, since: Instant::now() });
    }

    fn receive(&self, key: &Key, response: ReceivedResponse) {
        let mut open = self.open();
        if response.from_service_worker {
            // The worker's own request is the one that reached the network.
            open.remove(key);
            return;
        }
        let Some(Open { exchange, since }) = open.get_mut(key) else { return };
        let mut headers = headers(&response.headers);
        // The browser has decoded the body.
        headers.rename("content-encoding", "X-Archive-Orig-Content-Encoding");
        headers.rename("content-length", "X-Archive-Orig-Content-Length");
        exchange.timing = Some(Timing { wait_ms: since.elapsed().as_secs_f64() * 1e3, receive_ms: 0.0 });
        exchange.remote = response.remote.trim_start_matches('[').trim_end_matches(']').parse().ok();
        exchange.protocol = Some(response.protocol).filter(|protocol| !protocol.is_empty());
        exchange.outcome = Outcome::Response(Response {
            status: response.status,
            reason: response.status_text,
            headers,
            body: Bytes::new(),
        });
    }

    fn end(&self, traffic: &Arc<Traffic>, source: &NetworkSource, key: &Key, error: Option<String>) {
        let Some(Open { mut exchange, .. }) = self.open().remove(key) else { return };
        if let Some(error) = error {
            exchange.outcome = Outcome::Failed(error);
            return traffic.write(exchange);
        }
        let (traffic, source, request_id) = (Arc::clone(traffic), source.clone(), key.1.clone());
        let writers = traffic.writers.clone();
        writers.spawn(async move {
            match (source.body(&request_id).await, &mut exchange.outcome) {
                (Ok(body), Outcome::Response(response)) => response.body = body,
                (Err(error), _) => {
                    tracing::debug!(url = exchange.request.url, %error, "the browser no longer has a body");
                    return traffic.log.recorded(false);
                }
                _ => {}
            }
            traffic.append(exchange).await;
        });
    }

    fn add_frame(&self, key: &Key, direction: Direction, message: SocketMessage) {
        let mut open = self.open();
        let Some(Open { exchange, since }) = open.get_mut(key) else { return };
        // 1 is text, 2 is binary.
        let data = if message.opcode < 1.5 {
            FrameData::Text(message.payload_data)
        } else {
            FrameData::Binary(STANDARD.decode(message.payload_data).unwrap_or_default())
        };
        exchange.frames.push(Frame { at_ms: since.elapsed().as_secs_f64() * 1e3, direction, data });
    }

    /// At the end of the lease, open WebSockets are recorded as they are.
    fn close_sockets(&self) {
        let Some(traffic) = self.traffic.upgrade() else { return };
        for (_, open) in self.open().drain() {
            if open.exchange.response().is_some_and(|response| response.status == 101) {
                traffic.write(open.exchange);
            }
        }
    }
}

/// Several values of one name are separated by line breaks.
fn headers(map: &Map<String, Value>) -> Headers {
    let values =
        |value: &Value| value.as_str().unwrap_or_default().split('\n').map(str::to_owned).collect::<Vec<_>>();
    map.iter()
        .flat_map(|(name, value)| values(value).into_iter().map(|value| (name.clone(), value)))
        .collect()
}
