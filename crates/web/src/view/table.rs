//! An iteration as a light table: columns, with names that repeat written once, so that ten thousand rows are read and
//! shown in well under a second. Filtering and sorting are the page's.

use std::collections::HashMap;

use proto::trajectory::TaskId;
use serde::Serialize;
use store::Split;
use store::metrics::{DifficultyClass, Standing, standing};

use super::iteration::Iteration;
use super::outcome_of;

/// A column of names: each name once, and for every row which.
#[derive(Debug, Default, Serialize)]
pub struct Names<'a> {
    values: Vec<&'a str>,
    rows: Vec<u32>,
    #[serde(skip)]
    known: HashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn push(&mut self, name: &'a str) {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(name).or_insert(next);
        if number == next {
            self.values.push(name);
        }
        self.rows.push(number);
    }
}

#[derive(Debug, Serialize)]
pub struct Table<'a> {
    pub split: Split,
    pub iteration: u64,
    pub version: String,
    pub is_finished: bool,
    pub announced: Option<u64>,
    pub changed: u64,
    pub problems: &'a [String],
    pub key: Vec<&'a str>,
    pub task: Vec<&'a str>,
    pub task_id: Vec<Option<&'a TaskId>>,
    pub outcome: Names<'a>,
    pub domain: Names<'a>,
    pub subdomain: Names<'a>,
    pub website: Names<'a>,
    pub class: Names<'a>,
    pub difficulty: Vec<i64>,
    pub reward: Vec<i64>,
    pub steps: Vec<u64>,
    pub max_steps: Vec<i64>,
    /// Counted as crashed by the rules of the metrics: it broke off rather than failed.
    pub crashed: Vec<bool>,
}

impl<'a> Table<'a> {
    pub fn of(iteration: &'a Iteration) -> Self {
        let mut table = Self {
            split: iteration.split,
            iteration: iteration.number,
            version: iteration.version(),
            is_finished: iteration.is_finished,
            announced: iteration.announced(),
            changed: iteration.changed(),
            problems: &iteration.problems,
            key: Vec::new(),
            task: Vec::new(),
            task_id: Vec::new(),
            outcome: Names::default(),
            domain: Names::default(),
            subdomain: Names::default(),
            website: Names::default(),
            class: Names::default(),
            difficulty: Vec::new(),
            reward: Vec::new(),
            steps: Vec::new(),
            max_steps: Vec::new(),
            crashed: Vec::new(),
        };
        for entry in iteration.entries() {
            let Some(summary) = iteration.summary(entry) else { continue };
            table.key.push(&entry.key);
            table.task.push(&summary.task_name);
            table.task_id.push(summary.task_id.as_ref());
            table.outcome.push(outcome_of(summary, entry));
            table.domain.push(&summary.domain);
            table.subdomain.push(&summary.subdomain);
            table.website.push(&summary.website);
            table.class.push(DifficultyClass::of(summary.difficulty).as_str());
            table.difficulty.push(summary.difficulty);
            table.reward.push(summary.reward);
            table.steps.push(summary.steps);
            table.max_steps.push(summary.max_steps);
            let is_crashed = !entry.is_begun() && matches!(standing(summary), Standing::Crashed(_));
            table.crashed.push(is_crashed);
        }
        table
    }
}
