//! The viewers of leases: who may watch or take over, how many there are, and the screencast that they share.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use browser::TenantBrowser;
use proto::InstanceId;
use tokio::sync::Mutex;

use super::{LeaseUsage, Pool, tenancy::Tenancy};
use crate::{access::AccessSegment, error::ApiError, live::LiveCast};

/// The viewers of one lease.
#[derive(Default)]
pub(crate) struct Viewers {
    count: AtomicUsize,
    /// Those that may act.
    controllers: AtomicUsize,
    /// The screencast, while there are viewers.
    cast: Mutex<Weak<LiveCast>>,
}

impl Viewers {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn controllers(&self) -> usize {
        self.controllers.load(Ordering::Relaxed)
    }
}

/// What an address of a live view gives access to.
pub(crate) struct OpenLive {
    pub(crate) pool: Pool,
    tenancy: Arc<Tenancy>,
    pub(crate) can_control: bool,
}

impl OpenLive {
    /// Counts a viewer.
    pub(crate) fn into_viewer(self) -> ViewerGuard {
        let viewers = self.tenancy.viewers();
        viewers.count.fetch_add(1, Ordering::Relaxed);
        if self.can_control {
            viewers.controllers.fetch_add(1, Ordering::Relaxed);
            self.tenancy.touch();
        }
        ViewerGuard(self)
    }
}

/// Counts a viewer of a lease until it is dropped.
pub(crate) struct ViewerGuard(OpenLive);

impl ViewerGuard {
    pub(crate) fn id(&self) -> &InstanceId {
        self.0.tenancy.id()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(crate) fn can_control(&self) -> bool {
        self.0.can_control
    }

    pub(crate) fn tenant(&self) -> TenantBrowser {
        self.0.tenancy.tenant_browser()
    }

    pub(crate) fn usage(&self) -> LeaseUsage {
        self.0.tenancy.usage()
    }

    /// Records that a person acts.
    pub(crate) fn touch(&self) {
        self.0.tenancy.touch();
    }

    /// Completes when the lease ends.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.tenancy.ended().clone().cancelled_owned()
    }

    /// Why the lease has ended, if not by its client.
    pub(crate) fn is_lost(&self) -> bool {
        let state = self.pool().0.state().tenancy(self.id());
        matches!(state, Err(ApiError::InstanceLost(_)))
    }

    /// Returns the screencast that the viewers of the lease share, and starts it for the first of them.
    pub(crate) async fn cast(&self) -> Result<Arc<LiveCast>, ApiError> {
        let mut cast = self.0.tenancy.viewers().cast.lock().await;
        if let Some(cast) = cast.upgrade() {
            return Ok(cast);
        }
        let opened = LiveCast::open(&self.tenant(), self.pool().tasks()).await?;
        *cast = Arc::downgrade(&opened);
        Ok(opened)
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        let viewers = self.0.tenancy.viewers();
        viewers.count.fetch_sub(1, Ordering::Relaxed);
        if self.0.can_control {
            self.0.tenancy.touch();
            viewers.controllers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Pool {
    /// Returns what an address of a live view opens. A secret of another or an ended lease opens nothing.
    pub(crate) fn open_live(&self, access: &AccessSegment<'_>) -> Result<OpenLive, ApiError> {
        let tenancy = self.tenancy_of(access)?;
        let secrets = tenancy.secrets();
        // Both are compared, so that the time tells nothing about which one matched.
        let (can_watch, can_control) = (access.opens(&secrets.live), access.opens(&secrets.live_control));
        if !can_watch && !can_control {
            return Err(ApiError::UnknownSecret);
        }
        Ok(OpenLive { pool: self.clone(), tenancy, can_control })
    }

    /// Returns the number of open live views.
    pub(crate) fn live_viewers(&self) -> usize {
        self.0.state().tenancies().map(|tenancy| tenancy.viewers().count()).sum()
    }
}
