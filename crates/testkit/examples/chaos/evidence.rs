//! Reads the collector's files as documented in docs/formats.md: which trajectories are finished, what they contain,
//! and which files belong to none of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use proto::trajectory::{Outcome, TaskId, Trajectory};
use store::{IterationFile, SavePath, Split, iteration, layout::FileKind};

/// Iteration and trajectory index.
pub(crate) type Key = (u64, i64);

/// Summary of a finished trajectory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) task: String,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) reward: i64,
    pub(crate) answer: String,
    /// Hash of everything but the verdict: steps, texts, screenshots.
    pub(crate) content: u64,
    pub(crate) image_folder: PathBuf,
}

impl Finished {
    fn summarize(mut trajectory: Trajectory) -> Result<Self, String> {
        let task = match trajectory.task.task_id.clone() {
            Some(TaskId::Text(text)) => text,
            other => format!("{other:?}"),
        };
        let last = trajectory.steps.last();
        let reward = last.map_or(0, |step| step.reward.reward);
        let action = last.and_then(|step| step.action.as_ref());
        let answer = action.map(|action| action.action_string.clone()).unwrap_or_default();
        let outcome = trajectory.metadata.outcome;
        let mut hasher = DefaultHasher::new();
        let mut image_folder = PathBuf::new();
        for step in &mut trajectory.steps {
            step.reward = proto::trajectory::Reward::default();
            let path = Path::new(&step.observation.image_path);
            let image =
                std::fs::read(path).map_err(|error| format!("{task}: {}: {error}", path.display()))?;
            image.hash(&mut hasher);
            image_folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        }
        serde_json::to_string(&trajectory.steps).map_err(|error| error.to_string())?.hash(&mut hasher);
        serde_json::to_string(&trajectory.task).map_err(|error| error.to_string())?.hash(&mut hasher);
        Ok(Self { task, outcome, reward, answer, content: hasher.finish(), image_folder })
    }
}

/// Reads a save path repeatedly. Files that cannot change any more are read only once.
pub(crate) struct Disk {
    save_path: SavePath,
    known: BTreeMap<PathBuf, BTreeMap<i64, Finished>>,
}

impl Disk {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { save_path: SavePath::new(root), known: BTreeMap::new() }
    }

    /// Discards the cache, so that the next call reads everything again.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Returns all finished trajectories. An error may be caused by a file that was just renamed; then try again.
    pub(crate) fn finished(&mut self) -> Result<BTreeMap<Key, Finished>, String> {
        let mut all = BTreeMap::new();
        let io = |error: std::io::Error| error.to_string();
        if !self.save_path.split_directory(Split::Test).exists() {
            return Ok(all);
        }
        for number in iteration::iterations(&self.save_path, Split::Test).map_err(io)? {
            for file in iteration::files_of(&self.save_path, Split::Test, number).map_err(io)? {
                let trajectories = self.read(&file.path, file.kind)?;
                all.extend(trajectories.into_iter().map(|(index, one)| ((number, index), one)));
            }
        }
        Ok(all)
    }

    fn read(&mut self, path: &Path, kind: FileKind) -> Result<BTreeMap<i64, Finished>, String> {
        let before = self.known.get(path);
        if kind == FileKind::Finished
            && let Some(known) = before
        {
            return Ok(known.clone());
        }
        let file = IterationFile::open(path).map_err(|error| error.to_string())?;
        if let Some(scan) = file.scan() {
            if let Some(damage) = scan.damaged.first() {
                return Err(format!("{} is damaged: {}", path.display(), damage.reason));
            }
            if let Some(index) = scan.repeated.first() {
                return Err(format!("{} has trajectory {index} twice", path.display()));
            }
        }
        let mut found: BTreeMap<i64, Finished> = BTreeMap::new();
        for (position, summary) in file.summaries().iter().enumerate() {
            let index = summary.trajectory_index;
            // A journal only grows: cached records stay valid unless the journal was replaced.
            let known = before.and_then(|known| known.get(&index)).filter(|known| {
                summary
                    .image_directory
                    .as_deref()
                    .is_some_and(|folder| Path::new(folder) == known.image_folder)
            });
            let one = match known {
                Some(known) => known.clone(),
                None => Finished::summarize(file.read(position).map_err(|error| error.to_string())?)?,
            };
            if found.insert(index, one).is_some() {
                return Err(format!("{} has trajectory {index} twice", path.display()));
            }
        }
        self.known.insert(path.to_owned(), found.clone());
        Ok(found)
    }

    /// Returns files that must not exist after all runs have ended: temporary files, journals, lease records, and
    /// screenshots that no trajectory refers to.
    pub(crate) fn leftovers(&mut self) -> Result<Vec<String>, String> {
        let named: BTreeSet<PathBuf> = self.finished()?.into_values().map(|one| one.image_folder).collect();
        let root = self.save_path.root().to_owned();
        let mut left = Vec::new();
        for path in entries(&root) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match name.as_str() {
                "hyperparameters.yaml" => left.extend(half_written(&path)),
                "tensorboard" => {}
                "images" => left.extend(entries(&path).into_iter().filter(|one| !named.contains(one))),
                "test_trajectories" => {
                    let is_iteration_file = |path: &PathBuf| {
                        let name = path.file_name().unwrap_or_default().to_string_lossy();
                        name.rsplit_once(".pt.iteration")
                            .is_some_and(|(_, number)| number.parse::<u64>().is_ok())
                    };
                    left.extend(entries(&path).into_iter().filter(|one| !is_iteration_file(one)));
                }
                "leases" => left.extend(entries(&path)),
                _ => left.push(path),
            }
        }
        Ok(left.into_iter().map(|path| path.display().to_string()).collect())
    }
}

/// Checks the record of the runs' configurations: every YAML document has the same keys unless one was truncated.
fn half_written(path: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let keys = |document: &str| -> Vec<String> {
        let top = document.lines().filter(|line| !line.starts_with([' ', '-']) && line.contains(':'));
        top.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let documents: Vec<Vec<String>> = text.split("---\n").skip(1).map(keys).collect();
    let whole = documents.windows(2).all(|pair| pair[0] == pair[1]) && !documents.is_empty();
    (!whole).then(|| path.join("(truncated document)"))
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}
