//! The proxy that a client chose for its lease. The egress proxy of the lease connects through it, and adds the
//! credentials, which therefore never reach the browser.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    Method, Request, StatusCode, Uri,
    header::{HeaderValue, PROXY_AUTHORIZATION},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{
    ConnectError,
    connect::{Stream, check_destination, connect_directly},
};
use crate::{error::ApiError, options::NetworkRules};

#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    host: String,
    port: u16,
    credentials: Option<HeaderValue>,
}

impl Upstream {
    pub(crate) fn new(proxy: &proto::session_options::Proxy) -> Result<Self, ApiError> {
        let invalid = |reason: String| ApiError::BadRequest(format!("the session option proxy: {reason}"));
        let (host, port) = proxy.address().map_err(invalid)?;
        let credentials = proxy.username.as_ref().map(|username| {
            let password = proxy.password.as_ref().map_or("", |secret| secret.0.as_str());
            format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
        });
        let credentials = credentials.map(|text| HeaderValue::from_str(&text)).transpose();
        let mut credentials = credentials.map_err(|error| invalid(error.to_string()))?;
        if let Some(value) = &mut credentials {
            value.set_sensitive(true);
        }
        Ok(Self { host: host.to_owned(), port, credentials })
    }

    /// Connects to the proxy itself, whose address must be allowed as well.
    pub(super) async fn connect(&self, rules: &NetworkRules) -> Result<TcpStream, ConnectError> {
        connect_directly(rules, &self.host, self.port).await.map_err(|error| match error {
            ConnectError::Refused(reason) => {
                ConnectError::Refused(format!("the proxy of the lease: {reason}"))
            }
            ConnectError::Unresolved(reason) | ConnectError::Failed(reason) | ConnectError::Proxy(reason) => {
                ConnectError::Proxy(reason)
            }
        })
    }

    /// Fails if pages may not reach the proxy itself.
    pub(crate) async fn check(&self, rules: &NetworkRules) -> Result<(), ApiError> {
        match check_destination(rules, &self.host, self.port).await {
            Err(ConnectError::Refused(reason)) => {
                Err(ApiError::BadRequest(format!("the session option proxy: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the proxy wants other credentials.
    pub(crate) fn check_response<B>(&self, response: &hyper::Response<B>) -> Result<(), ConnectError> {
        if response.status() != StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Ok(());
        }
        let given = if self.credentials.is_some() { "other" } else { "no" };
        Err(ConnectError::Proxy(format!("it wants credentials, and the lease has {given} ones")))
    }

    /// Adds the credentials to a request that is sent to the proxy.
    pub(crate) fn authorize<B>(&self, request: &mut Request<B>) {
        if let Some(credentials) = &self.credentials {
            request.headers_mut().insert(PROXY_AUTHORIZATION, credentials.clone());
        }
    }

    /// Opens a tunnel through the proxy.
    pub(super) async fn tunnel(
        &self,
        rules: &NetworkRules,
        host: &str,
        port: u16,
    ) -> Result<Box<dyn Stream>, ConnectError> {
        let failed = |error: hyper::Error| ConnectError::Proxy(error.to_string());
        let stream = self.connect(rules).await?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .handshake::<_, Empty<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        // Ends with the tunnel.
        tokio::spawn(connection.with_upgrades());
        let authority =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let uri = Uri::builder().authority(authority.as_str()).build();
        let uri = uri.map_err(|error| ConnectError::Failed(error.to_string()))?;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = uri;
        if let Ok(value) = HeaderValue::from_str(&authority) {
            request.headers_mut().insert(hyper::header::HOST, value);
        }
        self.authorize(&mut request);
        let response = sender.send_request(request).await.map_err(failed)?;
        self.check_response(&response)?;
        if !response.status().is_success() {
            return Err(ConnectError::Proxy(format!("it answered {}", response.status())));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(failed)?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}
