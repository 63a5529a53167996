//! The table of one iteration. Sent by column, with repeated names written once, so that ten thousand rows load in well under
//! a second. The page filters and sorts.

use std::collections::HashMap;

use proto::trajectory::TaskId;
use serde::Serialize;
use store::Split;
use store::metrics::{Category, DifficultyClass, category};

use super::iteration::Iteration;
use super::outcome_of;

/// A column of names: the distinct names and, for each row, the number of its name.
#[derive(Debug, Default, Serialize)]
pub struct NameColumn<'a> {
    values: Vec<&'a str>,
    rows: Vec<u32>,
    #[serde(skip)]
    known: HashMap<&'a str, u32>,
}

impl<'a> NameColumn<'a> {
    fn push(&mut self, name: &'a str) {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(name).or_insert(next);
        if number == next {
            self.values.push(name);
        }
        self.rows.push(number);
    }
}

/// All trajectories of one iteration, by column.
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
    pub outcome: NameColumn<'a>,
    pub domain: NameColumn<'a>,
    pub subdomain: NameColumn<'a>,
    pub website: NameColumn<'a>,
    pub class: NameColumn<'a>,
    pub difficulty: Vec<i64>,
    pub reward: Vec<i64>,
    pub steps: Vec<u64>,
    pub max_steps: Vec<i64>,
    /// Counted as crashed in the metrics: the episode broke off instead of failing its task.
    pub crashed: Vec<bool>,
}

impl<'a> Table<'a> {
    pub fn of(iteration: &'a Iteration) -> Self {
        let mut table = Self {
            split: iteration.split,
            iteration: iteration.number,
            version: iteration.version(),
            is_finished: iteration.is_finished,
            announced: iteration.planned(),
            changed: iteration.changed(),
            problems: &iteration.problems,
            key: Vec::new(),
            task: Vec::new(),
            task_id: Vec::new(),
            outcome: NameColumn::default(),
            domain: NameColumn::default(),
            subdomain: NameColumn::default(),
            website: NameColumn::default(),
            class: NameColumn::default(),
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
            let is_crashed = !entry.is_running() && matches!(category(summary), Category::Crashed(_));
            table.crashed.push(is_crashed);
        }
        table
    }
}
