//! Answers in place of sites: ends TLS, reads the requests, and gets each answered by the archive or by the site.

use std::{
    io,
    sync::{Arc, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt, Limited};
use hyper::{Request, Response, StatusCode, body::Incoming, header, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use proto::network::OnMiss;
use replay::{Answer, respond::preflight};
use tokio::io::AsyncReadExt;
use tokio_rustls::{LazyConfigAcceptor, rustls::server::Acceptor};

use super::{
    Traffic,
    exchange::{Asked, Dropped, Origin, to_http},
};
use crate::{
    egress::{ConnectError, ProxyResponse, Stream, failure, full_body, host_and_port, text_response, tunnel},
    tasks::Tasks,
};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REQUEST_BODY: usize = 64 << 20;
/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

impl Traffic {
    /// Answers for the site to which a tunnel is to lead.
    pub(crate) async fn tunnel(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        tasks: &Tasks,
    ) -> Result<ProxyResponse, ConnectError> {
        let (host, port) = host_and_port(request.uri(), 443)?;
        if self.is_tunnelled(&host) {
            self.log.tunnelled(&host);
            return tunnel(request, self.sites.route(), tasks).await;
        }
        let traffic = Arc::clone(self);
        tasks.spawn_until_stopped("answered connection", async move {
            let Ok(upgraded) = hyper::upgrade::on(&mut request).await else { return };
            if let Err(error) = traffic.serve(TokioIo::new(upgraded), host, port).await {
                tracing::trace!(%error, "an answered connection ended");
            }
        });
        Ok(Response::new(full_body("")))
    }

    /// Answers a plain HTTP request, which has an absolute URL.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Result<ProxyResponse, Dropped>, ConnectError> {
        if request.uri().scheme_str() != Some("http") {
            return Err(ConnectError::Failed("only absolute http:// URLs are forwarded".into()));
        }
        let (host, port) = host_and_port(request.uri(), 80)?;
        Ok(self.answer(request, &Origin { scheme: "http", host, port }).await)
    }

    /// Whether the connections to a host are passed on unread. In a replay there is nothing to pass on.
    pub(super) fn is_tunnelled(&self, host: &str) -> bool {
        self.replay.is_none()
            && self.options.tunnel_hosts.iter().any(|pattern| match pattern.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
                None => host.eq_ignore_ascii_case(pattern),
            })
    }

    async fn serve(
        self: Arc<Self>,
        mut stream: impl Stream + 'static,
        host: String,
        port: u16,
    ) -> io::Result<()> {
        // Pages open tunnels for WebSockets without TLS, too.
        let first = stream.read_u8().await?;
        let (reader, writer) = tokio::io::split(stream);
        let stream = tokio::io::join(io::Cursor::new([first]).chain(reader), writer);
        if first != TLS_HANDSHAKE {
            return self.serve_http(stream, Origin { scheme: "http", host, port }, false).await;
        }
        let handshake = async {
            let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
            let http2 =
                start.client_hello().alpn().is_some_and(|mut offered| offered.any(|name| name == b"h2"));
            let server = self.identity.server(&host, http2).map_err(io::Error::other)?;
            start.into_stream(server).await
        };
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await??;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.serve_http(stream, Origin { scheme: "https", host, port }, http2).await
    }

    async fn serve_http(
        self: Arc<Self>,
        stream: impl Stream + 'static,
        origin: Origin,
        http2: bool,
    ) -> io::Result<()> {
        let ended = self.ended.clone();
        let service = service_fn(move |request| {
            let (traffic, origin) = (Arc::clone(&self), origin.clone());
            async move { traffic.answer(request, &origin).await }
        });
        let stream = TokioIo::new(stream);
        let served = async {
            if http2 {
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.serve_connection(stream, service).await
            } else {
                let mut server = hyper::server::conn::http1::Builder::new();
                server.timer(TokioTimer::new()).preserve_header_case(true);
                server.serve_connection(stream, service).with_upgrades().await
            }
        };
        tokio::select! {
            served = served => served.map_err(io::Error::other),
            () = ended.cancelled() => Ok(()),
        }
    }

    /// Answers a request of a page.
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        origin: &Origin,
    ) -> Result<ProxyResponse, Dropped> {
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_REQUEST_BODY).collect().await else {
            let text = format!("webgym: the body of a request has at most {MAX_REQUEST_BODY} bytes");
            return Ok(text_response(StatusCode::PAYLOAD_TOO_LARGE, &text));
        };
        let asked = Asked::new(parts, body.to_bytes(), origin);
        let Some(replay) = &self.replay else { return self.fetch(asked).await };
        let answer = replay.cursor.lock().unwrap_or_else(PoisonError::into_inner).find(&asked.request);
        if let (Answer::Miss(_), Some(permission)) = (&answer, preflight(&asked.request)) {
            return Ok(to_http(&permission, full_body("")));
        }
        self.log.replayed(&asked.request, &answer);
        match (answer, replay.on_miss) {
            (Answer::Found(found), _) => self.play(asked, found).await,
            (Answer::Miss(_), OnMiss::Live) => self.fetch(asked).await,
            (Answer::Miss(_), OnMiss::NotFound) => Ok(not_found(&asked)),
            (Answer::Miss(_), OnMiss::Fail) => {
                let text = "webgym: the archive has no answer to this request";
                asked.fail(failure(StatusCode::GATEWAY_TIMEOUT, text, "InternetDisconnected"))
            }
        }
    }
}

/// The page may read that there is nothing, wherever it asks from.
fn not_found(asked: &Asked) -> ProxyResponse {
    let mut response =
        text_response(StatusCode::NOT_FOUND, "webgym: the archive has no answer to this request");
    if let Some(origin) = asked.parts.headers.get(header::ORIGIN) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response
}
