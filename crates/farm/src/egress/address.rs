//! The rules for which addresses a web page may reach. Pure functions of addresses and host names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::options::NetworkRules;

/// True only for addresses of the public internet: not for this machine, its network or a cloud's metadata service.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b) {
        (0 | 10 | 127, _)       // this network, private, loopback
        | (100, 64..=127)       // carrier-grade NAT
        | (169, 254)            // link-local, cloud metadata
        | (172, 16..=31)        // private
        | (192, 168)            // private
        | (198, 18 | 19) => true, // benchmarking
        (192, 0) => c == 0 || c == 2,
        (198, 51) => c == 100,
        (203, 0) => c == 113,
        _ => a >= 224, // multicast, reserved, broadcast
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Addresses that embed an IPv4 address are as public as that one.
    let embedded =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)));
    if segments[..5] == [0; 5] && (segments[5] == 0xffff || segments[5] == 0) {
        // IPv4-mapped and IPv4-compatible addresses; the latter include `::` and `::1`.
        return segments[5] == 0xffff && embedded(segments[6], segments[7]);
    }
    if segments[0] == 0x64 && segments[1] == 0xff9b {
        return segments[2..6] == [0; 4] && embedded(segments[6], segments[7]);
    }
    if segments[0] == 0x2002 {
        return embedded(segments[1], segments[2]);
    }
    // Global unicast only, without the documentation, Teredo and benchmarking blocks.
    segments[0] & 0xe000 == 0x2000
        && !(segments[0] == 0x2001 && (segments[1] == 0xdb8 || segments[1] == 0 || segments[1] == 2))
        && segments[0] != 0x3fff
}

impl NetworkRules {
    /// True if nothing has to be checked.
    pub fn is_unrestricted(&self) -> bool {
        self.allow_private
    }

    /// True if the host is allowed by name, no matter what it resolves to.
    pub(crate) fn allows_by_name(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        self.allow_hosts.iter().any(|allowed| {
            let allowed = allowed.to_ascii_lowercase();
            let (name, allowed_port) = match allowed.rsplit_once(':') {
                Some((name, digits)) if !name.contains(':') || name.ends_with(']') => {
                    (name.to_owned(), digits.parse().ok())
                }
                _ => (allowed.clone(), None),
            };
            let name = name.trim_start_matches('[').trim_end_matches(']');
            let is_same_host = match name.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
                None => host == name,
            };
            is_same_host && allowed_port.is_none_or(|allowed: u16| allowed == port)
        })
    }
}

/// Returns why a connection to `address` for `host` is refused.
pub fn refusal_reason(rules: &NetworkRules, host: &str, port: u16, address: IpAddr) -> Option<String> {
    if rules.is_unrestricted() || rules.allows_by_name(host, port) || is_public(address) {
        return None;
    }
    Some(format!(
        "{host} is at {address}, a private or local address that pages may not reach (allow it with --allow-host {host} or \
         --allow-private-network)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_special_addresses_are_not_public() {
        let private = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 \
            192.0.0.1 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 \
            :: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 fe80::1 fc00::1 fd00:ec2::254 ff02::1 64:ff9b::7f00:1 \
            64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1:: 2001:db8::1 2001::1 3fff::1 5f00::1";
        for address in private.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let public = "1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 223.255.255.255 \
            2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808:: 2001:4860::8888";
        for address in public.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn hosts_match_by_name_port_and_wildcard() {
        let rules = NetworkRules {
            allow_private: false,
            allow_hosts: vec![
                "shop.test".into(),
                "intra.test:8080".into(),
                "*.lab.test".into(),
                "[::1]:90".into(),
            ],
        };
        for (host, port, allowed) in [
            ("shop.test", 80, true),
            ("SHOP.test", 443, true),
            ("evilshop.test", 80, false),
            ("intra.test", 8080, true),
            ("intra.test", 80, false),
            ("a.lab.test", 80, true),
            ("lab.test", 80, false),
            ("xlab.test", 80, false),
            ("::1", 90, true),
            ("[::1]", 91, false),
        ] {
            assert_eq!(rules.allows_by_name(host, port), allowed, "{host}:{port}");
        }
    }
}
