//! Connecting to sites: names are resolved here, every address is checked, and the connection goes to exactly that address.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{address::refusal_reason, upstream::Upstream};
use crate::options::NetworkRules;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a site.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why a site cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unresolved(String),
    #[error("{0}")]
    Failed(String),
    /// The proxy that the client chose does not work.
    #[error("{0}")]
    Proxy(String),
}

/// How the pages of a lease, or of a pool, reach sites.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) rules: NetworkRules,
    /// Through which proxy it connects; `None` connects directly.
    pub(crate) upstream: Option<Upstream>,
}

impl Route {
    /// Opens a connection to the site itself, through the proxy of the lease if it has one. Returns its address if it is known.
    pub(crate) async fn open(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(Box<dyn Stream>, Option<IpAddr>), ConnectError> {
        if let Some(upstream) = &self.upstream {
            check_destination(&self.rules, host, port).await?;
            return Ok((upstream.tunnel(&self.rules, host, port).await?, None));
        }
        let stream = connect_directly(&self.rules, host, port).await?;
        let address = stream.peer_addr().ok().map(|peer| peer.ip());
        Ok((Box::new(stream), address))
    }

    /// Connects to where plain HTTP requests for a site are sent: the site, or the proxy of the lease, which takes whole URLs.
    pub(crate) async fn open_plain(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        match &self.upstream {
            Some(upstream) => {
                check_destination(&self.rules, host, port).await?;
                upstream.connect(&self.rules).await
            }
            None => connect_directly(&self.rules, host, port).await,
        }
    }
}

/// Refuses a destination whose name resolves to forbidden addresses here. The proxy of the lease resolves the name again,
/// and a name that only it knows is left to it.
pub(super) async fn check_destination(
    rules: &NetworkRules,
    host: &str,
    port: u16,
) -> Result<(), ConnectError> {
    let addresses = resolve(host, port).await.unwrap_or_default();
    match addresses.iter().find_map(|address| refusal_reason(rules, host, port, *address)) {
        Some(reason) => Err(ConnectError::Refused(reason)),
        None => Ok(()),
    }
}

pub(super) async fn connect_directly(
    rules: &NetworkRules,
    host: &str,
    port: u16,
) -> Result<TcpStream, ConnectError> {
    let addresses = resolve(host, port)
        .await
        .map_err(|error| ConnectError::Unresolved(format!("webgym: {host}: {error}")))?;
    let mut refused = None;
    let mut failed = format!("{host} has no address");
    for address in addresses {
        if let Some(reason) = refusal_reason(rules, host, port, address) {
            refused.get_or_insert(reason);
            continue;
        }
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error.to_string(),
            Err(_) => failed = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    Err(refused.map_or(ConnectError::Failed(failed), ConnectError::Refused))
}

/// Resolves a host name. Names under `localhost` always mean this machine, as in Chromium.
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
