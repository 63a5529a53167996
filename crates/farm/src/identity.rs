//! The identity of a node, independent of its address: an id that survives restarts, and an incarnation that is unique
//! to this process. Neither depends on a clock.

use std::fmt;

/// A node's id in the registry and the incarnation of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Survives restarts. Configured, or derived from host name, machine id and port.
    pub id: String,
    /// New for each process: two addresses with the same incarnation are one node.
    pub incarnation: String,
}

/// A node id that cannot be used in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidNodeId(String);

impl fmt::Display for InvalidNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid node id; use 1 to {MAX_ID_BYTES} letters, digits, dots, dashes or underscores",
            self.0
        )
    }
}

impl std::error::Error for InvalidNodeId {}

const MAX_ID_BYTES: usize = 100;

impl Identity {
    /// Uses the configured id, or derives one for the node that listens on this port of this machine.
    pub fn new(configured: Option<&str>, port: u16) -> Result<Self, InvalidNodeId> {
        let id = match configured {
            Some(id) => validate(id)?,
            None => derive_id(&host_name(), &machine_id(), port),
        };
        Ok(Self { id, ..Self::default() })
    }

    /// Returns an id that no other node has, for when another node is registered under ours.
    pub(crate) fn unique_id(&self) -> String {
        let suffix: String = self.incarnation.chars().take(8).collect();
        format!("{}-{suffix}", self.id)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self { id: host_name(), incarnation: uuid::Uuid::new_v4().simple().to_string() }
    }
}

fn validate(id: &str) -> Result<String, InvalidNodeId> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_valid = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(is_allowed);
    if is_valid { Ok(id.to_owned()) } else { Err(InvalidNodeId(id.chars().take(MAX_ID_BYTES).collect())) }
}

fn derive_id(host: &str, machine: &str, port: u16) -> String {
    format!("{host}-{:08x}", fnv1a(&format!("{machine}\n{port}")))
}

/// A hash that stays the same in every version, which the standard library does not promise of its hasher.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the id of this installation. Clones of an image may share it; the registry resolves such conflicts.
fn machine_id() -> String {
    let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok().filter(|id| !id.trim().is_empty()));
    id.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_id_is_stable_and_distinct() {
        assert_eq!(derive_id("alpha", "m1", 8080), derive_id("alpha", "m1", 8080));
        let others =
            [derive_id("beta", "m1", 8080), derive_id("alpha", "m2", 8080), derive_id("alpha", "m1", 8081)];
        for other in others {
            assert_ne!(other, derive_id("alpha", "m1", 8080));
        }
        let (one, two) = (Identity::new(None, 1).unwrap(), Identity::new(None, 1).unwrap());
        assert_eq!(one.id, two.id);
        assert_ne!(one.incarnation, two.incarnation);
        assert_ne!(one.unique_id(), two.unique_id());
    }

    #[test]
    fn invalid_configured_id_is_refused() {
        assert_eq!(Identity::new(Some("pod-3.farm_1"), 1).unwrap().id, "pod-3.farm_1");
        for invalid in ["", "a b", "a*", "ä", &"x".repeat(101)] {
            assert!(Identity::new(Some(invalid), 1).is_err(), "{invalid:?}");
        }
    }
}
