//! The identity with which the proxy of a lease answers for every site: one key of this process, which its own browsers
//! accept by hash (`--ignore-certificate-errors-spki-list`). It is never written to disk, and nothing is installed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData as _};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::{
    self, ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// Certificates are kept for this many hosts.
const MAX_HOSTS: usize = 1000;

/// A TLS identity cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("cannot create a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use a certificate: {0}")]
    Tls(#[from] rustls::Error),
}

pub(crate) struct Identity {
    key: KeyPair,
    servers: Mutex<HashMap<(String, bool), Arc<ServerConfig>>>,
}

impl Identity {
    pub(crate) fn create() -> Result<Self, IdentityError> {
        Ok(Self { key: KeyPair::generate()?, servers: Mutex::default() })
    }

    /// The flag that makes a browser accept this key for every site.
    pub(crate) fn browser_flag(&self) -> String {
        let hash = Sha256::digest(self.key.subject_public_key_info());
        format!("--ignore-certificate-errors-spki-list={}", STANDARD.encode(hash))
    }

    /// Returns how to answer for a host, with HTTP/2 if the client offers it.
    pub(super) fn server(&self, host: &str, http2: bool) -> Result<Arc<ServerConfig>, IdentityError> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.to_owned(), http2);
        if let Some(server) = servers.get(&key) {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(self.create_server(host, http2)?);
        if servers.len() >= MAX_HOSTS {
            servers.clear();
        }
        servers.insert(key, Arc::clone(&server));
        Ok(server)
    }

    fn create_server(&self, host: &str, http2: bool) -> Result<ServerConfig, IdentityError> {
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "webgym");
        let certificate = params.self_signed(&self.key)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        if http2 {
            server.alpn_protocols.push(b"h2".to_vec());
        }
        server.alpn_protocols.push(b"http/1.1".to_vec());
        Ok(server)
    }
}
