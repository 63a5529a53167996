//! Ids of leases and instances. A client holds an instance id of the form `uuid:port`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The fencing token of one tenancy. Every tenant gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(Uuid);

impl LeaseId {
    #[allow(
        clippy::new_without_default,
        reason = "each call returns a different id, which is no default value"
    )]
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LeaseId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::parse_str(text).map(Self).map_err(|_| InvalidId)
    }
}

/// The id that `/get` returns: the lease and the slot it holds (called "port" on the wire).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId {
    pub lease: LeaseId,
    pub slot: u16,
}

/// The text is not `<uuid>:<port>`. Existing clients match on the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Invalid instance UUID")]
pub struct InvalidId;

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lease, self.slot)
    }
}

impl FromStr for InstanceId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (lease, slot) = text.split_once(':').ok_or(InvalidId)?;
        if slot.is_empty() || !slot.bytes().all(|b| b.is_ascii_digit()) {
            return Err(InvalidId);
        }
        Ok(Self { lease: lease.parse()?, slot: slot.parse().map_err(|_| InvalidId)? })
    }
}

impl Serialize for InstanceId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InstanceId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_id_round_trips_through_text() {
        let id = InstanceId { lease: LeaseId::new(), slot: 9007 };
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn malformed_ids_are_refused() {
        let uuid = LeaseId::new().to_string();
        for malformed in [
            "",
            ":",
            "9000",
            &uuid,
            &format!("{uuid}:"),
            &format!("{uuid}:+9000"),
            &format!("{uuid}:99999"),
            "x:9000",
        ] {
            assert_eq!(malformed.parse::<InstanceId>(), Err(InvalidId), "{malformed:?}");
        }
    }
}
