//! Episodes lost to infrastructure while none has worked yet. They are held back: if the agent ends one after all,
//! they count as lost; if nothing works, they are no result, and the run stops with the reason and can be resumed.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// So many in a row, with nothing else, are no accident.
const NO_ACCIDENT: usize = 64;
/// Fewer at the end of a run may be the tasks' own doing.
const MAY_BE_THE_TASKS: usize = 3;

pub(super) struct Losses<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    worked: bool,
    held: Vec<T>,
    /// How often each reason came, with one of its wordings.
    reasons: HashMap<String, (usize, String)>,
}

pub(super) enum Told<T> {
    /// Something works: this loss counts as one.
    Counts(T),
    Held,
    /// Enough.
    NothingWorks,
}

impl<T> Losses<T> {
    pub(super) fn new() -> Self {
        let state = State { worked: false, held: Vec::new(), reasons: HashMap::new() };
        Self { state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An episode was ended by its agent. Answers with what was held back until now.
    pub(super) fn worked(&self) -> Vec<T> {
        let mut state = self.state();
        state.worked = true;
        std::mem::take(&mut state.held)
    }

    pub(super) fn lost(&self, why: &str, episode: T) -> Told<T> {
        let mut state = self.state();
        let reason = state.reasons.entry(kind(why)).or_insert_with(|| (0, why.to_owned()));
        reason.0 += 1;
        if state.worked {
            return Told::Counts(episode);
        }
        state.held.push(episode);
        if state.held.len() < NO_ACCIDENT { Told::Held } else { Told::NothingWorks }
    }

    /// How many are held back.
    pub(super) fn held(&self) -> usize {
        self.state().held.len()
    }

    /// What is still held when all tasks are through, if it is little enough to count; `None` if nothing works.
    pub(super) fn at_the_end(&self) -> Option<Vec<T>> {
        let mut state = self.state();
        (state.held.len() < MAY_BE_THE_TASKS).then(|| std::mem::take(&mut state.held))
    }

    /// How many episodes were lost, and the reason that came most often.
    pub(super) fn summary(&self) -> Option<(usize, String)> {
        let state = self.state();
        let (_, why) = state.reasons.values().max_by_key(|(count, why)| (*count, why.clone()))?;
        Some((state.reasons.values().map(|(count, _)| count).sum(), why.clone()))
    }
}

/// Reasons that differ only in their numbers and ids are one.
fn kind(why: &str) -> String {
    let is_id = |word: &str| word.chars().any(|letter| letter.is_ascii_digit());
    why.split_whitespace().filter(|word| !is_id(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_count_once_something_has_worked() {
        let losses = Losses::new();
        assert!(matches!(losses.lost("a", 1), Told::Held));
        assert!(matches!(losses.lost("a", 2), Told::Held));
        assert_eq!(losses.worked(), [1, 2]);
        assert!(matches!(losses.lost("a", 3), Told::Counts(3)));
        assert_eq!(losses.worked(), [0; 0]);
    }

    #[test]
    fn many_losses_and_nothing_else_end_the_run() {
        let losses = Losses::new();
        for episode in 1..NO_ACCIDENT {
            assert!(matches!(losses.lost("a", episode), Told::Held));
        }
        assert!(matches!(losses.lost("a", 0), Told::NothingWorks));
        assert!(losses.at_the_end().is_none());
    }

    #[test]
    fn few_losses_at_the_end_are_results() {
        let losses = Losses::new();
        losses.lost("a", 1);
        losses.lost("a", 2);
        assert_eq!(losses.at_the_end(), Some(vec![1, 2]));
        assert_eq!(losses.at_the_end(), Some(vec![]));
    }

    #[test]
    fn the_commonest_reason_is_told_whatever_its_numbers() {
        let losses = Losses::new();
        assert_eq!(losses.summary(), None);
        losses.lost("once", ());
        losses.lost("lost browser 17 on node n1", ());
        losses.lost("lost browser 18 on node n2", ());
        assert_eq!(losses.summary(), Some((3, "lost browser 17 on node n1".to_owned())));
    }
}
