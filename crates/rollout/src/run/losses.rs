//! Episodes lost to infrastructure before any episode has worked. They are held back: once the agent ends an episode, they
//! count as lost; if no episode works, they are not results, and the run stops with the reason and can be resumed.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Number of losses without a success that stops a run.
const MAX_HELD: usize = 64;
/// At the end of a run, fewer losses than this may be the fault of the tasks and count as results.
const MIN_SYSTEMATIC: usize = 3;

pub(super) struct Losses<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Whether any episode was ended by its agent.
    has_success: bool,
    held: Vec<T>,
    /// How often each kind of reason occurred, with one example.
    reasons: HashMap<String, (usize, String)>,
}

/// What to do with a lost episode.
pub(super) enum LossDecision<T> {
    /// Other episodes work, so this loss is a result.
    Count(T),
    Hold,
    StopRun,
}

impl<T> Losses<T> {
    pub(super) fn new() -> Self {
        let state = State { has_success: false, held: Vec::new(), reasons: HashMap::new() };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an agent ended its episode. Returns the losses held back so far.
    pub(super) fn record_success(&self) -> Vec<T> {
        let mut state = self.state();
        state.has_success = true;
        std::mem::take(&mut state.held)
    }

    pub(super) fn record_loss(&self, reason: &str, episode: T) -> LossDecision<T> {
        let mut state = self.state();
        let entry = state.reasons.entry(kind(reason)).or_insert_with(|| (0, reason.to_owned()));
        entry.0 += 1;
        if state.has_success {
            return LossDecision::Count(episode);
        }
        state.held.push(episode);
        if state.held.len() < MAX_HELD { LossDecision::Hold } else { LossDecision::StopRun }
    }

    /// Returns how many losses are held back.
    pub(super) fn held(&self) -> usize {
        self.state().held.len()
    }

    /// Takes the held losses when all tasks are done, if they are few enough to be results; otherwise returns `None`.
    pub(super) fn take_if_few(&self) -> Option<Vec<T>> {
        let mut state = self.state();
        (state.held.len() < MIN_SYSTEMATIC).then(|| std::mem::take(&mut state.held))
    }

    /// Returns how many episodes were lost, and the most frequent reason.
    pub(super) fn summary(&self) -> Option<(usize, String)> {
        let state = self.state();
        let (_, reason) = state.reasons.values().max_by_key(|(count, reason)| (*count, reason.clone()))?;
        Some((state.reasons.values().map(|(count, _)| count).sum(), reason.clone()))
    }
}

/// Removes words with digits, so that reasons that differ only in numbers and ids count as one.
fn kind(reason: &str) -> String {
    let has_digit = |word: &str| word.chars().any(|letter| letter.is_ascii_digit());
    reason.split_whitespace().filter(|word| !has_digit(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_count_after_first_success() {
        let losses = Losses::new();
        assert!(matches!(losses.record_loss("a", 1), LossDecision::Hold));
        assert!(matches!(losses.record_loss("a", 2), LossDecision::Hold));
        assert_eq!(losses.record_success(), [1, 2]);
        assert!(matches!(losses.record_loss("a", 3), LossDecision::Count(3)));
        assert_eq!(losses.record_success(), [0; 0]);
    }

    #[test]
    fn many_losses_without_success_stop_run() {
        let losses = Losses::new();
        for episode in 1..MAX_HELD {
            assert!(matches!(losses.record_loss("a", episode), LossDecision::Hold));
        }
        assert!(matches!(losses.record_loss("a", 0), LossDecision::StopRun));
        assert!(losses.take_if_few().is_none());
    }

    #[test]
    fn few_losses_at_the_end_are_returned_for_saving() {
        let losses = Losses::new();
        losses.record_loss("a", 1);
        losses.record_loss("a", 2);
        assert_eq!(losses.take_if_few(), Some(vec![1, 2]));
        assert_eq!(losses.take_if_few(), Some(vec![]));
    }

    #[test]
    fn reasons_differing_only_in_numbers_count_together() {
        let losses = Losses::new();
        assert_eq!(losses.summary(), None);
        losses.record_loss("once", ());
        losses.record_loss("lost browser 17 on node n1", ());
        losses.record_loss("lost browser 18 on node n2", ());
        assert_eq!(losses.summary(), Some((3, "lost browser 17 on node n1".to_owned())));
    }
}
