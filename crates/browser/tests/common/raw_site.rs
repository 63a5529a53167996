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
    pub(crate) body: Vec<u8>,
}

/// A response: status line, further headers (each ending in a line break) and a body.
pub(crate) struct RawResponse {
    pub(crate) status: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) headers: &'static str,
    pub(crate) body: Vec<u8>,
}

impl RawResponse {
    pub(crate) fn page(body: impl Into<Vec<u8>>) -> Self {
        Self { status: "200 OK", content_type: "text/html", headers: "", body: body.into() }
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
        let head_end = loop {
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read_buf(&mut received).await {
                Ok(read) if read > 0 => {}
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&received[..head_end]).to_lowercase();
        let length =
            head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        let end = head_end + length.unwrap_or(0);
        while received.len() < end {
            match stream.read_buf(&mut received).await {
                Ok(read) if read > 0 => {}
                _ => return,
            }
        }
        let rest = received.split_off(end);
        let body = received.split_off(head_end);
        received = rest;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let response = respond(&RawRequest { path, head, connection, body });
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\ncache-control: no-store\r\n{}\r\n",
            response.status,
            response.content_type,
            response.body.len(),
            response.headers,
        );
        let mut bytes = head.into_bytes();
        bytes.extend(response.body);
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
