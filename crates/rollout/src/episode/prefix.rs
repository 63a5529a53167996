//! Group rollouts that start in the middle of an episode: the first attempt shares its first steps, and the others carry them
//! out again and continue from there.

use serde_json::Map;

use super::{Ending, Episode, attempt::View, decide::Decision};
use crate::{policy::parse_reply, run::Prefix};

impl Episode {
    /// Publishes the steps so far once there are enough of them, if the attempt is the first of its group.
    pub(super) fn share_prefix(&mut self, view: &View) {
        let Some(groups) = &self.context.group_prefixes else { return };
        let index = self.task.trajectory_index;
        if !groups.is_first(index) || groups.get(index).is_some() {
            return;
        }
        self.fingerprints.push(view.fingerprint);
        if self.steps.len() == groups.shared_steps() {
            let fingerprints = std::mem::take(&mut self.fingerprints);
            let mut steps = self.steps.clone();
            let _ = self.prompts.restore(&mut steps);
            groups.publish(index, Prefix::new(steps, view.observation.clone(), fingerprints));
        }
    }

    /// Returns the trajectory index of the attempt whose replay is repeated, which is the own one if nothing is taken over.
    pub(crate) fn replayed_attempt(&self) -> i64 {
        let index = self.task.trajectory_index;
        match (&self.prefix, &self.context.group_prefixes) {
            (Some(_), Some(groups)) => groups.first_of(index),
            _ => index,
        }
    }

    /// Returns the next decision of the prefix; `None` where the own decisions begin. Ends the attempt if the page is not the one
    /// that the first attempt saw.
    pub(super) fn next_of_prefix(&mut self, view: &View) -> Result<Option<Decision>, Ending> {
        let Some(prefix) = self.prefix.clone() else { return Ok(None) };
        let number = self.steps.len();
        if let Some(difference) = prefix.difference(number, &view.observation, view.fingerprint) {
            return Err(Ending::Diverged(difference));
        }
        let Some(step) = prefix.step(number) else {
            let is_forked = self.replayed_attempt() != self.task.trajectory_index;
            self.prefix = None;
            self.forked_at_step = is_forked.then_some(number as u64);
            return Ok(None);
        };
        let Some(action) = step.action.clone() else { return Ok(None) };
        let (mut response, mut extras) = (step.response.clone(), step.extras.clone());
        if let (Some(theirs), Some(own)) = (prefix.folder(), self.screenshots.name()) {
            response.raw_prompt = response.raw_prompt.replace(theirs, own);
        }
        // The model was not asked here.
        extras.timings_ms = Map::new();
        if let Some(dialect) = &self.prompting.dialect {
            self.cursor = parse_reply(&response.raw_response, dialect, self.cursor).1;
        }
        Ok(Some(Decision { action, response, extras }))
    }

    /// Replaces an ending for which the agent would be blamed although it has not decided anything yet.
    pub(super) fn blame_prefix(&self, ending: Ending) -> Ending {
        if self.prefix.is_none() || !ending.is_by_agent() {
            return ending;
        }
        Ending::Diverged(format!("step {}: {}", self.steps.len(), ending.reason()))
    }
}
