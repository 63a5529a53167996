//! The secrets in the addresses of a lease: one for CDP clients, one to watch it and one to take it over. Each is the key to
//! that use of that lease only, so the addresses need no API key.

use std::fmt;

use net::secret::secrets_equal;
use proto::InstanceId;
use serde_json::{Value, json};

use crate::public_address::PublicAddress;

/// Digits of the incarnation of the node, by which a master finds it.
const TAG_DIGITS: usize = 16;

/// The fields of the answer of `/get` that calls ignore if a client sends them back.
pub(crate) const LEASE_FIELDS: [&str; 5] = ["node", "instance_id", "cdp_url", "live_url", "live_control_url"];

/// What is served below an address with a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Cdp,
    Live,
}

impl Endpoint {
    /// The first segment of its paths.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Cdp => "cdp",
            Self::Live => "live",
        }
    }
}

/// A secret. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeaseSecret(String);

impl fmt::Debug for LeaseSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseSecret(…)")
    }
}

impl LeaseSecret {
    /// Creates a random secret of 244 bits for a lease on the node with this incarnation.
    fn new(incarnation: &str) -> Self {
        let random = || uuid::Uuid::new_v4().simple();
        Self(format!("{}{}{}", tag(incarnation), random(), random()))
    }

    fn matches(&self, given: &str) -> bool {
        secrets_equal(given.as_bytes(), self.0.as_bytes())
    }

    /// Returns the segment of a path that gives access to the lease.
    fn path_segment(&self, id: &impl fmt::Display) -> String {
        format!("{id}.{}", self.0)
    }
}

fn tag(incarnation: &str) -> String {
    let digits: String = incarnation.chars().take(TAG_DIGITS).collect();
    format!("{digits:0>TAG_DIGITS$}")
}

/// The secrets of one lease.
#[derive(Clone, Debug)]
pub(crate) struct LeaseSecrets {
    pub(crate) cdp: LeaseSecret,
    /// Opens the live view to watch.
    pub(crate) live: LeaseSecret,
    /// Opens the live view to take over.
    pub(crate) live_control: LeaseSecret,
}

impl LeaseSecrets {
    pub(crate) fn new(incarnation: &str) -> Self {
        let secret = || LeaseSecret::new(incarnation);
        Self { cdp: secret(), live: secret(), live_control: secret() }
    }
}

/// The segments of paths that give access to a lease: its id and its secrets. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeaseAccess {
    cdp: Option<String>,
    live: Option<String>,
    live_control: Option<String>,
}

impl fmt::Debug for LeaseAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseAccess(…)")
    }
}

impl LeaseAccess {
    pub(crate) fn new(id: &impl fmt::Display, secrets: &LeaseSecrets) -> Self {
        let segment = |secret: &LeaseSecret| Some(secret.path_segment(id));
        Self {
            cdp: segment(&secrets.cdp),
            live: segment(&secrets.live),
            live_control: segment(&secrets.live_control),
        }
    }

    /// Takes the segments from the addresses that a node returned. Older versions return none, or only the first.
    pub(crate) fn from_urls(
        cdp: Option<&str>,
        live: Option<&str>,
        live_control: Option<&str>,
    ) -> Option<Self> {
        let segment = |url: Option<&str>, endpoint: Endpoint| {
            let (_, segment) = url?.split_once(&format!("/{}/", endpoint.as_str()))?;
            Some(segment.trim_end_matches('/').to_owned())
        };
        let access = Self {
            cdp: segment(cdp, Endpoint::Cdp),
            live: segment(live, Endpoint::Live),
            live_control: segment(live_control, Endpoint::Live),
        };
        access.cdp.is_some().then_some(access)
    }

    /// Adds the addresses of the lease to the answer of `/get` or `/session`.
    pub(crate) fn add_urls(&self, answer: &mut Value, address: &PublicAddress) {
        let urls = [
            ("cdp_url", Endpoint::Cdp, &self.cdp),
            ("live_url", Endpoint::Live, &self.live),
            ("live_control_url", Endpoint::Live, &self.live_control),
        ];
        for (field, endpoint, segment) in urls {
            if let Some(segment) = segment {
                answer[field] = json!(address.url(endpoint, segment));
            }
        }
    }
}

/// The segment of a path that gives access to a lease, as a client sent it.
pub(crate) struct AccessSegment<'a> {
    pub(crate) id: &'a str,
    secret: &'a str,
}

impl<'a> AccessSegment<'a> {
    pub(crate) fn parse(segment: &'a str) -> Option<Self> {
        let (id, secret) = segment.rsplit_once('.')?;
        Some(Self { id, secret })
    }

    pub(crate) fn opens(&self, secret: &LeaseSecret) -> bool {
        secret.matches(self.secret)
    }

    /// Whether the secret names the node with this incarnation.
    pub(crate) fn is_for_node(&self, incarnation: u128) -> bool {
        self.secret.get(..TAG_DIGITS) == Some(&tag(&format!("{incarnation:032x}")))
    }

    pub(crate) fn instance(&self) -> Option<InstanceId> {
        self.id.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proto::LeaseId;

    use super::*;

    #[test]
    fn only_the_own_secret_opens_a_lease() {
        let id = InstanceId { lease: LeaseId::new(), slot: 9003 };
        let incarnation = uuid::Uuid::new_v4();
        let secrets = LeaseSecrets::new(&incarnation.simple().to_string());
        let segment = secrets.cdp.path_segment(&id);
        let access = AccessSegment::parse(&segment).unwrap();
        assert!(access.opens(&secrets.cdp) && access.is_for_node(incarnation.as_u128()));
        assert!(!access.opens(&secrets.live) && !access.opens(&secrets.live_control));
        assert_eq!(access.instance(), Some(id));
        let other = LeaseSecrets::new(&incarnation.simple().to_string());
        assert!(!access.opens(&other.cdp) && !access.is_for_node(incarnation.as_u128() ^ (1 << 127)));
        assert!(!format!("{secrets:?}").contains(&secrets.cdp.0));
        let cut = AccessSegment::parse(&segment[..segment.len() - 1]).unwrap();
        assert!(!cut.opens(&secrets.cdp));
        assert!(AccessSegment::parse("no-dot").is_none());
    }

    #[test]
    fn addresses_of_a_node_are_passed_on() {
        let id = InstanceId { lease: LeaseId::new(), slot: 9000 };
        let access = LeaseAccess::new(&id, &LeaseSecrets::new("0123"));
        let mut headers = axum::http::HeaderMap::new();
        headers.insert("host", "node:8080".parse().unwrap());
        let mut answer = json!({});
        access.add_urls(&mut answer, &PublicAddress::of(&headers).unwrap());
        let url = |field: &str| answer[field].as_str();
        assert!(url("live_url").is_some_and(|url| url.starts_with("http://node:8080/live/")), "{answer}");
        assert_ne!(url("live_url"), url("live_control_url"));
        let passed = LeaseAccess::from_urls(url("cdp_url"), url("live_url"), url("live_control_url"));
        assert_eq!(passed, Some(access));
        assert_eq!(LeaseAccess::from_urls(None, None, None), None, "a node of the Python system");
        assert!(LeaseAccess::from_urls(url("cdp_url"), None, None).is_some(), "a node of an older version");
    }
}
