//! Creates a lease in the state of another: the same options, the same operations against the same archive.

use browser::ObserveRequest;
use proto::{InstanceId, InteractionMode, SessionOptions, network::OnMiss};

use super::{
    Operation, Pool,
    history::{Past, Shown, compare},
};
use crate::{error::ApiError, node::Fork};

/// What a fork needs to know about its original.
pub(super) struct Original {
    pub(super) options: SessionOptions,
    prefix: Vec<Past>,
    /// The original, if the fork is to reach its present state.
    present: Option<InstanceId>,
}

impl Pool {
    /// Looks up what a fork repeats. Fails if the lease cannot be forked.
    pub(super) fn original(&self, fork: &Fork) -> Result<Original, ApiError> {
        let tenancy = self.0.state().tenancy(&fork.from)?;
        let Some(options) = tenancy
            .options()
            .filter(|options| options.network.as_ref().is_some_and(|network| network.replay.is_some()))
        else {
            return Err(ApiError::BadRequest(
                "this lease cannot be forked: it replays no archive (session option network: {\"replay\": …})".into(),
            ));
        };
        let refuse =
            |reason: String| Err(ApiError::BadRequest(format!("this lease cannot be forked: {reason}")));
        if options.network.as_ref().is_some_and(|network| network.on_miss == Some(OnMiss::Live)) {
            return refuse(
                "it sends what its archive lacks to the network (on_miss: \"live\"), and a fork would again"
                    .into(),
            );
        }
        if let Some(missed) =
            tenancy.traffic().and_then(|traffic| traffic.failure()).filter(|_| fork.steps.is_none())
        {
            return refuse(format!("{missed}; use steps to fork it as it was before"));
        }
        let prefix = tenancy.history().prefix(fork.steps)?;
        Ok(Original { options, prefix, present: fork.steps.is_none().then_some(fork.from) })
    }

    /// Carries out the operations of the original in its fork and compares what they show.
    pub(super) async fn repeat(&self, id: &InstanceId, original: Original) -> Result<(), ApiError> {
        let mut step = 0;
        for past in &original.prefix {
            step += usize::from(past.operation.is_step());
            let result = self.perform(id, past.operation.operation()).await;
            compare(step, past, &result)?;
        }
        let Some(present) = original.present else { return Ok(()) };
        let mut shown = Vec::new();
        for lease in [&present, id] {
            let request = ObserveRequest {
                metadata: true,
                elements: true,
                ..ObserveRequest::screenshot(InteractionMode::Coordinates)
            };
            let result = self.perform(lease, Operation::Observe(request)).await;
            if let Err(error) = result {
                return Err(error);
            }
            shown.push(Shown::of(&result));
        }
        match shown[0].difference(&shown[1]) {
            Some(difference) => {
                Err(ApiError::ForkDiffers(format!("after all operations, {difference} in the fork")))
            }
            None => Ok(()),
        }
    }
}
