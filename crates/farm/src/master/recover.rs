//! Recovers leases that a node may have granted although its response to `/get` was lost.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Master, NodeEntry};
use crate::node::{GetRequest, Node};

/// How long to wait for a node to answer again. After that its own lease expiry takes over.
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(10);
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// This long after a node answers again, it has processed everything that was sent to it earlier.
const SETTLE_TIME: Duration = Duration::from_secs(2);

impl Master {
    /// Asks the node for the lease again once it answers, and releases it.
    pub(super) fn recover_lost_lease(&self, entry: Arc<NodeEntry>, request: GetRequest) {
        let master = self.clone();
        self.0.tasks.spawn_until_stopped("recover lost lease", async move {
            let deadline = Instant::now() + RECOVERY_TIMEOUT;
            while !entry.is_healthy() {
                if Instant::now() > deadline {
                    return;
                }
                tokio::time::sleep(HEALTH_CHECK_INTERVAL).await;
            }
            tokio::time::sleep(SETTLE_TIME).await;
            let key = request.key.as_deref().unwrap_or_default();
            let known = master.0.keys.lease(key).await;
            if known.is_some_and(|lease| lease.node == entry.hash()) {
                return;
            }
            // The node answers with the lost lease or with a new one. No client has either, so dropping it releases it.
            drop(entry.node().get(&request).await);
        });
    }
}
