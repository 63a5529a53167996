//! Every lease's beginning, way and end, one line each, for whoever wants to check the farm's books:
//! `WEBGYM_LOG=farm::ledger=debug`. Nothing here decides anything.

use proto::InstanceId;

/// Why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Released,
    Expired,
    Lost,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

/// A node has leased a slot.
pub(crate) fn leased(id: &InstanceId) {
    tracing::debug!("leased {id}");
}

/// A node has taken a slot back.
pub(crate) fn ended(id: &InstanceId, end: End) {
    tracing::debug!("ended {id} {}", end.word());
}

/// A master has told a client of a lease: for the first time, or once more under the client's key.
pub(crate) fn given(id: &InstanceId, node: &str, key: Option<&str>) {
    tracing::debug!("given {id} at {node} under {}", key.unwrap_or("-"));
}
