//! TLS with rustls and ring. The machine's certificates are read only when an address needs them, so that plain HTTP
//! works where there are none.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Whom to trust: the machine's certificate authorities, or nobody where nobody needs to be.
pub(super) fn roots(needed: bool) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if needed {
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
        .map_err(|problem| problem.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::{RootCertStore, ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::{Broken, client_trusting, exchange};

    /// A real TLS server that answers one request a connection.
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
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
                let _written = stream.write_all(answer).await;
                let _closed = stream.shutdown().await;
            }
        });
        url
    }

    #[tokio::test]
    async fn a_trusted_server_is_spoken_to_and_a_stranger_is_not() {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut trusting = RootCertStore::empty();
        trusting.add(certified.cert.der().clone()).unwrap();
        let url = serve(&certified.cert, &certified.signing_key).await;
        let get = |roots| {
            let request = client_trusting(&url, roots).unwrap().get(&url);
            async move { exchange(request, Duration::from_secs(20), 100).await }
        };
        assert_eq!(&get(trusting).await.unwrap().body[..], b"hi");
        let problem = get(RootCertStore::empty()).await.unwrap_err();
        assert!(matches!(&problem, Broken::Unreachable(why) if why.contains("UnknownIssuer")), "{problem:?}");
    }

    /// What is said about a server with such a certificate, made by somebody we trust.
    async fn said_about(name: &str, change: impl Fn(&mut rcgen::CertificateParams)) -> String {
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
        let request = client_trusting(&url, roots).unwrap().get(&url);
        match exchange(request, Duration::from_secs(20), 100).await {
            Ok(_) => "fine".to_owned(),
            Err(Broken::Unreachable(reason)) => reason,
            Err(other) => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_certificate_that_does_not_hold_is_named() {
        assert_eq!(said_about("localhost", |_| {}).await, "fine");
        let expired =
            said_about("localhost", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)).await;
        assert!(expired.contains("certificate") && expired.contains("expired"), "{expired}");
        let early =
            said_about("localhost", |params| params.not_before = rcgen::date_time_ymd(2199, 1, 1)).await;
        assert!(early.contains("not valid yet"), "{early}");
        let stranger = said_about("elsewhere.test", |_| {}).await;
        assert!(stranger.contains("not valid for") && stranger.contains("localhost"), "{stranger}");
    }
}
