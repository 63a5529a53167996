//! The audit log: one line for each lease that a node granted or ended and that a master sent to a client. Enabled with
//! `WEBGYM_LOG=farm::audit=debug`; nothing depends on it.

use proto::InstanceId;

/// Why a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    Released,
    Expired,
    Lost,
}

impl LeaseEnd {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

/// Logs that a node leased a slot.
pub(crate) fn leased(id: &InstanceId) {
    tracing::debug!("leased {id}");
}

/// Logs that a lease ended at its node.
pub(crate) fn ended(id: &InstanceId, end: LeaseEnd) {
    tracing::debug!("ended {id} {}", end.as_str());
}

/// Logs that a master answered a client with a lease, for the first time or again under the client's key.
pub(crate) fn given(id: &InstanceId, node: &str, key: Option<&str>) {
    tracing::debug!("given {id} at {node} under {}", key.unwrap_or("-"));
}
