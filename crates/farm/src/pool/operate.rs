//! Performing the operations of clients in their leased instances.

use std::time::Instant;

use bytes::Bytes;
use proto::InstanceId;

use super::{Operation, OperationResult, Pool};
use crate::{computer::TurnError, error::ApiError, recording::RecordingPart};

impl Pool {
    /// Explains the error of a visit, alone or as part of a step.
    async fn explain_redirects(
        &self,
        result: Result<OperationResult, ApiError>,
    ) -> Result<OperationResult, ApiError> {
        match result {
            Err(ApiError::Browser(error)) => Err(self.explain_redirect(error).await.into()),
            Ok(OperationResult::Observed(mut observed)) => {
                if let Some(Err(error)) = observed.result.take_if(|result| result.is_err()) {
                    observed.result = Some(Err(self.explain_redirect(error).await));
                }
                Ok(OperationResult::Observed(observed))
            }
            Ok(OperationResult::Computer(mut turn)) => {
                turn.error = match turn.error {
                    Some(TurnError::Browser(error)) => {
                        Some(TurnError::Browser(self.explain_redirect(error).await))
                    }
                    other => other,
                };
                Ok(OperationResult::Computer(turn))
            }
            other => other,
        }
    }

    /// Returns a part of the recording of a lease.
    pub(crate) async fn recording(&self, id: &InstanceId, part: RecordingPart) -> Result<Bytes, ApiError> {
        let recorder = self.0.state().tenancy(id)?.recorder();
        let not_recorded = || {
            ApiError::BadRequest(
                "this lease is not recorded; acquire it with the session option record: true".into(),
            )
        };
        recorder.ok_or_else(not_recorded)?.read(part).await
    }

    /// Performs an operation in the instance of a lease.
    pub(crate) async fn perform(
        &self,
        id: &InstanceId,
        operation: Operation,
    ) -> Result<OperationResult, ApiError> {
        let tenancy = self.0.state().tenancy(id)?;
        let started = Instant::now();
        let (name, uses_page) = (operation.name(), operation.uses_page());
        let check_replay = || if uses_page { tenancy.check_replay() } else { Ok(()) };
        check_replay()?;
        // Nothing is connected to in a replay.
        let is_offline = tenancy.traffic().is_some_and(|traffic| traffic.is_offline());
        let checked = if is_offline { Ok(operation) } else { self.check_addresses(operation).await };
        let result = match checked {
            Ok(operation) => {
                let performed = tenancy.perform(operation, &self.0.operations, &self.0.tasks).await;
                self.explain_redirects(performed).await
            }
            Err(refused) => Err(refused.into()),
        };
        let result = match (result, check_replay()) {
            (Err(gone @ (ApiError::InstanceLost(_) | ApiError::InvalidInstance)), _) => Err(gone),
            (_, Err(missed)) => Err(missed),
            (result, Ok(())) => result,
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
