//! The secret in the address of a lease's CDP endpoint. It is the key to that lease only, so the address needs no API key.

use std::fmt;

use net::secret::secrets_equal;
use proto::InstanceId;

/// Digits of the incarnation of the node, by which a master finds it.
const TAG_DIGITS: usize = 16;

/// The secret of one lease. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeaseSecret(String);

impl fmt::Debug for LeaseSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseSecret(…)")
    }
}

impl LeaseSecret {
    /// Creates a random secret of 244 bits for a lease on the node with this incarnation.
    pub(crate) fn new(incarnation: &str) -> Self {
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

/// The segment of a path that gives access to a lease: its id and its secret. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LeaseAccess(String);

impl fmt::Debug for LeaseAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseAccess(…)")
    }
}

impl LeaseAccess {
    pub(crate) fn new(id: &impl fmt::Display, secret: &LeaseSecret) -> Self {
        Self(secret.path_segment(id))
    }

    /// Takes the segment from the `cdp_url` that a node returned.
    pub(crate) fn from_url(url: &str) -> Option<Self> {
        let (_, segment) = url.split_once("/cdp/")?;
        Some(Self(segment.trim_end_matches('/').to_owned()))
    }

    pub(crate) fn segment(&self) -> &str {
        &self.0
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
        let secret = LeaseSecret::new(&incarnation.simple().to_string());
        let segment = secret.path_segment(&id);
        let access = AccessSegment::parse(&segment).unwrap();
        assert!(access.opens(&secret) && access.is_for_node(incarnation.as_u128()));
        assert_eq!(access.instance(), Some(id));
        let other = LeaseSecret::new(&incarnation.simple().to_string());
        assert!(!access.opens(&other) && !access.is_for_node(incarnation.as_u128() ^ (1 << 127)));
        assert!(!format!("{secret:?}").contains(&secret.0));
        let cut = AccessSegment::parse(&segment[..segment.len() - 1]).unwrap();
        assert!(!cut.opens(&secret));
        assert!(AccessSegment::parse("no-dot").is_none());
    }
}
