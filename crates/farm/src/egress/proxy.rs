//! The forward proxy through which all browsers of a pool connect. It resolves each name itself, checks the address, and
//! connects to exactly that address, so that neither a redirect, a sub-resource, a WebSocket nor a name that resolves
//! differently the next time can bypass the rules.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{address::refusal_reason, upstream::Upstream};
use crate::{options::NetworkRules, tasks::Tasks};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers meant for the proxy, which are not forwarded to the site.
const HOP_HEADERS: &[&str] = &["proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

/// The response body for a forbidden address.
const REFUSED_MESSAGE: &str =
    "webgym: pages may not reach this address (see --allow-host and --allow-private-network)";

/// A running proxy. Dropping it closes its port.
pub(crate) struct EgressProxy {
    address: SocketAddr,
    refused: Arc<AtomicU64>,
    _close_on_drop: DropGuard,
}

impl std::fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EgressProxy({})", self.address)
    }
}

struct ProxyInner {
    rules: NetworkRules,
    /// Through which proxy it connects; `None` connects directly.
    upstream: Option<Upstream>,
    refused: Arc<AtomicU64>,
}

/// A connection to a site.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type ProxyResponse = Response<Either<Incoming, Full<Bytes>>>;

/// Why a site cannot be connected to.
pub(crate) enum ConnectError {
    Refused(String),
    Unresolved(String),
    Failed(String),
    /// The proxy that the client chose does not work.
    Proxy(String),
}

impl EgressProxy {
    /// Starts the proxy of a pool, which counts the connections that it refuses.
    pub(crate) async fn start(rules: NetworkRules, tasks: &Tasks) -> io::Result<Self> {
        Self::start_with(rules, None, Arc::default(), tasks).await
    }

    /// Starts the proxy of a lease, which connects through the proxy that the client chose.
    pub(crate) async fn start_for_lease(
        rules: NetworkRules,
        upstream: Upstream,
        refused: Arc<AtomicU64>,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        Self::start_with(rules, Some(upstream), refused, tasks).await
    }

    async fn start_with(
        rules: NetworkRules,
        upstream: Option<Upstream>,
        refused: Arc<AtomicU64>,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let inner = Arc::new(ProxyInner { rules, upstream, refused: Arc::clone(&refused) });
        let connection_tasks = tasks.clone();
        let closed = CancellationToken::new();
        let close_on_drop = closed.clone().drop_guard();
        tasks.spawn_until_stopped("egress proxy", async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = closed.cancelled() => return,
                };
                match accepted {
                    Ok((stream, _)) => {
                        let serving = serve(stream, Arc::clone(&inner), connection_tasks.clone());
                        connection_tasks.spawn_until_stopped("proxied connection", serving);
                    }
                    // Most likely there are no free file descriptors: wait until some are closed.
                    Err(error) => {
                        tracing::warn!(%error, "the egress proxy cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        });
        Ok(Self { address, refused, _close_on_drop: close_on_drop })
    }

    /// The address of the proxy, as a browser context takes it.
    pub(crate) fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The counter of refused connections.
    pub(crate) fn refused_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// Returns the flags that make Chromium use the proxy for everything, including loopback.
    pub(crate) fn browser_flags(&self) -> Vec<String> {
        vec![
            format!("--proxy-server=http://{}", self.address),
            "--proxy-bypass-list=<-loopback>".to_owned(),
            // WebRTC would otherwise bypass the proxy. The full browser reads the first flag, the headless shell the second.
            "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        ]
    }

    /// Returns the number of refused connections.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

async fn serve(stream: TcpStream, inner: Arc<ProxyInner>, tasks: Tasks) {
    let service = service_fn(move |request| {
        let (inner, tasks) = (Arc::clone(&inner), tasks.clone());
        async move { Ok::<_, Infallible>(respond(request, &inner, &tasks).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "a proxied connection ended");
    }
}

async fn respond(request: Request<Incoming>, inner: &ProxyInner, tasks: &Tasks) -> ProxyResponse {
    let outcome = if request.method() == Method::CONNECT {
        tunnel(request, inner, tasks).await
    } else {
        forward(request, inner).await
    };
    outcome.unwrap_or_else(|error| error_response(error, inner))
}

/// The header tells our own browsers that the response is not the site's.
fn error_response(error: ConnectError, inner: &ProxyInner) -> ProxyResponse {
    let (status, text, net_error) = match error {
        ConnectError::Refused(reason) => {
            inner.refused.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%reason, "refused a connection of a page");
            // The page may read this response, so it must not reveal what internal names resolve to.
            (StatusCode::FORBIDDEN, REFUSED_MESSAGE.to_owned(), "BlockedByClient")
        }
        ConnectError::Unresolved(reason) => (StatusCode::BAD_GATEWAY, reason, "NameNotResolved"),
        ConnectError::Failed(reason) => (
            StatusCode::BAD_GATEWAY,
            format!("webgym: the site cannot be reached: {reason}"),
            "ConnectionFailed",
        ),
        ConnectError::Proxy(reason) => (
            StatusCode::BAD_GATEWAY,
            format!("webgym: the proxy of the lease does not work: {reason}"),
            "ProxyConnectionFailed",
        ),
    };
    let mut response = text_response(status, &text);
    response.headers_mut().insert(browser::PROXY_ERROR_HEADER, HeaderValue::from_static(net_error));
    response
}

fn text_response(status: StatusCode, text: &str) -> ProxyResponse {
    let mut response = Response::new(Either::Right(Full::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn host_and_port(uri: &Uri, default_port: u16) -> Result<(String, u16), ConnectError> {
    let host = uri.host().ok_or_else(|| ConnectError::Failed("the request has no host".into()))?;
    Ok((
        host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        uri.port_u16().unwrap_or(default_port),
    ))
}

async fn tunnel(
    mut request: Request<Incoming>,
    inner: &ProxyInner,
    tasks: &Tasks,
) -> Result<ProxyResponse, ConnectError> {
    let (host, port) = host_and_port(request.uri(), 443)?;
    let mut site = open_tunnel(inner, &host, port).await?;
    tasks.spawn_until_stopped("tunnel", async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut site).await;
        }
    });
    Ok(Response::new(Either::Right(Full::default())))
}

async fn forward(mut request: Request<Incoming>, inner: &ProxyInner) -> Result<ProxyResponse, ConnectError> {
    if request.uri().scheme_str() != Some("http") {
        return Err(ConnectError::Failed("only absolute http:// URLs are forwarded".into()));
    }
    let (host, port) = host_and_port(request.uri(), 80)?;
    let site = match &inner.upstream {
        Some(upstream) => {
            check_destination(&inner.rules, &host, port).await?;
            upstream.connect(&inner.rules).await?
        }
        None => connect_directly(&inner.rules, &host, port).await?,
    };
    let failed = |error: hyper::Error| ConnectError::Failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake::<_, Incoming>(TokioIo::new(site))
        .await
        .map_err(failed)?;
    // Drives the exchange; ends with the response body or when either side disconnects.
    tokio::spawn(connection);
    let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
    for name in HOP_HEADERS {
        request.headers_mut().remove(HeaderName::from_static(name));
    }
    request.headers_mut().remove(CONNECTION);
    if let Ok(value) = HeaderValue::from_str(&authority) {
        request.headers_mut().entry(HOST).or_insert(value);
    }
    if let Some(upstream) = &inner.upstream {
        // A proxy takes the whole URL.
        upstream.authorize(&mut request);
    } else {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() =
            path.parse().map_err(|_| ConnectError::Failed("the path cannot be forwarded".into()))?;
    }
    let response = sender.send_request(request).await.map_err(failed)?;
    if let Some(upstream) = &inner.upstream {
        upstream.check_response(&response)?;
    }
    Ok(response.map(|body: Incoming| Either::Left(body)))
}

async fn open_tunnel(inner: &ProxyInner, host: &str, port: u16) -> Result<Box<dyn Stream>, ConnectError> {
    match &inner.upstream {
        Some(upstream) => {
            check_destination(&inner.rules, host, port).await?;
            upstream.tunnel(&inner.rules, host, port).await
        }
        None => Ok(Box::new(connect_directly(&inner.rules, host, port).await?)),
    }
}

/// Refuses a destination whose name resolves to forbidden addresses here. The proxy of the lease resolves the name again,
/// and a name that only it knows is left to it.
pub(super) async fn check_destination(
    rules: &NetworkRules,
    host: &str,
    port: u16,
) -> Result<(), ConnectError> {
    let addresses = resolve(host, port).await.unwrap_or_default();
    match addresses.iter().find_map(|address| refusal_reason(rules, host, port, *address)) {
        Some(reason) => Err(ConnectError::Refused(reason)),
        None => Ok(()),
    }
}

pub(super) async fn connect_directly(
    rules: &NetworkRules,
    host: &str,
    port: u16,
) -> Result<TcpStream, ConnectError> {
    let addresses = resolve(host, port)
        .await
        .map_err(|error| ConnectError::Unresolved(format!("webgym: {host}: {error}")))?;
    let mut refused = None;
    let mut failed = format!("{host} has no address");
    for address in addresses {
        if let Some(reason) = refusal_reason(rules, host, port, address) {
            refused.get_or_insert(reason);
            continue;
        }
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error.to_string(),
            Err(_) => failed = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    Err(refused.map_or(ConnectError::Failed(failed), ConnectError::Refused))
}

/// Resolves a host name. Names under `localhost` always mean this machine, as in Chromium.
pub(crate) async fn resolve(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    Ok(tokio::net::lookup_host((name.as_str(), port)).await?.map(|socket| socket.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Starts a server that responds with the first line of the request.
    async fn start_site() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let first =
                        String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
                    let response =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{first}", first.len());
                    let _ = stream.write_all(response.as_bytes()).await;
                });
            }
        });
        address
    }

    async fn send(proxy: &EgressProxy, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = vec![0; 4096];
        let read = stream.read(&mut response).await.unwrap();
        String::from_utf8_lossy(&response[..read]).into_owned()
    }

    #[tokio::test]
    async fn private_address_is_refused_in_every_form() {
        let tasks = Tasks::default();
        let site = start_site().await;
        let proxy = EgressProxy::start(NetworkRules::default(), &tasks).await.unwrap();
        let port = site.port();
        for request in [
            format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"),
            format!("GET http://localhost:{port}/x HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            format!("GET http://a.localhost.:{port}/x HTTP/1.1\r\nhost: a\r\n\r\n"),
            format!("GET http://[::1]:{port}/x HTTP/1.1\r\nhost: a\r\n\r\n"),
            format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: a\r\n\r\n"),
            "GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
            "CONNECT 10.0.0.1:443 HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        ] {
            let response = send(&proxy, &request).await;
            assert!(response.starts_with("HTTP/1.1 403"), "{request}: {response}");
        }
        assert_eq!(proxy.refused(), 7);
    }

    /// Starts a proxy for a lease whose upstream responds with the head of the request that it gets.
    async fn start_lease_proxy(allow_upstream: bool, tasks: &Tasks) -> EgressProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let head = String::from_utf8_lossy(&head[..read]).to_lowercase();
                    let response = if head.starts_with("connect") {
                        format!("HTTP/1.1 200 OK\r\n\r\n{head}")
                    } else {
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{head}", head.len())
                    };
                    let _ = stream.write_all(response.as_bytes()).await;
                });
            }
        });
        let allow_hosts = if allow_upstream { vec![format!("127.0.0.1:{port}")] } else { Vec::new() };
        let rules = NetworkRules { allow_private: false, allow_hosts };
        let proxy = proto::session_options::Proxy {
            server: format!("http://127.0.0.1:{port}"),
            username: Some("user".into()),
            password: Some(proto::session_options::Secret("pass".into())),
        };
        let upstream = Upstream::new(&proxy).unwrap();
        EgressProxy::start_for_lease(rules, upstream, Arc::default(), tasks).await.unwrap()
    }

    #[tokio::test]
    async fn lease_proxy_connects_through_its_upstream() {
        let tasks = Tasks::default();
        let proxy = start_lease_proxy(true, &tasks).await;
        let plain = send(&proxy, "GET http://known-to-the-proxy.test/x HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(plain.contains("get http://known-to-the-proxy.test/x http/1.1"), "{plain}");
        assert!(plain.contains("proxy-authorization: basic dxnlcjpwyxnz"), "{plain}");
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        stream.write_all(b"CONNECT secure.test:443 HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        assert!(received.starts_with("HTTP/1.1 200"), "{received}");
        assert!(received.contains("connect secure.test:443 http/1.1"), "{received}");
        assert!(received.contains("proxy-authorization: basic dxnlcjpwyxnz"), "{received}");
    }

    #[tokio::test]
    async fn lease_proxy_obeys_the_rules() {
        let tasks = Tasks::default();
        let allowed = start_lease_proxy(true, &tasks).await;
        for request in [
            "GET http://10.0.0.1/ HTTP/1.1\r\nhost: a\r\n\r\n",
            "CONNECT 169.254.169.254:443 HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            assert!(send(&allowed, request).await.starts_with("HTTP/1.1 403"), "{request}");
        }
        let forbidden = start_lease_proxy(false, &tasks).await;
        for request in [
            "GET http://public.test/ HTTP/1.1\r\nhost: a\r\n\r\n",
            "CONNECT public.test:443 HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            let response = send(&forbidden, request).await;
            assert!(response.starts_with("HTTP/1.1 403"), "the proxy itself is private: {response}");
        }
        let address = allowed.address;
        drop(allowed);
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn allowed_host_is_forwarded_and_tunnelled() {
        let tasks = Tasks::default();
        let port = start_site().await.port();
        let rules = NetworkRules { allow_private: false, allow_hosts: vec![format!("127.0.0.1:{port}")] };
        let proxy = EgressProxy::start(rules, &tasks).await.unwrap();
        let response = send(
            &proxy,
            &format!("GET http://127.0.0.1:{port}/x?y HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"),
        )
        .await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(response.ends_with("GET /x?y HTTP/1.1"), "{response}");
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        stream
            .write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut head = vec![0; 1024];
        let read = stream.read(&mut head).await.unwrap();
        assert!(String::from_utf8_lossy(&head[..read]).starts_with("HTTP/1.1 200"));
        stream.write_all(b"GET /inside HTTP/1.1\r\n\r\n").await.unwrap();
        let read = stream.read(&mut head).await.unwrap();
        assert!(String::from_utf8_lossy(&head[..read]).ends_with("GET /inside HTTP/1.1"));
    }
}
