//! Limits how far a run may be ahead of the trainer that consumes its stream, so that no episode starts with a policy that
//! will be too old when the trainer uses it. The unit is the item of the stream: a trajectory, or a group of attempts.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::watch;

/// Returns whether another item may start. Items that are held back, because no episode has worked so far, cannot be
/// acknowledged, so each of them is replaced by another one.
pub const fn may_start(started: usize, acknowledged: usize, held: usize, limit: usize) -> bool {
    started < acknowledged + held + limit
}

/// Returns the most items that may be started and not acknowledged, when a trainer updates its weights after every `batch`
/// items and no item may be used more than `max_staleness` updates after it started.
pub const fn limit(max_staleness: usize, batch: usize) -> usize {
    max_staleness.saturating_add(1).saturating_mul(batch)
}

/// A handle of the limit. Clones share it.
#[derive(Clone, Debug)]
pub struct StartLimit {
    /// The most items that are started and not acknowledged; unset for no limit.
    limit: Option<usize>,
    /// Trajectories per item.
    group_size: usize,
    state: Arc<watch::Sender<Starts>>,
}

#[derive(Debug, Default)]
struct Starts {
    started: HashSet<i64>,
    held: HashSet<i64>,
    acknowledged: usize,
}

/// A snapshot of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartStatus {
    pub started: usize,
    pub acknowledged: usize,
    pub limit: usize,
}

impl StartStatus {
    pub const fn unacknowledged(self) -> usize {
        self.started.saturating_sub(self.acknowledged)
    }
}

impl StartLimit {
    /// Creates a limit. The trajectories that an earlier part of the run finished count as started.
    pub fn new(limit: Option<usize>, group_size: usize, finished: impl IntoIterator<Item = i64>) -> Self {
        let group_size = group_size.max(1);
        let started = if limit.is_some() {
            finished.into_iter().map(|index| item_of(index, group_size)).collect()
        } else {
            HashSet::new()
        };
        let starts = Starts { started, ..Starts::default() };
        Self { limit, group_size, state: Arc::new(watch::Sender::new(starts)) }
    }

    pub fn none() -> Self {
        Self::new(None, 1, [])
    }

    pub const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Starts a trajectory if it may start. The members of a started item, and what has started before, always may.
    pub(super) fn try_start(&self, index: i64) -> bool {
        let Some(limit) = self.limit else { return true };
        let item = item_of(index, self.group_size);
        let mut may = false;
        self.state.send_if_modified(|state| {
            let (started, held) = (state.started.len(), state.held.len());
            may = state.started.contains(&item) || may_start(started, state.acknowledged, held, limit);
            if may {
                state.started.insert(item);
            }
            // Only acknowledged and held items let waiting workers go on.
            false
        });
        may
    }

    /// Returns a receiver that is notified when more items may start. Create it before calling `try_start`.
    pub(super) fn changes(&self) -> StartChanges {
        StartChanges(self.state.subscribe())
    }

    /// Records how many items the consumer has acknowledged.
    pub fn set_acknowledged(&self, acknowledged: usize) {
        self.state.send_if_modified(|state| {
            let is_more = acknowledged > state.acknowledged;
            state.acknowledged = state.acknowledged.max(acknowledged);
            is_more
        });
    }

    /// Records that a trajectory is held back.
    pub(super) fn add_held(&self, index: i64) {
        if self.is_limited() {
            self.state.send_if_modified(|state| state.held.insert(item_of(index, self.group_size)));
        }
    }

    /// Records that nothing is held back any more.
    pub(super) fn clear_held(&self) {
        self.state.send_if_modified(|state| {
            state.held.clear();
            false
        });
    }

    /// Returns the numbers behind the decision; `None` without a limit.
    pub fn status(&self) -> Option<StartStatus> {
        let state = self.state.borrow();
        let (started, acknowledged) = (state.started.len(), state.acknowledged);
        self.limit.map(|limit| StartStatus { started, acknowledged, limit })
    }
}

/// Waits for the moment when more items may start.
pub(super) struct StartChanges(watch::Receiver<Starts>);

impl StartChanges {
    pub(super) async fn changed(&mut self) {
        // The sender lives as long as the run.
        let _ = self.0.changed().await;
    }
}

const fn item_of(index: i64, group_size: usize) -> i64 {
    index / group_size.cast_signed() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_stay_within_staleness() {
        // max_staleness, batch, started, acknowledged, held, may start
        let table = [
            (0, 4, 0, 0, 0, true),
            (0, 4, 3, 0, 0, true),
            (0, 4, 4, 0, 0, false),
            (0, 4, 4, 1, 0, true),
            (1, 4, 7, 0, 0, true),
            (1, 4, 8, 0, 0, false),
            (1, 4, 8, 4, 0, true),
            (1, 4, 12, 4, 0, false),
            (0, 1, 1, 0, 0, false),
            (0, 1, 1, 0, 1, true),
            (0, 1, 2, 0, 1, false),
            (0, 1, 2, 2, 0, true),
            (usize::MAX, 2, 1000, 0, 0, true),
        ];
        for (max_staleness, batch, started, acknowledged, held, expected) in table {
            let may = may_start(started, acknowledged, held, limit(max_staleness, batch));
            assert_eq!(may, expected, "{max_staleness} {batch} {started} {acknowledged} {held}");
        }
    }

    #[test]
    fn group_counts_once_and_resumed_items_count() {
        let starts = StartLimit::new(Some(2), 3, [0, 1]);
        let started: Vec<i64> = (0..12).filter(|index| starts.try_start(*index)).collect();
        assert_eq!(started, [0, 1, 2, 3, 4, 5], "the rest of the resumed group, and one more");
        starts.set_acknowledged(1);
        assert!(starts.try_start(6) && starts.try_start(8) && !starts.try_start(9));
        starts.set_acknowledged(0);
        assert_eq!(starts.status().unwrap().acknowledged, 1, "an acknowledgment is never taken back");
        assert_eq!(starts.status().unwrap().unacknowledged(), 2);
    }

    #[tokio::test]
    async fn held_item_is_replaced_once() {
        let starts = StartLimit::new(Some(1), 2, []);
        let mut changes = starts.changes();
        assert!(starts.try_start(0) && starts.try_start(1) && !starts.try_start(2));
        starts.add_held(0);
        changes.changed().await;
        starts.add_held(1);
        assert!(starts.try_start(2) && starts.try_start(3) && !starts.try_start(4));
        starts.clear_held();
        assert!(!starts.try_start(4));
    }

    #[test]
    fn without_limit_everything_starts() {
        let starts = StartLimit::none();
        assert!((0..1000).all(|index| starts.try_start(index)));
        assert_eq!(starts.status(), None);
    }
}
