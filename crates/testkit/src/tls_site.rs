//! A website with TLS and HTTP/2. Its certificate is signed by an authority of its own, which a program trusts if
//! `SSL_CERT_FILE` names it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{Router, serve::Listener};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
    server::TlsStream,
};

/// Starts a site without TLS on loopback, which lives as long as the test. Returns its port.
pub async fn plain_site(router: Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        axum::serve(listener, router).await.unwrap();
    });
    port
}

/// A running site. Dropping it closes its port.
pub struct TlsSite {
    port: u16,
    host: String,
    folder: TempDir,
    server: JoinHandle<()>,
}

impl TlsSite {
    /// Starts a site on loopback. The host name should end in `.localhost`.
    pub async fn start(host: &str, router: Router) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (acceptor, authority) = certify(host);
        std::fs::write(folder.path().join("ca.pem"), authority).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let listener = TlsListener { listener, acceptor };
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self { port, host: host.to_owned(), folder, server }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}:{}{path}", self.host, self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority, for `SSL_CERT_FILE`.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

impl Drop for TlsSite {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn certify(host: &str) -> (TlsAcceptor, String) {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(server)), pem)
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            // A client that does not trust the authority only ends its own connection.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
