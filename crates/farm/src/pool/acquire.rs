//! Acquiring and releasing the leases of a pool.

use std::time::{Duration, Instant};

use proto::{InstanceId, LeaseId, SessionOptions};

use super::{Operation, OperationResult, PendingLease, Pool, network::LeaseRoute};
use crate::{
    access::LeaseSecrets,
    audit::{self, LeaseEnd},
    error::ApiError,
    node::GetRequest,
};

impl Pool {
    /// Converts the lifetime that a client asked for, or explains why it is not allowed. 0 stands for the maximum.
    pub(crate) fn lifetime(&self, minutes: i64) -> Result<Duration, ApiError> {
        let max = self.0.options.max_lifetime_mins;
        match u32::try_from(minutes) {
            Ok(0) => Ok(self.0.options.lease_minute * max),
            Ok(minutes) if (1..=max).contains(&minutes) => Ok(self.0.options.lease_minute * minutes),
            _ => Err(ApiError::BadRequest(format!(
                "lifetime_mins is {minutes}; it must be from 0 (the maximum) to {max}"
            ))),
        }
    }

    /// Grants a lease now, or returns why that is not possible.
    fn try_lease(&self, lifetime: Duration, key: Option<&str>) -> Result<PendingLease, ApiError> {
        let mut state = self.0.state();
        if state.closing {
            return Err(ApiError::ShuttingDown);
        }
        if let Some(id) = key.and_then(|key| state.leased_under(key)) {
            return Ok(PendingLease::existing(id));
        }
        if state.draining {
            return Err(ApiError::Draining);
        }
        if let Some(reason) = &state.held_back {
            return Err(ApiError::NoCapacity(Some(reason.clone())));
        }
        let secrets = LeaseSecrets::new(&self.identity().incarnation);
        let id = state.lease(LeaseId::new(), lifetime, key, secrets).ok_or(ApiError::NoCapacity(None))?;
        audit::leased(&id);
        drop(state);
        self.0.publish_change();
        let pool = self.clone();
        Ok(PendingLease::new(id, move |id| {
            let _ = pool.release(&id);
        }))
    }

    /// Grants a lease with the given session options.
    pub(crate) async fn lease_with(
        &self,
        lifetime: Duration,
        request: &GetRequest,
    ) -> Result<PendingLease, ApiError> {
        // Checked first: an invalid option must not take a slot.
        let original = request.fork.as_ref().map(|fork| self.original(fork)).transpose()?;
        let options = original.as_ref().map_or(&request.options, |original| &original.options);
        let route = self.lease_route(options).await?;
        let lease = self.lease(lifetime, request.key.as_deref(), request.wait).await?;
        if lease.is_new() && !options.is_default() {
            self.configure(lease.id(), options.clone(), route).await?;
        }
        if let Some(original) = original.filter(|_| lease.is_new()) {
            self.repeat(lease.id(), original).await?;
        }
        Ok(lease)
    }

    /// Gives a new lease an instance with the given options.
    async fn configure(
        &self,
        id: &InstanceId,
        options: SessionOptions,
        route: Option<LeaseRoute>,
    ) -> Result<(), ApiError> {
        let network = match route {
            Some(route) => Some(self.start_lease_network(route).await?),
            None => None,
        };
        let is_recorded = options.record == Some(true);
        let configured =
            self.perform(id, Operation::Configure { options: Box::new(options), network }).await?;
        let tenancy = self.0.state().tenancy(id)?;
        if let OperationResult::Configured(replaced) = configured
            && !replaced.is_used
            && !tenancy.is_shared()
        {
            self.0.take_back(id.slot, replaced.instance);
        }
        if let Some(traffic) = tenancy.traffic() {
            traffic.observe(&tenancy.tenant_browser()).await?;
        }
        if is_recorded {
            tenancy.start_recording(&self.0.tasks).await?;
        }
        Ok(())
    }

    /// Grants a lease as soon as a slot is free, first come first served, until the wait is over.
    async fn lease(
        &self,
        lifetime: Duration,
        key: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<PendingLease, ApiError> {
        // A repeated request must not queue: earlier waiters may be waiting for exactly the slot it already has.
        if let Some(id) = key.and_then(|key| self.0.state().leased_under(key)) {
            return Ok(PendingLease::existing(id));
        }
        let wait = wait.unwrap_or_else(|| self.default_wait());
        let attempt = || async {
            match self.try_lease(lifetime, key) {
                Err(error @ ApiError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(lease) => Ok(Ok(lease)),
            }
        };
        let too_late = || ApiError::NoCapacity(self.held_back());
        self.0.queue.acquire(Instant::now() + wait, attempt, too_late).await
    }

    fn default_wait(&self) -> Duration {
        let state = self.0.state();
        default_wait(state.held_back.is_some(), state.counts().starting > 0)
    }

    /// Ends a lease. The slot gets a clean instance in the background.
    pub(crate) fn release(&self, id: &InstanceId) -> Result<(), ApiError> {
        let mut state = self.0.state();
        if state.forget_lost(id).is_some() {
            // Its browser died and the slot already has a new instance: nothing is left to release.
            return Ok(());
        }
        let tenancy = state.end(id).ok_or(ApiError::NotInUse)?;
        audit::ended(id, LeaseEnd::Released);
        drop(state);
        self.0.dispose(tenancy);
        self.0.request_instance(id.slot);
        Ok(())
    }
}

/// Returns how long `/get` waits when the client sends no `wait_secs`: longer while the machine is overloaded than while
/// a slot is merely starting.
pub(crate) fn default_wait(held_back: bool, starting: bool) -> Duration {
    const WAIT_WHILE_HELD_BACK: Duration = Duration::from_secs(30);
    const WAIT_WHILE_STARTING: Duration = Duration::from_secs(5);
    match (held_back, starting) {
        (true, _) => WAIT_WHILE_HELD_BACK,
        (_, true) => WAIT_WHILE_STARTING,
        _ => Duration::ZERO,
    }
}
