//! The connections of a lease to sites while its traffic is recorded. Certificates of sites are verified with the roots of
//! this machine.

use std::{
    error::Error,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, CertificateError, ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use tower_service::Service;

use crate::egress::{ConnectError, Route, Stream, host_and_port};

type BoxError = Box<dyn Error + Send + Sync>;

/// The address of the site that answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteAddress(pub(super) IpAddr);

/// Why a site did not answer, as Chromium would name it.
#[derive(Clone, Debug)]
pub(super) struct SiteFailure {
    /// `net::ERR_…`.
    pub(super) error: &'static str,
    pub(super) message: String,
    pub(super) is_refused: bool,
}

pub(super) struct Sites {
    client: Client<Connector, Full<Bytes>>,
    /// For WebSockets, which start as HTTP/1.1.
    upgrading: Client<Connector, Full<Bytes>>,
    route: Route,
}

impl Sites {
    pub(super) fn new(route: &Route) -> Self {
        let client = |http2| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .http1_preserve_header_case(true)
                // Chromium's values, so that sites see less of a difference.
                .http2_header_table_size(65_536)
                .http2_initial_stream_window_size(6_291_456)
                .http2_initial_connection_window_size(15_728_640)
                .http2_max_header_list_size(262_144)
                .http2_max_frame_size(None)
                .build(Connector { route: route.clone(), http2 })
        };
        Self { client: client(true), upgrading: client(false), route: route.clone() }
    }

    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    /// Sends a request with an absolute URL. The failure is Chromium's name of the error.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        is_upgrade: bool,
    ) -> Result<Response<Incoming>, SiteFailure> {
        let plain_upstream =
            self.route.upstream.as_ref().filter(|_| request.uri().scheme_str() == Some("http"));
        if let Some(upstream) = plain_upstream {
            upstream.authorize(&mut request);
        }
        let client = if is_upgrade { &self.upgrading } else { &self.client };
        let response = client.request(request).await.map_err(|error| SiteFailure::new(&error))?;
        if let Some(upstream) = plain_upstream {
            upstream.check_response(&response).map_err(|error| SiteFailure::of_connect(&error))?;
        }
        Ok(response)
    }
}

impl SiteFailure {
    fn of_connect(error: &ConnectError) -> Self {
        let net_error = match error {
            ConnectError::Refused(_) => "net::ERR_BLOCKED_BY_CLIENT",
            ConnectError::Unresolved(_) => "net::ERR_NAME_NOT_RESOLVED",
            ConnectError::Failed(_) => "net::ERR_CONNECTION_FAILED",
            ConnectError::Proxy(_) => "net::ERR_PROXY_CONNECTION_FAILED",
        };
        let is_refused = matches!(error, ConnectError::Refused(_));
        Self { error: net_error, message: error.to_string(), is_refused }
    }

    fn new(error: &hyper_util::client::legacy::Error) -> Self {
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        let mut message = error.to_string();
        while let Some(cause) = source {
            if let Some(error) = cause.downcast_ref::<ConnectError>() {
                return Self::of_connect(error);
            }
            if let Some(error) = find_tls_error(cause) {
                return Self { error: tls_failure(error), message: error.to_string(), is_refused: false };
            }
            message = cause.to_string();
            source = cause.source();
        }
        Self { error: "net::ERR_CONNECTION_CLOSED", message, is_refused: false }
    }
}

/// TLS errors are inside an error of input and output.
fn find_tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    cause.downcast_ref::<rustls::Error>().or_else(|| inner.and_then(|inner| inner.downcast_ref()))
}

fn tls_failure(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => "net::ERR_CERT_DATE_INVALID",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "net::ERR_CERT_COMMON_NAME_INVALID"
            }
            _ => "net::ERR_CERT_AUTHORITY_INVALID",
        },
        _ => "net::ERR_SSL_PROTOCOL_ERROR",
    }
}

/// The TLS client of this process. The roots are read once.
fn tls_client(http2: bool) -> Result<Arc<ClientConfig>, String> {
    static CLIENTS: [OnceLock<Result<Arc<ClientConfig>, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    CLIENTS[usize::from(http2)].get_or_init(|| create_tls_client(http2)).clone()
}

fn create_tls_client(http2: bool) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if http2 {
        client.alpn_protocols.push(b"h2".to_vec());
    }
    client.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(Arc::new(client))
}

/// Connects to sites by the rules of the lease.
#[derive(Clone)]
struct Connector {
    route: Route,
    http2: bool,
}

impl Service<Uri> for Connector {
    type Response = SiteConnection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<SiteConnection, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri) -> Result<SiteConnection, BoxError> {
        if uri.scheme_str() == Some("http") {
            let (host, port) = host_and_port(uri, 80)?;
            let stream = self.route.open_plain(&host, port).await?;
            let is_proxied = self.route.upstream.is_some();
            let address = stream.peer_addr().ok().map(|peer| peer.ip()).filter(|_| !is_proxied);
            let stream = TokioIo::new(Box::new(stream) as Box<dyn Stream>);
            return Ok(SiteConnection { stream, address, is_proxied, http2: false });
        }
        let (host, port) = host_and_port(uri, 443)?;
        let (stream, address) = self.route.open(&host, port).await?;
        let name = ServerName::try_from(host)?;
        let stream = TlsConnector::from(tls_client(self.http2)?).connect(name, stream).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(Box::new(stream) as Box<dyn Stream>);
        Ok(SiteConnection { stream, address, is_proxied: false, http2 })
    }
}

struct SiteConnection {
    stream: TokioIo<Box<dyn Stream>>,
    address: Option<IpAddr>,
    is_proxied: bool,
    http2: bool,
}

impl Connection for SiteConnection {
    fn connected(&self) -> Connected {
        let mut connected = Connected::new().proxy(self.is_proxied);
        if self.http2 {
            connected = connected.negotiated_h2();
        }
        match self.address {
            Some(address) => connected.extra(RemoteAddress(address)),
            None => connected,
        }
    }
}

impl Read for SiteConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for SiteConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
