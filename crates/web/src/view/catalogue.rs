//! What is in a save path: its iterations at a glance, the figures of each, and which trajectories try the same task.

use std::collections::HashMap;
use std::sync::Arc;

use proto::trajectory::Outcome;
use serde::Serialize;
use store::metrics::Breakdown;
use store::{RunMetadata, Split, Summary};

use super::iteration::Iteration;
use super::shelf::{Memo, Shelf};
use super::{ViewError, outcome_of};
use crate::plot::{Curves, Digest, TaskKey};

/// An iteration as the directory shows it; its figures are asked for one by one.
#[derive(Debug, Serialize)]
pub struct IterationName {
    pub split: Split,
    pub iteration: u64,
}

#[derive(Debug, Serialize)]
pub struct Contents {
    pub save_path: String,
    pub iterations: Vec<IterationName>,
}

/// The figures of one iteration.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    pub split: Split,
    pub iteration: u64,
    pub is_finished: bool,
    pub trajectories: u64,
    /// Episodes that have begun and are not over.
    pub begun: u64,
    /// What the run announced, while it is not finished.
    pub announced: Option<u64>,
    pub steps: u64,
    pub bytes: u64,
    /// Unix seconds.
    pub changed: u64,
    pub outcomes: Vec<(&'static str, u64)>,
    #[serde(flatten)]
    pub figures: Breakdown,
    pub metadata: Option<RunMetadata>,
    pub problems: Vec<String>,
}

/// Enough of a trajectory to offer it for comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    pub key: String,
    pub outcome: &'static str,
    pub reward: i64,
    pub steps: u64,
}

/// A card and the iteration that it is of.
#[derive(Clone, Debug, Serialize)]
pub struct Sibling {
    pub split: Split,
    pub iteration: u64,
    #[serde(flatten)]
    pub card: Card,
}

#[derive(Debug)]
struct Known {
    overview: Overview,
    digest: Digest,
    by_task: HashMap<TaskKey, Vec<Card>>,
}

#[derive(Debug, Default)]
pub(super) struct Catalogue {
    known: Memo<Known>,
}

impl Catalogue {
    pub(super) fn contents(shelf: &Shelf) -> Result<Contents, ViewError> {
        let mut iterations = Vec::new();
        for split in Split::ALL {
            let numbers = shelf.numbers(split)?;
            iterations.extend(numbers.into_iter().map(|iteration| IterationName { split, iteration }));
        }
        Ok(Contents { save_path: shelf.save_path().root().display().to_string(), iterations })
    }

    fn known(&self, shelf: &Shelf, split: Split, number: u64) -> Result<Arc<Known>, ViewError> {
        self.known.get(shelf, (split, number), Known::of)
    }

    pub(super) fn overview(&self, shelf: &Shelf, split: Split, number: u64) -> Result<Overview, ViewError> {
        Ok(self.known(shelf, split, number)?.overview.clone())
    }

    /// Every trajectory of the same task, whatever its iteration.
    pub(super) fn siblings(&self, shelf: &Shelf, task: TaskKey) -> Result<Vec<Sibling>, ViewError> {
        let mut siblings = Vec::new();
        for IterationName { split, iteration } in Self::contents(shelf)?.iterations {
            let known = self.known(shelf, split, iteration)?;
            let cards = known.by_task.get(&task).into_iter().flatten();
            siblings.extend(cards.map(|card| Sibling { split, iteration, card: card.clone() }));
        }
        Ok(siblings)
    }

    pub(super) fn curves(&self, shelf: &Shelf) -> Result<Curves, ViewError> {
        let mut curves = Curves::default();
        for IterationName { split, iteration } in Self::contents(shelf)?.iterations {
            curves.add(split, iteration, &self.known(shelf, split, iteration)?.digest);
        }
        if curves.is_empty() {
            return Err(ViewError::NothingToPlot(shelf.save_path().root().display().to_string()));
        }
        Ok(curves)
    }
}

impl Known {
    fn of(iteration: &Iteration) -> Self {
        let finished: Vec<Summary> = iteration.finished().cloned().collect();
        let mut by_task: HashMap<TaskKey, Vec<Card>> = HashMap::new();
        for entry in iteration.entries() {
            let Some(summary) = iteration.summary(entry) else { continue };
            let card = Card {
                key: entry.key.clone(),
                outcome: outcome_of(summary, entry),
                reward: summary.reward,
                steps: summary.steps,
            };
            by_task.entry(TaskKey::of(summary)).or_default().push(card);
        }
        Self { overview: overview(iteration, &finished), digest: Digest::of(&finished), by_task }
    }
}

fn overview(iteration: &Iteration, finished: &[Summary]) -> Overview {
    let all = [
        Outcome::Success,
        Outcome::Failure,
        Outcome::Blocked,
        Outcome::InfraLost,
        Outcome::JudgeError,
        Outcome::Cancelled,
    ];
    let count = |outcome| finished.iter().filter(|one| one.outcome_or_inferred() == outcome).count() as u64;
    Overview {
        split: iteration.split,
        iteration: iteration.number,
        is_finished: iteration.is_finished,
        trajectories: finished.len() as u64,
        begun: iteration.begun() as u64,
        announced: iteration.announced(),
        steps: finished.iter().map(|summary| summary.steps).sum(),
        bytes: iteration.bytes(),
        changed: iteration.changed(),
        outcomes: all.into_iter().map(|outcome| (outcome.as_str(), count(outcome))).collect(),
        figures: Breakdown::of(finished),
        metadata: iteration.metadata().cloned(),
        problems: iteration.problems.clone(),
    }
}
