//! The tasks that a server offers, by split. Only ids and positions are kept in memory; a task is read when it is needed.

use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use proto::trajectory::{Task, TaskId};
use rollout::{
    config::MaxSteps,
    plan::{
        sampler::Random,
        tasks::{TaskError, TaskFile},
    },
};
use serde_json::{Value, json};

use crate::error::EnvError;

/// Tasks read at once while ids are collected.
const CHUNK: usize = 1000;

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error(transparent)]
    Tasks(#[from] TaskError),
    #[error(
        "the split {0:?} is given twice; name each task file's split: --tasks train=FILE --tasks test=FILE"
    )]
    DuplicateSplit(String),
}

/// The tasks of one split.
struct SplitTasks {
    name: String,
    file: TaskFile,
    max_steps: MaxSteps,
    /// Task id → index in the file.
    ids: HashMap<String, usize>,
    /// The index of the next task for a client that does not choose one.
    next: AtomicUsize,
}

/// The tasks that a server offers. Without any, episodes start on an empty page and have no reward.
#[derive(Default)]
pub struct TaskCatalog {
    splits: Vec<SplitTasks>,
}

/// Which task a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskChoice {
    pub(crate) split: Option<String>,
    pub(crate) task_id: Option<String>,
    pub(crate) index: Option<usize>,
    pub(crate) seed: Option<u64>,
}

/// A task with its place in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct ChosenTask {
    pub(crate) split: String,
    pub(crate) task: Task,
}

impl TaskCatalog {
    /// Adds the tasks of a file as a split.
    pub fn add(&mut self, split: &str, file: &Path, max_steps: MaxSteps) -> Result<(), CatalogError> {
        if self.splits.iter().any(|known| known.name == split) {
            return Err(CatalogError::DuplicateSplit(split.to_owned()));
        }
        let file = TaskFile::open(file, false)?;
        let indices: Vec<usize> = (0..file.entries().len()).collect();
        let mut ids = HashMap::new();
        for chunk in indices.chunks(CHUNK) {
            for (index, task) in chunk.iter().zip(file.load(chunk)?) {
                ids.extend(task.task_id.as_ref().map(|id| (id_text(id), *index)));
            }
        }
        let name = split.to_owned();
        self.splits.push(SplitTasks { name, file, max_steps, ids, next: AtomicUsize::new(0) });
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.splits.is_empty()
    }

    /// Returns the number of tasks of all splits.
    pub fn len(&self) -> usize {
        self.splits.iter().map(|split| split.file.entries().len()).sum()
    }

    /// Lists the splits as the task API does.
    pub(crate) fn splits(&self) -> Value {
        let kind = |name: &str| match name {
            "train" | "validation" | "test" => name.to_owned(),
            _ => "validation".to_owned(),
        };
        self.splits.iter().map(|split| json!({"name": split.name, "type": kind(&split.name)})).collect()
    }

    pub(crate) fn count(&self, split: &str) -> Result<usize, EnvError> {
        Ok(self.split(split)?.file.entries().len())
    }

    /// Lists the tasks with these indices as the task API does, without what the judge knows.
    pub(crate) fn list(&self, split: &str, indices: std::ops::Range<usize>) -> Result<Vec<Value>, EnvError> {
        let split = self.split(split)?;
        let mut listed = Vec::with_capacity(indices.len());
        for index in indices {
            listed.push(split.load(index)?);
        }
        Ok(listed.iter().map(public_fields).collect())
    }

    /// Checks that the chosen task exists, without taking one.
    pub(crate) fn check(&self, choice: &TaskChoice) -> Result<(), EnvError> {
        match choice {
            TaskChoice { task_id: None, split: None, index: None, .. } => Ok(()),
            // Any index will do: the next one in order would be taken by choosing it.
            TaskChoice { task_id: None, index: None, .. } => {
                self.choose(&TaskChoice { index: Some(0), ..choice.clone() }).map(drop)
            }
            _ => self.choose(choice).map(drop),
        }
    }

    /// Returns the task that a client asks for: by id, by index, by seed, or the next one in order.
    pub(crate) fn choose(&self, choice: &TaskChoice) -> Result<ChosenTask, EnvError> {
        let Some(first) = self.splits.first() else { return Ok(free_task()) };
        if let Some(id) = &choice.task_id {
            let is_searched =
                |split: &&SplitTasks| choice.split.as_ref().is_none_or(|name| *name == split.name);
            let found =
                self.splits.iter().filter(is_searched).find_map(|split| Some((split, *split.ids.get(id)?)));
            let (split, index) = found.ok_or_else(|| EnvError::Invalid(format!("unknown task_id {id:?}")))?;
            return Ok(ChosenTask { split: split.name.clone(), task: split.load(index)? });
        }
        let split = match &choice.split {
            Some(name) => self.split(name)?,
            None => first,
        };
        let count = split.file.entries().len();
        let index = match (choice.index, choice.seed) {
            (Some(index), _) => index,
            (None, Some(seed)) => Random::new(seed).below(count as u64) as usize,
            (None, None) => split.next.fetch_add(1, Ordering::Relaxed) % count,
        };
        Ok(ChosenTask { split: split.name.clone(), task: split.load(index)? })
    }

    fn split(&self, name: &str) -> Result<&SplitTasks, EnvError> {
        self.splits.iter().find(|split| split.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.splits.iter().map(|split| split.name.as_str()).collect();
            EnvError::Invalid(format!("unknown split {name:?}; accepted: {}", names.join(", ")))
        })
    }
}

impl SplitTasks {
    fn load(&self, index: usize) -> Result<Task, EnvError> {
        let count = self.file.entries().len();
        let out_of_range =
            || EnvError::Invalid(format!("there is no task {index}; the split {} has {count}", self.name));
        let loaded = self.file.load(&[index]).map_err(|error| EnvError::Start(error.to_string()))?;
        let mut task = loaded.into_iter().next().ok_or_else(out_of_range)?;
        task.max_steps = i64::from(self.max_steps.of(task.difficulty));
        Ok(task)
    }
}

/// Returns the task of an episode without one.
fn free_task() -> ChosenTask {
    let task = Task { website: "about:blank".to_owned(), max_steps: i64::MAX, ..Task::default() };
    ChosenTask { split: String::new(), task }
}

pub(crate) fn id_text(id: &TaskId) -> String {
    match id {
        TaskId::Number(number) => number.to_string(),
        TaskId::Text(text) => text.clone(),
    }
}

fn public_fields(task: &Task) -> Value {
    json!({
        "task_id": task.task_id, "goal": task.task_name, "website": task.website, "domain": task.domain,
        "subdomain": task.subdomain, "difficulty": task.difficulty, "max_steps": task.max_steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> (tempfile::TempDir, TaskCatalog) {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str| {
            json!({
                "task_id": id, "task_name": format!("goal of {id}"), "website": "http://a.test", "domain": "d",
                "subdomain": "s", "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "secret",
            })
            .to_string()
        };
        let mut catalog = TaskCatalog::default();
        for (split, ids) in [("train", ["a", "b", "c"]), ("test", ["x", "y", "z"])] {
            let path = folder.path().join(split);
            std::fs::write(&path, ids.map(line).join("\n")).unwrap();
            catalog.add(split, &path, MaxSteps::TRAIN).unwrap();
        }
        (folder, catalog)
    }

    fn chosen(catalog: &TaskCatalog, choice: &TaskChoice) -> Result<String, String> {
        let task = catalog.choose(choice).map_err(|error| error.to_string())?.task;
        Ok(id_text(task.task_id.as_ref().unwrap()))
    }

    #[test]
    fn task_is_chosen_by_id_index_seed_or_order() {
        let (_folder, catalog) = catalog();
        let by = |choice: TaskChoice| chosen(&catalog, &choice).unwrap();
        assert_eq!(by(TaskChoice { task_id: Some("y".into()), ..TaskChoice::default() }), "y");
        assert_eq!(
            by(TaskChoice { split: Some("test".into()), index: Some(2), ..TaskChoice::default() }),
            "z"
        );
        let seeded = TaskChoice { seed: Some(11), ..TaskChoice::default() };
        assert_eq!(by(seeded.clone()), by(seeded));
        let seeds = (0..32).map(|seed| by(TaskChoice { seed: Some(seed), ..TaskChoice::default() }));
        assert_eq!(seeds.collect::<std::collections::BTreeSet<_>>().len(), 3, "seeds reach every task");
        let in_order: Vec<_> = (0..4).map(|_| by(TaskChoice::default())).collect();
        assert_eq!(in_order, ["a", "b", "c", "a"]);
    }

    #[test]
    fn unknown_task_and_split_are_refused() {
        let (_folder, catalog) = catalog();
        let unknown = TaskChoice { task_id: Some("nope".into()), ..TaskChoice::default() };
        assert_eq!(chosen(&catalog, &unknown), Err("unknown task_id \"nope\"".into()));
        let elsewhere =
            TaskChoice { task_id: Some("x".into()), split: Some("train".into()), ..TaskChoice::default() };
        assert!(chosen(&catalog, &elsewhere).is_err(), "an id is searched in the given split only");
        let split = TaskChoice { split: Some("dev".into()), ..TaskChoice::default() };
        assert_eq!(chosen(&catalog, &split), Err("unknown split \"dev\"; accepted: train, test".into()));
        let index = TaskChoice { index: Some(3), ..TaskChoice::default() };
        assert!(chosen(&catalog, &index).unwrap_err().contains("there is no task 3"));
        for refused in [&unknown, &elsewhere, &split, &index] {
            assert!(catalog.check(refused).is_err(), "{refused:?}");
        }
        let test = TaskChoice { split: Some("test".into()), ..TaskChoice::default() };
        assert!(catalog.check(&test).is_ok() && catalog.check(&TaskChoice::default()).is_ok());
        assert_eq!(chosen(&catalog, &test).unwrap(), "x", "a check takes no task");
    }

    #[test]
    fn listed_tasks_do_not_contain_the_reference_answer() {
        let (_folder, catalog) = catalog();
        let listed = Value::from(catalog.list("train", 0..3).unwrap()).to_string();
        assert!(listed.contains("goal of b") && !listed.contains("secret"), "{listed}");
    }
}
