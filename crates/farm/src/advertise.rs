//! The address under which other machines reach this node: the configured one, the one it listens on, or, while it
//! listens on all addresses, the current address of this machine. Determined again at every heartbeat, because
//! addresses change.

use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

use crate::registry::RedisServer;

#[derive(Clone, Debug)]
pub(crate) struct AdvertisedAddress {
    /// The host if it is known, as written in a URL.
    host: Option<String>,
    port: u16,
    /// The Redis server: the local address used to reach it is most likely one that other machines can reach.
    redis: Option<(String, u16)>,
}

/// An address reserved for documentation. The route to it is the default route; nothing is ever sent there.
const DEFAULT_ROUTE_TARGET: (&str, u16) = ("192.0.2.1", 9);

impl AdvertisedAddress {
    pub(crate) fn new(configured: Option<&str>, bound: SocketAddr, redis: Option<&RedisServer>) -> Self {
        let bound_host = (!bound.ip().is_unspecified()).then(|| url_host(bound.ip()));
        let redis = redis.and_then(|redis| url::Url::parse(&redis.address).ok());
        let redis = redis.and_then(|url| Some((url.host_str()?.to_owned(), url.port().unwrap_or(6379))));
        Self { host: configured.map(str::to_owned).or(bound_host), port: bound.port(), redis }
    }

    /// Returns the current URL, or a loopback URL if this machine has no other address.
    pub(crate) async fn url(&self) -> String {
        self.current_url().await.unwrap_or_else(|| format!("http://127.0.0.1:{}", self.port))
    }

    /// Returns the current URL. `None` while the machine has no network.
    pub(crate) async fn current_url(&self) -> Option<String> {
        let host = match &self.host {
            Some(host) => host.clone(),
            None => self.detect_host().await?,
        };
        Some(format!("http://{host}:{}", self.port))
    }

    /// True if the URL is a loopback one although other machines are meant to use it.
    pub(crate) fn is_unreachable_remotely(&self, url: &str) -> bool {
        let is_loopback =
            |host: &str| host == "localhost" || host.starts_with("127.") || host.contains("::1");
        let host = url.trim_start_matches("http://");
        is_loopback(host) && self.redis.as_ref().is_some_and(|(redis, _)| !is_loopback(redis))
    }

    async fn detect_host(&self) -> Option<String> {
        let redis = self.redis.as_ref().map(|(host, port)| (host.as_str(), *port));
        for target in redis.into_iter().chain([DEFAULT_ROUTE_TARGET]) {
            if let Some(ip) = source_address(target).await.filter(|ip| !ip.is_loopback()) {
                return Some(url_host(ip));
            }
        }
        None
    }
}

fn url_host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// Returns the address that packets to the target would be sent from.
async fn source_address(target: (&str, u16)) -> Option<IpAddr> {
    let target = tokio::net::lookup_host(target).await.ok()?.next()?;
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(target).await.ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn url(configured: Option<&str>, bound: &str) -> String {
        let redis = RedisServer::new("redis://127.0.0.1:6379");
        AdvertisedAddress::new(configured, bound.parse().unwrap(), Some(&redis)).url().await
    }

    #[tokio::test]
    async fn configured_address_wins_over_bound_one() {
        assert_eq!(url(Some("farm.example"), "0.0.0.0:8080").await, "http://farm.example:8080");
        assert_eq!(url(None, "127.0.0.3:8080").await, "http://127.0.0.3:8080");
        assert_eq!(url(None, "[::1]:8080").await, "http://[::1]:8080");
        let detected = url(None, "0.0.0.0:8080").await;
        assert!(
            detected.starts_with("http://") && detected.ends_with(":8080") && !detected.contains("0.0.0.0"),
            "{detected}"
        );
    }

    #[test]
    fn loopback_address_with_remote_redis_is_noticed() {
        let bound = "127.0.0.1:8080".parse().unwrap();
        let is_unreachable = |redis: &str, url: &str| {
            let redis = RedisServer::new(redis);
            AdvertisedAddress::new(None, bound, Some(&redis)).is_unreachable_remotely(url)
        };
        assert!(is_unreachable("redis://:secret@10.0.0.9:6379", "http://127.0.0.1:8080"));
        assert!(!is_unreachable("redis://localhost:6379", "http://127.0.0.1:8080"));
        assert!(!is_unreachable("redis://10.0.0.9", "http://10.0.0.5:8080"));
    }
}
