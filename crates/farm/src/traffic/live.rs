//! Sends a request to its site and records what comes back.

use std::{
    sync::Arc,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{
    Request, Response, StatusCode, Version,
    body::{Frame as BodyFrame, Incoming},
    header::{COOKIE, HeaderMap, HeaderValue},
};
use jiff::Timestamp;
use replay::{
    Exchange, Outcome,
    exchange::{Direction, Frame, FrameData, Timing},
};
use tokio::sync::mpsc;

use super::{
    Traffic,
    exchange::{Asked, Dropped, broken, head, protocol, reason},
    sites::{RemoteAddress, SiteFailure},
};
use crate::egress::{BodyError, ConnectError, ProxyResponse, error_response, failure, remove_hop_headers};

/// Larger bodies are passed on but not recorded.
const MAX_BODY: usize = 128 << 20;
/// How long a response that the browser no longer wants is read for the archive.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(10);
/// Parts of a body that wait for the browser.
const BUFFERED: usize = 16;

/// A request that was sent: what is known of its exchange so far, and when it began.
pub(super) struct Sent {
    pub(super) exchange: Exchange,
    pub(super) clock: Instant,
}

impl Sent {
    pub(super) fn elapsed_ms(&self) -> f64 {
        self.clock.elapsed().as_secs_f64() * 1e3
    }
}

/// How the body of a response ended.
#[derive(PartialEq)]
enum BodyEnd {
    Complete,
    /// It was still arriving when nobody wanted it any more.
    Unfinished,
    Broken,
}

impl Traffic {
    /// Sends a request to its site. The response is passed on while it arrives.
    pub(super) async fn fetch(self: &Arc<Self>, mut asked: Asked) -> Result<ProxyResponse, Dropped> {
        let Some(outgoing) = outgoing(&asked) else {
            return asked.fail(failure(StatusCode::BAD_GATEWAY, "webgym: invalid URL", "ConnectionFailed"));
        };
        let unknown = Outcome::Failed("net::ERR_FAILED".into());
        let mut exchange = Exchange::new(Timestamp::now(), asked.request.clone(), unknown);
        exchange.session.clone_from(&self.options.session);
        exchange.resource_type = asked.resource_type().map(str::to_owned);
        let mut sent = Sent { exchange, clock: Instant::now() };
        match self.sites.send(outgoing, asked.websocket.is_some()).await {
            Ok(response) => {
                sent.exchange.timing = Some(Timing { wait_ms: sent.elapsed_ms(), receive_ms: 0.0 });
                sent.exchange.protocol = Some(protocol(response.version()).to_owned());
                sent.exchange.remote = response.extensions().get::<RemoteAddress>().map(|remote| remote.0);
                let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                match asked.websocket.take().filter(|_| is_upgrade) {
                    Some(browser) => Ok(self.relay(browser, response, sent)),
                    None => Ok(self.pass_on(response, sent)),
                }
            }
            Err(error) => {
                sent.exchange.outcome = Outcome::Failed(error.error.to_owned());
                // What the rules of this node refuse says nothing about the site. In a replay, a site that cannot be reached
                // stays missing, so that it can be recorded another time.
                if error.is_refused {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                } else if self.replay.is_none() {
                    let traffic = Arc::clone(self);
                    self.writers.spawn(async move { traffic.append(sent.exchange).await });
                }
                asked.fail(site_failure(&error))
            }
        }
    }

    fn pass_on(self: &Arc<Self>, response: Response<Incoming>, mut sent: Sent) -> ProxyResponse {
        let (mut parts, body) = response.into_parts();
        sent.exchange.outcome = Outcome::Response(head(&parts));
        let (sender, receiver) = mpsc::channel(BUFFERED);
        let traffic = Arc::clone(self);
        self.writers.spawn(async move { traffic.receive(body, sent, sender).await });
        remove_hop_headers(&mut parts.headers);
        for name in [hyper::header::TRANSFER_ENCODING, hyper::header::ALT_SVC] {
            parts.headers.remove(name);
        }
        parts.version = Version::HTTP_11;
        let parts_of_body = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|part: Result<Bytes, BodyError>| (part.map(BodyFrame::data), receiver))
        });
        Response::from_parts(parts, StreamBody::new(parts_of_body).boxed_unsync())
    }

    /// Passes a body on to the browser and records it.
    async fn receive(
        self: Arc<Self>,
        mut body: Incoming,
        mut sent: Sent,
        browser: mpsc::Sender<Result<Bytes, BodyError>>,
    ) {
        let Outcome::Response(head) = &sent.exchange.outcome else { return };
        let is_stream = head.headers.media_type().is_some_and(|media_type| is_endless(&media_type));
        let has_length = head.headers.contains("content-length");
        let mut received: Vec<Bytes> = Vec::new();
        let (mut size, mut chunks) = (0, Vec::new());
        let mut abandoned: Option<Instant> = None;
        let end = loop {
            let deadline = abandoned.map(|since| since + ABANDONED_TIMEOUT);
            let next = tokio::select! {
                next = body.frame() => next,
                () = browser.closed(), if abandoned.is_none() => {
                    abandoned = Some(Instant::now());
                    if is_stream { break BodyEnd::Unfinished }
                    continue;
                }
                () = self.ended.cancelled(), if is_stream || abandoned.is_some() => break BodyEnd::Unfinished,
                () = sleep_until(deadline), if deadline.is_some() => break BodyEnd::Unfinished,
            };
            match next {
                None => break BodyEnd::Complete,
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    size += data.len();
                    if size <= MAX_BODY {
                        chunks.push(chunk(sent.elapsed_ms(), data.len()));
                        received.push(data.clone());
                    }
                    if abandoned.is_none() {
                        let _ = browser.send(Ok(data)).await;
                    }
                }
                Some(Err(error)) => {
                    let _ = browser.send(Err(broken(&error.to_string()))).await;
                    break BodyEnd::Broken;
                }
            }
        };
        drop(browser);
        if size > MAX_BODY {
            tracing::warn!(url = sent.exchange.request.url, size, "a response is too large to be recorded");
            return self.log.recorded(false);
        }
        // A part of a file is no response: a replay would show a page that never finishes to load it.
        if end == BodyEnd::Unfinished && has_length && !is_stream {
            return self.log.recorded(false);
        }
        let total_ms = sent.elapsed_ms();
        let exchange = &mut sent.exchange;
        if let Some(timing) = &mut exchange.timing {
            timing.receive_ms = (total_ms - timing.wait_ms).max(0.0);
        }
        if end == BodyEnd::Broken {
            exchange.outcome = Outcome::Failed("net::ERR_CONNECTION_CLOSED".into());
        } else if let Outcome::Response(response) = &mut exchange.outcome {
            response.body = join(received);
            if is_stream || end == BodyEnd::Unfinished {
                exchange.frames = chunks;
                // Only a stream that ended has an end: the replay keeps others open.
                if end == BodyEnd::Complete {
                    let data = FrameData::Close { code: 1000, reason: String::new() };
                    exchange.frames.push(Frame { at_ms: total_ms, direction: Direction::Received, data });
                }
            }
        }
        self.append(sent.exchange).await;
    }

    /// Writes an exchange to the archive.
    pub(super) async fn append(&self, exchange: Exchange) {
        let Some(recording) = self.recording() else { return };
        let size =
            exchange.request.body.len() + exchange.response().map_or(0, |response| response.body.len());
        let total = self.recorded_bytes.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        if total > self.max_recorded {
            tracing::debug!(limit = self.max_recorded, "a lease has recorded as much as it may");
            return self.log.recorded(false);
        }
        let appended = tokio::task::spawn_blocking(move || recording.append(exchange)).await;
        if let Ok(Err(error)) = &appended {
            tracing::error!(%error, "cannot record a response");
        }
        self.log.recorded(matches!(appended, Ok(Ok(()))));
    }
}

/// The request as it is sent to the site.
fn outgoing(asked: &Asked) -> Option<Request<Full<Bytes>>> {
    let mut outgoing = Request::new(Full::new(asked.request.body.clone()));
    *outgoing.method_mut() = asked.parts.method.clone();
    *outgoing.uri_mut() = asked.request.url.parse().ok()?;
    *outgoing.headers_mut() = asked.parts.headers.clone();
    *outgoing.extensions_mut() = asked.parts.extensions.clone();
    if asked.websocket.is_some() {
        // What is compressed by agreement of both sides could not be recorded.
        outgoing.headers_mut().remove(hyper::header::SEC_WEBSOCKET_EXTENSIONS);
        outgoing.headers_mut().remove("proxy-connection");
    } else {
        remove_hop_headers(outgoing.headers_mut());
    }
    join_cookies(outgoing.headers_mut());
    Some(outgoing)
}

/// With HTTP/2 each cookie is a header of its own; HTTP/1.1 allows one.
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(b"; ".as_slice()))
    {
        headers.insert(COOKIE, joined);
    }
}

fn site_failure(error: &SiteFailure) -> ProxyResponse {
    if error.is_refused {
        return error_response(&ConnectError::Refused(error.message.clone()));
    }
    let text = format!("webgym: the site cannot be reached: {}", error.message);
    failure(StatusCode::BAD_GATEWAY, &text, reason(error.error))
}

/// Whether responses of this type have no end of their own.
fn is_endless(media_type: &str) -> bool {
    matches!(media_type, "text/event-stream" | "multipart/x-mixed-replace")
}

fn chunk(at_ms: f64, length: usize) -> Frame {
    Frame { at_ms, direction: Direction::Received, data: FrameData::Chunk(length as u64) }
}

fn join(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 { parts.remove(0) } else { parts.concat().into() }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
