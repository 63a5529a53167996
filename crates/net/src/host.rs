//! Recognises requests that are addressed to this machine. A web page elsewhere can make its own host name resolve to
//! 127.0.0.1 (DNS rebinding) and reach local servers from a browser on this machine, but its requests then carry that
//! name in the `Host` header.

use std::net::IpAddr;

/// Returns whether `host`, the value of a `Host` header with or without a port, is `localhost`, a name below
/// `.localhost` or an IP address. No web page can make one of these resolve to this machine by changing its DNS records.
pub fn is_local_host(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = without_port.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_names_and_addresses_are_local() {
        for host in [
            "localhost",
            "LOCALHOST:7000",
            "a.localhost:1",
            "A.LocalHost:1",
            "127.0.0.1:7000",
            "[::1]:7000",
            "[::1]",
            "10.0.0.1",
        ] {
            assert!(is_local_host(host), "{host}");
        }
    }

    #[test]
    fn foreign_names_are_not_local() {
        for host in
            ["evil.test", "evil.test:7000", "localhost.evil.test", "127.0.0.1.evil.test:80", "", "a:b"]
        {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
