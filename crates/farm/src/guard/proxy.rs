//! The forward proxy that all browsers of a pool go through when pages must keep away from private addresses.
//! It resolves each name itself, checks the address, and connects to exactly that address, so neither a
//! redirect, a sub-resource, a WebSocket nor a name that changes its mind gets around the check.

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

use super::address::refusal;
use crate::{options::NetworkRules, tasks::Tasks};

const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const HEADER_LIMIT: Duration = Duration::from_secs(30);
/// Headers that concern the hop to us, not the site.
const HOP_HEADERS: &[&str] = &["proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

/// What a page is told of an address that it may not reach.
const REFUSED: &str =
    "webgym: pages may not reach this address (see --allow-host and --allow-private-network)";

pub(crate) struct Proxy {
    address: SocketAddr,
    refused: Arc<AtomicU64>,
}

struct Shared {
    rules: NetworkRules,
    refused: Arc<AtomicU64>,
}

type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// Why there is no connection to a site.
enum NoWay {
    Refused(String),
    Failed(String),
}

impl Proxy {
    pub(crate) async fn start(rules: NetworkRules, tasks: &Tasks) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let refused = Arc::new(AtomicU64::new(0));
        let shared = Arc::new(Shared { rules, refused: Arc::clone(&refused) });
        let own = tasks.clone();
        tasks.spawn_until_stopped("proxy", async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        own.spawn_until_stopped("proxied", serve(stream, Arc::clone(&shared), own.clone()))
                    }
                    // Out of file descriptors, most likely: let some close.
                    Err(error) => {
                        tracing::warn!(%error, "the proxy cannot accept");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        });
        Ok(Self { address, refused })
    }

    /// What Chromium has to be told to use it for everything, loopback included.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec![
            format!("--proxy-server=http://{}", self.address),
            "--proxy-bypass-list=<-loopback>".to_owned(),
            // WebRTC would otherwise send packets past the proxy. The first is what the full browser reads, the second what
            // the headless shell does.
            "--webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp".to_owned(),
        ]
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, tasks: Tasks) {
    let service = service_fn(move |request| {
        let (shared, tasks) = (Arc::clone(&shared), tasks.clone());
        async move { Ok::<_, Infallible>(answer(request, &shared, &tasks).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "a proxied connection ended");
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared, tasks: &Tasks) -> Answer {
    let outcome = if request.method() == Method::CONNECT {
        tunnel(request, shared, tasks).await
    } else {
        forward(request, shared).await
    };
    outcome.unwrap_or_else(|no_way| match no_way {
        NoWay::Refused(why) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%why, "a page was refused an address");
            // The page may read this: it must not learn from it what our own names resolve to.
            say(StatusCode::FORBIDDEN, REFUSED)
        }
        NoWay::Failed(why) => {
            say(StatusCode::BAD_GATEWAY, &format!("webgym: the site cannot be reached: {why}"))
        }
    })
}

fn say(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Either::Right(Full::from(format!("{text}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

fn host_and_port(uri: &Uri, default_port: u16) -> Result<(String, u16), NoWay> {
    let host = uri.host().ok_or_else(|| NoWay::Failed("the request names no host".into()))?;
    Ok((
        host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        uri.port_u16().unwrap_or(default_port),
    ))
}

async fn tunnel(mut request: Request<Incoming>, shared: &Shared, tasks: &Tasks) -> Result<Answer, NoWay> {
    let (host, port) = host_and_port(request.uri(), 443)?;
    let mut site = connect(&shared.rules, &host, port).await?;
    tasks.spawn_until_stopped("tunnel", async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut site).await;
        }
    });
    Ok(Response::new(Either::Right(Full::default())))
}

async fn forward(mut request: Request<Incoming>, shared: &Shared) -> Result<Answer, NoWay> {
    if request.uri().scheme_str() != Some("http") {
        return Err(NoWay::Failed("only whole http:// addresses are forwarded".into()));
    }
    let (host, port) = host_and_port(request.uri(), 80)?;
    let site = connect(&shared.rules, &host, port).await?;
    let failed = |error: hyper::Error| NoWay::Failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake::<_, Incoming>(TokioIo::new(site))
        .await
        .map_err(failed)?;
    // Drives the exchange; it ends with the response body or when either side goes away.
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
    *request.uri_mut() = path.parse().map_err(|_| NoWay::Failed("the path cannot be forwarded".into()))?;
    let response = sender.send_request(request).await.map_err(failed)?;
    Ok(response.map(|body: Incoming| Either::Left(body)))
}

async fn connect(rules: &NetworkRules, host: &str, port: u16) -> Result<TcpStream, NoWay> {
    let addresses = resolve(host, port).await.map_err(|error| NoWay::Failed(format!("{host}: {error}")))?;
    let mut refused = None;
    let mut failed = format!("{host} has no address");
    for address in addresses {
        if let Some(why) = refusal(rules, host, port, address) {
            refused.get_or_insert(why);
            continue;
        }
        match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error.to_string(),
            Err(_) => failed = format!("no connection within {} s", CONNECT_LIMIT.as_secs()),
        }
    }
    Err(refused.map_or(NoWay::Failed(failed), NoWay::Refused))
}

/// Names under `localhost` are this machine's by definition, as in Chromium, whatever a resolver says.
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

    async fn site() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 1024];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    let first =
                        String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{first}", first.len());
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        address
    }

    async fn ask(proxy: &Proxy, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    #[tokio::test]
    async fn private_addresses_are_refused_by_every_road() {
        let tasks = Tasks::default();
        let site = site().await;
        let proxy = Proxy::start(NetworkRules::default(), &tasks).await.unwrap();
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
            let answer = ask(&proxy, &request).await;
            assert!(answer.starts_with("HTTP/1.1 403"), "{request}: {answer}");
        }
        assert_eq!(proxy.refused(), 7);
    }

    #[tokio::test]
    async fn allowed_hosts_are_reached_and_asked_as_a_server() {
        let tasks = Tasks::default();
        let port = site().await.port();
        let rules = NetworkRules { allow_private: false, allow_hosts: vec![format!("127.0.0.1:{port}")] };
        let proxy = Proxy::start(rules, &tasks).await.unwrap();
        let answer = ask(
            &proxy,
            &format!("GET http://127.0.0.1:{port}/x?y HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with("GET /x?y HTTP/1.1"), "{answer}");
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
