//! A site whose responses a test writes byte by byte, and which reports over which connection a request came.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::PublicKeyData;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

/// A request: its path, its head in lower case, and the port of the connection.
pub(crate) struct RawRequest {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) connection: u16,
}

/// A response: status line, further headers (each ending in a line break) and an HTML body.
pub(crate) struct RawResponse {
    pub(crate) status: &'static str,
    pub(crate) headers: &'static str,
    pub(crate) body: String,
}

impl RawResponse {
    pub(crate) fn page(body: impl Into<String>) -> Self {
        Self { status: "200 OK", headers: "", body: body.into() }
    }
}

type Respond = Arc<dyn Fn(&RawRequest) -> RawResponse + Send + Sync>;

/// Starts a site on a free loopback port. It lives as long as the test binary.
pub(crate) async fn start(
    respond: impl Fn(&RawRequest) -> RawResponse + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let respond: Respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            tokio::spawn(serve(stream, peer.port(), Arc::clone(&respond)));
        }
    });
    address
}

/// Starts a site with TLS. Returns its address and the hash of its key, by which a browser can be told to trust it.
pub(crate) async fn start_tls(
    host: &str,
    respond: impl Fn(&RawRequest) -> RawResponse + Send + Sync + 'static,
) -> (SocketAddr, String) {
    let certified = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a certificate");
    let hash = STANDARD.encode(Sha256::digest(certified.signing_key.subject_public_key_info()));
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a TLS configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let respond: Respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let (acceptor, respond) = (acceptor.clone(), Arc::clone(&respond));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, peer.port(), respond).await;
                }
            });
        }
    });
    (address, hash)
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, connection: u16, respond: Respond) {
    let mut received = Vec::new();
    loop {
        while !received.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            match stream.read_buf(&mut received).await {
                Ok(read) if read > 0 => {}
                _ => return,
            }
        }
        let head = String::from_utf8_lossy(&std::mem::take(&mut received)).to_lowercase();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let response = respond(&RawRequest { path, head, connection });
        let text = format!(
            "HTTP/1.1 {}\r\ncontent-type: text/html\r\ncontent-length: {}\r\ncache-control: no-store\r\n{}\r\n{}",
            response.status,
            response.body.len(),
            response.headers,
            response.body
        );
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}
