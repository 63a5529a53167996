//! Performing the operations of clients in their leased instances.

use std::time::Instant;

use proto::InstanceId;

use super::{Operation, OperationResult, Pool};
use crate::error::ApiError;

impl Pool {
    /// Performs an operation in the instance of a lease.
    pub(crate) async fn perform(
        &self,
        id: &InstanceId,
        operation: Operation,
    ) -> Result<OperationResult, ApiError> {
        let tenancy = self.0.state().tenancy(id)?;
        let started = Instant::now();
        let name = operation.name();
        let result = match self.check_addresses(operation).await {
            Ok(operation) => tenancy.perform(operation, &self.0.tasks).await,
            Err(refused) => Err(refused.into()),
        };
        self.0.metrics.record_operation(name, started.elapsed(), result.is_ok());
        match result {
            Err(ApiError::InstanceLost(reason)) => {
                self.0.lose(id, &reason);
                Err(ApiError::InstanceLost(reason))
            }
            // The lease ended during the call: return the error that the next call would get.
            Err(ApiError::InvalidInstance) => {
                Err(self.0.state().tenancy(id).err().unwrap_or(ApiError::InvalidInstance))
            }
            other => other,
        }
    }
}
