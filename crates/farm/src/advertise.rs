//! Where others find this node: the address given by hand, the one listened on, or, while listening on all, the one
//! this machine has at the moment. Asked again at every sign of life, for addresses change.

use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

use crate::registry::RedisServer;

#[derive(Clone, Debug)]
pub(crate) struct Advertised {
    /// As it goes into a URL.
    fixed: Option<String>,
    port: u16,
    /// Whom to look towards: whoever reaches Redis under an address is most likely reached under it.
    towards: Option<(String, u16)>,
}

/// An address for documentation that is nobody's: the road to it is the road to the world. Nothing is sent.
const ANYWHERE: (&str, u16) = ("192.0.2.1", 9);

impl Advertised {
    pub(crate) fn new(given: Option<&str>, bound: SocketAddr, redis: Option<&RedisServer>) -> Self {
        let listened = (!bound.ip().is_unspecified()).then(|| in_url(bound.ip()));
        let redis = redis.and_then(|redis| url::Url::parse(&redis.address).ok());
        let towards = redis.and_then(|url| Some((url.host_str()?.to_owned(), url.port().unwrap_or(6379))));
        Self { fixed: given.map(str::to_owned).or(listened), port: bound.port(), towards }
    }

    /// The address at the start; of this machine alone where no other is found.
    pub(crate) async fn url(&self) -> String {
        self.now().await.unwrap_or_else(|| format!("http://127.0.0.1:{}", self.port))
    }

    /// The address at the moment. A machine that has just lost its network has none.
    pub(crate) async fn now(&self) -> Option<String> {
        let host = match &self.fixed {
            Some(host) => host.clone(),
            None => self.found().await?,
        };
        Some(format!("http://{host}:{}", self.port))
    }

    /// Whether only this machine could follow the address, though others are to.
    pub(crate) fn misleads(&self, url: &str) -> bool {
        let local = |host: &str| host == "localhost" || host.starts_with("127.") || host.contains("::1");
        let host = url.trim_start_matches("http://");
        local(host) && self.towards.as_ref().is_some_and(|(redis, _)| !local(redis))
    }

    async fn found(&self) -> Option<String> {
        let redis = self.towards.as_ref().map(|(host, port)| (host.as_str(), *port));
        for towards in redis.into_iter().chain([ANYWHERE]) {
            if let Some(ip) = source_towards(towards).await.filter(|ip| !ip.is_loopback()) {
                return Some(in_url(ip));
            }
        }
        None
    }
}

fn in_url(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

async fn source_towards(target: (&str, u16)) -> Option<IpAddr> {
    let target = tokio::net::lookup_host(target).await.ok()?.next()?;
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(target).await.ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn url(given: Option<&str>, bound: &str) -> String {
        Advertised::new(given, bound.parse().unwrap(), Some(&RedisServer::new("redis://127.0.0.1:6379")))
            .url()
            .await
    }

    #[tokio::test]
    async fn what_is_given_wins_then_what_is_listened_on() {
        assert_eq!(url(Some("farm.example"), "0.0.0.0:8080").await, "http://farm.example:8080");
        assert_eq!(url(None, "127.0.0.3:8080").await, "http://127.0.0.3:8080");
        assert_eq!(url(None, "[::1]:8080").await, "http://[::1]:8080");
        let found = url(None, "0.0.0.0:8080").await;
        assert!(
            found.starts_with("http://") && found.ends_with(":8080") && !found.contains("0.0.0.0"),
            "{found}"
        );
    }

    #[test]
    fn an_address_only_this_machine_can_follow_is_noticed() {
        let bound = "127.0.0.1:8080".parse().unwrap();
        let misleads = |redis| {
            Advertised::new(None, bound, Some(&RedisServer::new(redis))).misleads("http://127.0.0.1:8080")
        };
        assert!(misleads("redis://:secret@10.0.0.9:6379"));
        assert!(!misleads("redis://localhost:6379"));
        assert!(
            !Advertised::new(None, bound, Some(&RedisServer::new("redis://10.0.0.9")))
                .misleads("http://10.0.0.5:8080")
        );
    }
}
