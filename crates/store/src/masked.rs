//! Trajectories without a reward, which trainers must leave out.

use proto::trajectory::Step;
use serde_json::Value;

/// Returns the steps of a masked trajectory as JSON, with null instead of their rewards, which would look like failures.
pub fn steps_without_rewards(steps: &[Step]) -> Value {
    let mut value = serde_json::to_value(steps).unwrap_or_default();
    for step in value.as_array_mut().into_iter().flatten() {
        if let Some(reward) = step.pointer_mut("/reward/reward") {
            *reward = Value::Null;
        }
    }
    value
}
