//! TLS with rustls and ring. The machine's CA certificates are read only for https URLs, so that plain HTTP works on machines
//! without any.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Returns the machine's CA certificates, or none when TLS is not used.
pub(super) fn roots(is_https: bool) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if is_https {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err("no CA certificates on this machine; install them or set SSL_CERT_FILE".into());
        }
    }
    Ok(roots)
}

pub(super) fn config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::{RootCertStore, ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::{KeepAlive, TransportError, client_trusting, send_request};

    /// Starts a TLS server that answers one request per connection.
    async fn serve(cert: &rcgen::Certificate, key: &rcgen::KeyPair) -> String {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut buffer = [0; 1024];
                let _read = stream.read(&mut buffer).await;
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
                let _written = stream.write_all(response).await;
                let _closed = stream.shutdown().await;
            }
        });
        url
    }

    #[tokio::test]
    async fn untrusted_server_is_refused() {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut trusting = RootCertStore::empty();
        trusting.add(certified.cert.der().clone()).unwrap();
        let url = serve(&certified.cert, &certified.signing_key).await;
        let get = |roots| {
            let request = client_trusting(&url, roots, KeepAlive::Short).unwrap().get(&url);
            async move { send_request(request, Duration::from_secs(20), 100).await }
        };
        assert_eq!(&get(trusting).await.unwrap().body[..], b"hi");
        let error = get(RootCertStore::empty()).await.unwrap_err();
        assert!(
            matches!(&error, TransportError::Unreachable(reason) if reason.contains("UnknownIssuer")),
            "{error:?}"
        );
    }

    /// Connects to a server whose certificate is modified by `change` and signed by a trusted CA. Returns the error, or `fine`.
    async fn connect_error(name: &str, change: impl Fn(&mut rcgen::CertificateParams)) -> String {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).unwrap();
        let issuer = rcgen::Issuer::from_params(&params, &authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let url = serve(&params.signed_by(&key, &issuer).unwrap(), &key).await;
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let request = client_trusting(&url, roots, KeepAlive::Short).unwrap().get(&url);
        match send_request(request, Duration::from_secs(20), 100).await {
            Ok(_) => "fine".to_owned(),
            Err(TransportError::Unreachable(reason)) => reason,
            Err(other) => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn invalid_certificate_is_explained() {
        assert_eq!(connect_error("localhost", |_| {}).await, "fine");
        let expired =
            connect_error("localhost", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)).await;
        assert!(expired.contains("certificate") && expired.contains("expired"), "{expired}");
        let early =
            connect_error("localhost", |params| params.not_before = rcgen::date_time_ymd(2199, 1, 1)).await;
        assert!(early.contains("not valid yet"), "{early}");
        let other_name = connect_error("elsewhere.test", |_| {}).await;
        assert!(other_name.contains("not valid for") && other_name.contains("localhost"), "{other_name}");
    }
}
