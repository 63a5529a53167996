//! The forward proxy through which all browsers of a pool connect, and that of a lease with options of its own. Neither a
//! redirect, a sub-resource, a WebSocket nor a name that resolves differently the next time can bypass its rules.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::{Method, Request, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    ConnectError, Route, live,
    response::{ProxyResponse, error_response},
};
use crate::{
    tasks::Tasks,
    traffic::{Dropped, Traffic},
};

const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

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
    route: Route,
    refused: Arc<AtomicU64>,
    /// Records or replays what passes through; `None` only passes it on.
    traffic: Option<Arc<Traffic>>,
    tasks: Tasks,
}

impl EgressProxy {
    /// Starts the proxy of a pool, which counts the connections that it refuses.
    pub(crate) async fn start(route: Route, tasks: &Tasks) -> io::Result<Self> {
        Self::start_for_lease(route, None, Arc::default(), tasks).await
    }

    /// Starts the proxy of a lease.
    pub(crate) async fn start_for_lease(
        route: Route,
        traffic: Option<Arc<Traffic>>,
        refused: Arc<AtomicU64>,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let inner = ProxyInner { route, refused: Arc::clone(&refused), traffic, tasks: tasks.clone() };
        let inner = Arc::new(inner);
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
                        let serving = serve(stream, Arc::clone(&inner));
                        inner.tasks.spawn_until_stopped("proxied connection", serving);
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
        vec![format!("--proxy-server=http://{}", self.address), "--proxy-bypass-list=<-loopback>".to_owned()]
    }

    /// Returns the number of refused connections.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// The flags without which WebRTC would bypass the proxy. The full browser reads the first, the headless shell the second.
pub(crate) const WEBRTC_FLAGS: [&str; 2] = [
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
];

async fn serve(stream: TcpStream, inner: Arc<ProxyInner>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let inner = Arc::clone(&inner);
        async move { respond(request, &inner).await }
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

async fn respond(request: Request<Incoming>, inner: &ProxyInner) -> Result<ProxyResponse, Dropped> {
    let is_tunnel = request.method() == Method::CONNECT;
    let outcome = match &inner.traffic {
        Some(traffic) if is_tunnel => traffic.tunnel(request, &inner.tasks).await.map(Ok),
        Some(traffic) => traffic.forward(request).await,
        None if is_tunnel => live::tunnel(request, &inner.route, &inner.tasks).await.map(Ok),
        None => live::forward(request, &inner.route).await.map(Ok),
    };
    outcome.unwrap_or_else(|error| {
        if matches!(error, ConnectError::Refused(_)) {
            inner.refused.fetch_add(1, Ordering::Relaxed);
        }
        Ok(error_response(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{egress::Upstream, options::NetworkRules};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn route(rules: NetworkRules) -> Route {
        Route { rules, upstream: None }
    }

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
        let proxy = EgressProxy::start(route(NetworkRules::default()), &tasks).await.unwrap();
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
        let route = Route { rules, upstream: Some(Upstream::new(&proxy).unwrap()) };
        EgressProxy::start_for_lease(route, None, Arc::default(), tasks).await.unwrap()
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
        let proxy = EgressProxy::start(route(rules), &tasks).await.unwrap();
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
