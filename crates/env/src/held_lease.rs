//! A lease with the session permit that it counts against. Dropping it releases the lease, whatever ended the session.

use std::time::Duration;

use client::{
    farm::{CdpUrl, ClientError, FarmClient, GrantedLease, Lease, LiveUrl},
    http::Deadline,
};
use proto::SessionOptions;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::task::TaskTracker;

/// Limits the release of a lease, with all attempts. If it fails, the lease expires on the farm.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);

/// A lease that is released when this is dropped.
#[must_use]
pub(crate) struct HeldLease {
    farm: FarmClient,
    granted: GrantedLease,
    has_network: bool,
    releases: TaskTracker,
    /// Returned once the lease is released, so that the next session finds a free slot.
    permit: Option<OwnedSemaphorePermit>,
}

/// What acquiring a lease needs.
pub(crate) struct LeaseRequest {
    pub(crate) farm: FarmClient,
    pub(crate) lifetime_mins: u32,
    pub(crate) options: SessionOptions,
    pub(crate) releases: TaskTracker,
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) deadline: Deadline,
}

impl HeldLease {
    /// Acquires a lease on a task of its own: when the caller is dropped meanwhile, the lease is still released.
    pub(crate) async fn acquire(request: LeaseRequest) -> Result<Self, ClientError> {
        let (sender, receiver) = oneshot::channel();
        let releases = request.releases.clone();
        releases.spawn(async move {
            // A receiver that is gone drops the lease here.
            let _ = sender.send(grant(request).await);
        });
        receiver.await.unwrap_or_else(|_| Err(ClientError::Other("the server is stopping".to_owned())))
    }

    pub(crate) fn farm(&self) -> &FarmClient {
        &self.farm
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.granted.lease
    }

    /// Returns whether the farm records or replays the network traffic of the session.
    pub(crate) const fn has_network(&self) -> bool {
        self.has_network
    }

    /// Returns where a person can watch the browser.
    pub(crate) const fn live_url(&self) -> Option<&LiveUrl> {
        self.granted.live_url.as_ref()
    }

    pub(crate) const fn cdp_url(&self) -> Option<&CdpUrl> {
        self.granted.cdp_url.as_ref()
    }
}

async fn grant(request: LeaseRequest) -> Result<HeldLease, ClientError> {
    let LeaseRequest { farm, lifetime_mins, options, releases, permit, deadline } = request;
    let wait_secs = u32::try_from(deadline.remaining().as_secs()).ok();
    let key = uuid::Uuid::new_v4().to_string();
    let has_network = options.network.is_some();
    let granted = farm.acquire(lifetime_mins, wait_secs, &key, &options, deadline).await?;
    Ok(HeldLease { farm, granted, has_network, releases, permit: Some(permit) })
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        let (farm, lease, permit) = (self.farm.clone(), self.lease().clone(), self.permit.take());
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.releases.spawn(async move {
            let _permit = permit;
            if let Err(error) = farm.release(&lease, Deadline::after(RELEASE_TIMEOUT)).await {
                tracing::debug!(%error, lease = lease.instance_id, "cannot release a lease");
            }
        });
    }
}
