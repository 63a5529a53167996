//! The network of a lease that has one of its own: through the client's proxy, recorded, or replayed.

use std::{io, path::Path, sync::Arc};

use browser::{DETERMINISM_FLAG, Determinism};
use proto::{InstanceId, SessionOptions, network::NetworkReport};

use super::{Pool, Tenancy};
use crate::{
    egress::{EgressProxy, Route, Upstream},
    error::ApiError,
    tasks::Tasks,
    traffic::{Archives, Identity, Traffic},
};

/// What leases need to record and replay.
pub(super) struct PoolArchives {
    archives: Arc<Archives>,
    identity: Arc<Identity>,
}

impl PoolArchives {
    pub(super) fn create(root: &Path, tasks: &Tasks) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        let identity = Identity::create().map_err(io::Error::other)?;
        Ok(Self {
            archives: Arc::new(Archives::new(root.canonicalize()?, tasks)),
            identity: Arc::new(identity),
        })
    }

    /// The flags that make the browsers accept the proxies of leases as every site, and replays possible.
    pub(super) fn browser_flags(&self) -> [String; 2] {
        [self.identity.browser_flag(), DETERMINISM_FLAG.to_owned()]
    }
}

/// The proxy of a lease, and what it records or replays.
#[derive(Debug)]
pub(crate) struct LeaseNetwork {
    pub(super) proxy: EgressProxy,
    pub(super) traffic: Option<Arc<Traffic>>,
}

impl LeaseNetwork {
    /// What is fixed in the pages of a replay: their clock starts when the recording began.
    pub(super) fn determinism(&self) -> Option<Determinism> {
        let (start, seed) = self.traffic.as_ref()?.replayed_time()?;
        Some(Determinism { start_ms: start.as_millisecond() as f64, seed })
    }
}

/// A lease's network before its proxy is started: everything that an invalid option can make fail.
pub(super) struct LeaseRoute {
    route: Route,
    traffic: Option<Arc<Traffic>>,
}

impl Pool {
    /// Checks and opens what the session options say about the network; `None` if that is nothing.
    pub(super) async fn lease_route(&self, options: &SessionOptions) -> Result<Option<LeaseRoute>, ApiError> {
        let upstream = options.proxy.as_ref().map(Upstream::new).transpose()?;
        if let Some(upstream) = &upstream {
            upstream.check(&self.0.options.network).await?;
        }
        if upstream.is_none() && options.network.is_none() {
            return Ok(None);
        }
        let route = Route { rules: self.0.options.network.clone(), upstream };
        let traffic = match &options.network {
            Some(network) => {
                let missing = || {
                    ApiError::BadRequest(
                        "the session option network: this node has no archives; start it with --archives DIR"
                            .into(),
                    )
                };
                let PoolArchives { archives, identity } = self.0.archives.as_ref().ok_or_else(missing)?;
                let (refused, max_recorded) = (self.refused_counter(), self.0.options.max_lease_recording);
                let traffic =
                    Traffic::open(network, archives, identity, route.clone(), refused, max_recorded);
                Some(Arc::new(traffic.await?))
            }
            None => None,
        };
        Ok(Some(LeaseRoute { route, traffic }))
    }

    pub(super) async fn start_lease_network(&self, lease: LeaseRoute) -> Result<LeaseNetwork, ApiError> {
        let LeaseRoute { route, traffic } = lease;
        let proxy =
            EgressProxy::start_for_lease(route, traffic.clone(), self.refused_counter(), &self.0.tasks).await;
        let failed = |error| ApiError::Internal(format!("cannot start the proxy of the lease: {error}"));
        Ok(LeaseNetwork { proxy: proxy.map_err(failed)?, traffic })
    }

    /// Returns what became of the requests of a lease with the session option `network`.
    pub(crate) fn network_report(&self, id: &InstanceId) -> Result<NetworkReport, ApiError> {
        let traffic = self.0.state().tenancy(id)?.traffic();
        let without = || {
            ApiError::BadRequest(
                "this lease neither records nor replays; acquire it with the session option network".into(),
            )
        };
        Ok(traffic.ok_or_else(without)?.report())
    }
}

impl Tenancy {
    /// Fails if a page of the lease needed what its archive lacks: nothing that it shows counts any more.
    pub(super) fn check_replay(&self) -> Result<(), ApiError> {
        let missed = self.traffic().and_then(|traffic| traffic.failure());
        missed.map_or(Ok(()), |reason| Err(ApiError::ReplayMiss(reason)))
    }
}
