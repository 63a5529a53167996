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
use tokio::net::{TcpListener, TcpStream};

use super::address::refusal_reason;
use crate::{options::NetworkRules, tasks::Tasks};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers meant for the proxy, which are not forwarded to the site.
const HOP_HEADERS: &[&str] = &["proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

/// The response body for a forbidden address.
const REFUSED_MESSAGE: &str =
    "webgym: pages may not reach this address (see --allow-host and --allow-private-network)";

pub(crate) struct EgressProxy {
    address: SocketAddr,
    refused: Arc<AtomicU64>,
}

struct ProxyInner {
    rules: NetworkRules,
    refused: Arc<AtomicU64>,
}

type ProxyResponse = Response<Either<Incoming, Full<Bytes>>>;

/// Why a site cannot be connected to.
enum ConnectError {
    Refused(String),
    Failed(String),
}

impl EgressProxy {
    pub(crate) async fn start(rules: NetworkRules, tasks: &Tasks) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let refused = Arc::new(AtomicU64::new(0));
        let inner = Arc::new(ProxyInner { rules, refused: Arc::clone(&refused) });
        let connection_tasks = tasks.clone();
        tasks.spawn_until_stopped("egress proxy", async move {
            loop {
                match listener.accept().await {
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
        Ok(Self { address, refused })
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
    outcome.unwrap_or_else(|error| match error {
        ConnectError::Refused(reason) => {
            inner.refused.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%reason, "refused a connection of a page");
            // The page may read this response, so it must not reveal what internal names resolve to.
            let mut response = text_response(StatusCode::FORBIDDEN, REFUSED_MESSAGE);
            response.headers_mut().insert(browser::REFUSED_HEADER, HeaderValue::from_static("1"));
            response
        }
        ConnectError::Failed(reason) => {
            text_response(StatusCode::BAD_GATEWAY, &format!("webgym: the site cannot be reached: {reason}"))
        }
    })
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
    let mut site = connect(&inner.rules, &host, port).await?;
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
    let site = connect(&inner.rules, &host, port).await?;
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
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() =
        path.parse().map_err(|_| ConnectError::Failed("the path cannot be forwarded".into()))?;
    let response = sender.send_request(request).await.map_err(failed)?;
    Ok(response.map(|body: Incoming| Either::Left(body)))
}

async fn connect(rules: &NetworkRules, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let addresses =
        resolve(host, port).await.map_err(|error| ConnectError::Failed(format!("{host}: {error}")))?;
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
