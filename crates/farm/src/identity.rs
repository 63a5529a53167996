//! Who a node is, beyond its address: a name that stays the same over restarts, and a mark of this very process.
//! Neither depends on a clock.

use std::fmt;

/// A node's name in the registry, and which of its lives this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Stays over restarts; given by hand, or made of host name, machine and port.
    pub id: String,
    /// New for each process: two addresses with the same one are the same node.
    pub incarnation: String,
}

/// A name that cannot be used in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadNodeId(String);

impl fmt::Display for BadNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} cannot be a node's id; use 1 to {LONGEST} letters, digits, dots, dashes or underscores",
            self.0
        )
    }
}

impl std::error::Error for BadNodeId {}

const LONGEST: usize = 100;

impl Identity {
    /// Under the given name, or one made for the node that listens on this port of this machine.
    pub fn new(given: Option<&str>, port: u16) -> Result<Self, BadNodeId> {
        let id = match given {
            Some(id) => checked(id)?,
            None => usual(&host_name(), &machine(), port),
        };
        Ok(Self { id, ..Self::default() })
    }

    /// A name for when another node goes by ours.
    pub(crate) fn own_id(&self) -> String {
        let mark: String = self.incarnation.chars().take(8).collect();
        format!("{}-{mark}", self.id)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self { id: host_name(), incarnation: uuid::Uuid::new_v4().simple().to_string() }
    }
}

fn checked(id: &str) -> Result<String, BadNodeId> {
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let good = !id.is_empty() && id.len() <= LONGEST && id.chars().all(usable);
    if good { Ok(id.to_owned()) } else { Err(BadNodeId(id.chars().take(LONGEST).collect())) }
}

fn usual(host: &str, machine: &str, port: u16) -> String {
    format!("{host}-{:08x}", digest(&format!("{machine}\n{port}")))
}

/// FNV-1a: the same in every version of ours, which the standard library does not promise of its hasher.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What the system calls this installation. Clones of an image may share it: the registry sorts that out.
fn machine() -> String {
    let read = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok().filter(|id| !id.trim().is_empty()));
    read.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_name_stays_and_differs_where_nodes_differ() {
        assert_eq!(usual("alpha", "m1", 8080), usual("alpha", "m1", 8080));
        let others = [usual("beta", "m1", 8080), usual("alpha", "m2", 8080), usual("alpha", "m1", 8081)];
        for other in others {
            assert_ne!(other, usual("alpha", "m1", 8080));
        }
        let (one, two) = (Identity::new(None, 1).unwrap(), Identity::new(None, 1).unwrap());
        assert_eq!(one.id, two.id);
        assert_ne!(one.incarnation, two.incarnation);
        assert_ne!(one.own_id(), two.own_id());
    }

    #[test]
    fn names_by_hand_are_checked() {
        assert_eq!(Identity::new(Some("pod-3.farm_1"), 1).unwrap().id, "pod-3.farm_1");
        for bad in ["", "a b", "a*", "ä", &"x".repeat(101)] {
            assert!(Identity::new(Some(bad), 1).is_err(), "{bad:?}");
        }
    }
}
