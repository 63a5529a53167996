//! The CDP connections of leases: who may open one, how many there are, and that an open one counts as use.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use proto::InstanceId;
use serde_json::Value;

use super::{Pool, tenancy::Tenancy};
use crate::{
    access::{AccessSegment, LeaseSecrets},
    cdp::{MAX_SOCKETS, OpenCdp},
    error::ApiError,
    tasks::Tasks,
};

/// Counts a connection to a lease until it is dropped.
pub(crate) struct SocketGuard(Arc<Tenancy>);

impl SocketGuard {
    fn new(tenancy: Arc<Tenancy>) -> Self {
        tenancy.sockets().fetch_add(1, Ordering::Relaxed);
        tenancy.touch();
        Self(tenancy)
    }

    pub(crate) fn id(&self) -> &InstanceId {
        self.0.id()
    }

    /// Fails if the lease has more connections than allowed, this one included.
    pub(crate) fn check_limit(&self) -> Result<(), ApiError> {
        if self.0.sockets().load(Ordering::Relaxed) <= MAX_SOCKETS {
            return Ok(());
        }
        Err(ApiError::BadRequest(format!(
            "the lease has {MAX_SOCKETS} CDP connections, the most it can have; close one first"
        )))
    }

    /// Completes when the lease ends.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.ended().clone().cancelled_owned()
    }
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        self.0.touch();
        self.0.sockets().fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Returns what a CDP client with this secret may use. A secret of another or an ended lease opens nothing.
    pub(crate) fn open_cdp(&self, access: &AccessSegment<'_>) -> Result<OpenCdp, ApiError> {
        let tenancy = self.tenancy_of(access)?;
        if !access.opens(&tenancy.secrets().cdp) {
            return Err(ApiError::UnknownSecret);
        }
        let tenant = tenancy.tenant_browser();
        Ok(OpenCdp { pool: self.clone(), tenant, socket: SocketGuard::new(tenancy) })
    }

    /// Returns the tenancy that an address names. Its secret is still to be compared.
    pub(super) fn tenancy_of(&self, access: &AccessSegment<'_>) -> Result<Arc<Tenancy>, ApiError> {
        let id = self.instance_of(access).ok_or(ApiError::UnknownSecret)?;
        self.0.state().tenancy(&id).map_err(|_| ApiError::UnknownSecret)
    }

    /// A single instance has ids without a slot.
    fn instance_of(&self, access: &AccessSegment<'_>) -> Option<InstanceId> {
        let without_slot =
            || Some(InstanceId { lease: access.id.parse().ok()?, slot: self.0.options.first_port });
        access.instance().or_else(without_slot)
    }

    /// Returns the number of open CDP connections.
    pub(crate) fn cdp_connections(&self) -> usize {
        self.0.state().tenancies().map(|tenancy| tenancy.sockets().load(Ordering::Relaxed)).sum()
    }

    /// Returns the browser's description of the protocol, reduced by `reduce`. The first call starts a browser for it.
    pub(crate) async fn protocol_description(&self, reduce: fn(Value) -> Value) -> Result<Bytes, ApiError> {
        let read = async || {
            let description = self.0.options.launch.protocol_description().await;
            let description = description.map_err(|error| ApiError::Internal(error.to_string()))?;
            Ok(Bytes::from(reduce(description).to_string()))
        };
        self.0.protocol.get_or_try_init(read).await.cloned()
    }

    /// Returns the secrets of a lease.
    pub(crate) fn secrets(&self, id: &InstanceId) -> Result<LeaseSecrets, ApiError> {
        Ok(self.0.state().tenancy(id)?.secrets().clone())
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }
}
