//! The save path: which file lies where, and which iteration comes next. Pure path arithmetic plus directory
//! listings; it creates directories when asked and never writes or deletes a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Test,
}

impl Split {
    pub const ALL: [Self; 2] = [Self::Train, Self::Test];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Split {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "train" => Ok(Self::Train),
            "test" => Ok(Self::Test),
            other => Err(format!("split is {other:?}; it must be \"train\" or \"test\"")),
        }
    }
}

/// Names one iteration of a split, or the share of it that one rank collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IterationId {
    pub split: Split,
    pub iteration: u64,
    pub rank: Option<u32>,
}

impl IterationId {
    pub const fn new(split: Split, iteration: u64) -> Self {
        Self { split, iteration, rank: None }
    }

    pub const fn with_rank(self, rank: Option<u32>) -> Self {
        Self { rank, ..self }
    }

    fn file_name(self) -> String {
        let Self { split, iteration, rank } = self;
        let suffix = rank.map_or_else(String::new, |rank| format!("_rank_{rank}"));
        format!("{split}_trajectories.pt.iteration{iteration}{suffix}")
    }
}

impl fmt::Display for IterationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} iteration {}", self.split, self.iteration)?;
        self.rank.map_or(Ok(()), |rank| write!(formatter, " rank {rank}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `….iterationN`: complete.
    Finished,
    /// `….iterationN.checkpoint`: the journal of a run that is going on, or was cut short.
    Journal,
    /// `….iterationN.checkpoint.<time>`: a journal that somebody set aside to start afresh.
    SetAside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundFile {
    pub id: IterationId,
    pub kind: FileKind,
    pub path: PathBuf,
}

/// The directory that a user names as `save_path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavePath(PathBuf);

impl SavePath {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    pub fn split_directory(&self, split: Split) -> PathBuf {
        self.0.join(format!("{split}_trajectories"))
    }

    pub fn iteration_file(&self, id: IterationId) -> PathBuf {
        self.split_directory(id.split).join(id.file_name())
    }

    pub fn journal(&self, id: IterationId) -> PathBuf {
        self.split_directory(id.split).join(format!("{}{JOURNAL_SUFFIX}", id.file_name()))
    }

    /// What the ranks of an iteration agree on.
    pub fn plan(&self, split: Split, iteration: u64) -> PathBuf {
        let name = format!("{}{PLAN_SUFFIX}", IterationId::new(split, iteration).file_name());
        self.split_directory(split).join(name)
    }

    /// The plans of iterations that ranks have begun and not merged in full, in order.
    pub fn plans(&self, split: Split) -> io::Result<Vec<(u64, PathBuf)>> {
        let plan = |(name, path): (String, PathBuf)| match parse_name(split, name.strip_suffix(PLAN_SUFFIX)?)
        {
            Some((IterationId { iteration, rank: None, .. }, FileKind::Finished)) => Some((iteration, path)),
            _ => None,
        };
        let mut found: Vec<_> = self.names(split)?.into_iter().filter_map(plan).collect();
        found.sort();
        Ok(found)
    }

    /// What lies in the directory of a split; a missing one holds nothing.
    fn names(&self, split: Split) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match std::fs::read_dir(self.split_directory(split)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            found.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
        }
        Ok(found)
    }

    pub fn blocklist(&self) -> PathBuf {
        self.0.join("blocklist.jsonl")
    }

    pub fn navigation_errors(&self) -> PathBuf {
        self.0.join("navigation_error_websites.txt")
    }

    pub fn hyperparameters(&self) -> PathBuf {
        self.0.join("hyperparameters.yaml")
    }

    pub fn create_directories(&self, split: Split) -> io::Result<()> {
        std::fs::create_dir_all(self.images())?;
        std::fs::create_dir_all(self.split_directory(split))
    }

    /// The trajectory files of a split, in order of iteration, rank and kind. A missing directory holds none.
    pub fn files(&self, split: Split) -> io::Result<Vec<FoundFile>> {
        let file = |(name, path): (String, PathBuf)| {
            parse_name(split, &name).map(|(id, kind)| FoundFile { id, kind, path })
        };
        let mut found: Vec<_> = self.names(split)?.into_iter().filter_map(file).collect();
        found.sort();
        Ok(found)
    }

    /// The finished iterations of a split; a merged file hides the rank files it was made of.
    pub fn finished(&self, split: Split) -> io::Result<Vec<FoundFile>> {
        let mut finished: Vec<FoundFile> =
            self.files(split)?.into_iter().filter(|file| file.kind == FileKind::Finished).collect();
        let merged: Vec<u64> =
            finished.iter().filter(|file| file.id.rank.is_none()).map(|file| file.id.iteration).collect();
        finished.retain(|file| file.id.rank.is_none() || !merged.contains(&file.id.iteration));
        Ok(finished)
    }

    /// One more than the highest finished file. A rank looks at merged files and its own only: the other ranks
    /// of the same run may be done before this one has started.
    pub fn next_iteration(&self, split: Split, rank: Option<u32>) -> io::Result<u64> {
        let counts = |id: IterationId| rank.is_none() || id.rank.is_none() || id.rank == rank;
        let highest = self
            .files(split)?
            .into_iter()
            .filter(|file| file.kind == FileKind::Finished && counts(file.id))
            .map(|file| file.id.iteration)
            .max();
        Ok(highest.map_or(0, |highest| highest + 1))
    }

    /// The journal to resume: of the latest iteration that has one and is not finished. What was merged without this
    /// rank (its plan is still there) is not finished for it.
    pub fn unfinished_journal(&self, split: Split, rank: Option<u32>) -> io::Result<Option<FoundFile>> {
        let files = self.files(split)?;
        let finished = |id: IterationId| {
            files.iter().any(|file| {
                file.kind == FileKind::Finished
                    && file.id.iteration == id.iteration
                    && (file.id.rank == id.rank
                        || (file.id.rank.is_none() && !self.plan(split, id.iteration).exists()))
            })
        };
        let wanted =
            |file: &&FoundFile| file.kind == FileKind::Journal && file.id.rank == rank && !finished(file.id);
        Ok(files.iter().rfind(wanted).cloned())
    }

    /// The latest journal of a rank that needs no resuming: its iteration was merged in full with what others collected.
    pub fn overtaken_journal(&self, split: Split, rank: u32) -> io::Result<Option<FoundFile>> {
        let files = self.files(split)?;
        let is_there =
            |id: IterationId| files.iter().any(|file| file.kind == FileKind::Finished && file.id == id);
        let overtaken = |file: &&FoundFile| {
            let merged = IterationId { rank: None, ..file.id };
            file.kind == FileKind::Journal
                && file.id.rank == Some(rank)
                && is_there(merged)
                && !is_there(file.id)
                && !self.plan(split, file.id.iteration).exists()
        };
        Ok(files.iter().rfind(overtaken).cloned())
    }

    /// Where a screenshot lies now: as recorded, or under this save path if it was moved since it was recorded.
    pub fn resolve_image(&self, recorded: &str) -> PathBuf {
        let recorded = recorded.strip_prefix("file://").unwrap_or(recorded);
        let path = Path::new(recorded);
        if path.is_relative() {
            return self.0.join(path);
        }
        if path.exists() {
            return path.to_path_buf();
        }
        let mut components: Vec<_> = path.iter().collect();
        if let Some(position) = components.iter().rposition(|part| *part == "images") {
            let moved = self.images().join(components.split_off(position + 1).iter().collect::<PathBuf>());
            if moved.exists() {
                return moved;
            }
        }
        path.to_path_buf()
    }
}

const JOURNAL_SUFFIX: &str = ".checkpoint";
const PLAN_SUFFIX: &str = ".plan.json";

/// Reads a file name back; `None` for anything that is not ours, such as a temporary file.
fn parse_name(split: Split, name: &str) -> Option<(IterationId, FileKind)> {
    let rest = name.strip_prefix(split.as_str())?.strip_prefix("_trajectories.pt.iteration")?;
    let (number, kind) = match rest.split_once(JOURNAL_SUFFIX) {
        None => (rest, FileKind::Finished),
        Some((number, "")) => (number, FileKind::Journal),
        // What a run notes beside its journal is no journal.
        Some((_, rest)) if rest.ends_with(".json") => return None,
        Some((number, time)) if time.starts_with('.') => (number, FileKind::SetAside),
        Some(_) => return None,
    };
    let (iteration, rank) = match number.split_once("_rank_") {
        None => (number, None),
        Some((iteration, rank)) => (iteration, Some(digits(rank)?.parse().ok()?)),
    };
    let iteration = digits(iteration)?.parse().ok()?;
    Some((IterationId { split, iteration, rank }, kind))
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(save_path: &SavePath, split: Split, names: &[&str]) {
        save_path.create_directories(split).unwrap();
        for name in names {
            std::fs::write(save_path.split_directory(split).join(name), b"").unwrap();
        }
    }

    fn fresh() -> (tempfile::TempDir, SavePath) {
        let directory = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(directory.path());
        (directory, save_path)
    }

    #[test]
    fn names_are_those_of_the_python_system() {
        let save_path = SavePath::new("/s");
        let id = IterationId::new(Split::Test, 1);
        let name = |path: PathBuf| path.to_str().unwrap().to_owned();
        assert_eq!(
            name(save_path.iteration_file(id)),
            "/s/test_trajectories/test_trajectories.pt.iteration1"
        );
        assert_eq!(
            name(save_path.journal(id.with_rank(Some(2)))),
            "/s/test_trajectories/test_trajectories.pt.iteration1_rank_2.checkpoint"
        );
    }

    #[test]
    fn every_name_reads_back_and_strangers_do_not() {
        for rank in [None, Some(0), Some(17)] {
            let id = IterationId::new(Split::Train, 12).with_rank(rank);
            assert_eq!(parse_name(Split::Train, &id.file_name()), Some((id, FileKind::Finished)));
            let journal = format!("{}.checkpoint", id.file_name());
            assert_eq!(parse_name(Split::Train, &journal), Some((id, FileKind::Journal)));
            let aside = format!("{journal}.20260101T000000Z");
            assert_eq!(parse_name(Split::Train, &aside), Some((id, FileKind::SetAside)));
            let beside = aside.rsplit_once('.').map(|(journal, _)| format!("{journal}.tasks.json"));
            assert_eq!(parse_name(Split::Train, &beside.unwrap()), None);
        }
        for stranger in ["train_trajectories.pt.iteration", "train_trajectories.pt.iteration+1", "x"] {
            assert_eq!(parse_name(Split::Train, stranger), None);
        }
        for stranger in ["train_trajectories.pt.iteration1.tmp", "train_trajectories.pt.iteration1_rank_"] {
            assert_eq!(parse_name(Split::Train, stranger), None);
        }
        assert_eq!(parse_name(Split::Test, "train_trajectories.pt.iteration1"), None);
    }

    #[test]
    fn the_next_iteration_is_one_more_than_the_highest_finished() {
        let (_guard, save_path) = fresh();
        assert_eq!(save_path.next_iteration(Split::Train, None).unwrap(), 0);
        touch(
            &save_path,
            Split::Train,
            &[
                "train_trajectories.pt.iteration2",
                "train_trajectories.pt.iteration10",
                "train_trajectories.pt.iteration11.checkpoint",
            ],
        );
        assert_eq!(save_path.next_iteration(Split::Train, None).unwrap(), 11);
        assert_eq!(save_path.next_iteration(Split::Test, None).unwrap(), 0);
    }

    #[test]
    fn a_rank_does_not_skip_an_iteration_that_another_rank_finished_first() {
        let (_guard, save_path) = fresh();
        touch(&save_path, Split::Test, &["test_trajectories.pt.iteration0_rank_1"]);
        assert_eq!(save_path.next_iteration(Split::Test, Some(0)).unwrap(), 0);
        assert_eq!(save_path.next_iteration(Split::Test, Some(1)).unwrap(), 1);
        assert_eq!(save_path.next_iteration(Split::Test, None).unwrap(), 1);
    }

    #[test]
    fn the_journal_to_resume_is_the_latest_unfinished_of_this_rank() {
        let (_guard, save_path) = fresh();
        touch(
            &save_path,
            Split::Train,
            &[
                "train_trajectories.pt.iteration3.checkpoint",
                "train_trajectories.pt.iteration4.checkpoint",
                "train_trajectories.pt.iteration4",
                "train_trajectories.pt.iteration5_rank_1.checkpoint",
                "train_trajectories.pt.iteration6.checkpoint.20260101T000000Z",
            ],
        );
        let found = |rank| save_path.unfinished_journal(Split::Train, rank).unwrap().map(|f| f.id.iteration);
        assert_eq!(found(None), Some(3));
        assert_eq!(found(Some(1)), Some(5));
        assert_eq!(found(Some(0)), None);
    }

    #[test]
    fn a_merged_file_hides_its_ranks() {
        let (_guard, save_path) = fresh();
        touch(
            &save_path,
            Split::Test,
            &[
                "test_trajectories.pt.iteration0_rank_0",
                "test_trajectories.pt.iteration0",
                "test_trajectories.pt.iteration1_rank_0",
                "test_trajectories.pt.iteration1_rank_1",
            ],
        );
        let ids: Vec<_> =
            save_path.finished(Split::Test).unwrap().iter().map(|f| (f.id.iteration, f.id.rank)).collect();
        assert_eq!(ids, [(0, None), (1, Some(0)), (1, Some(1))]);
    }

    #[test]
    fn images_are_found_after_the_save_path_moved() {
        let (_guard, save_path) = fresh();
        let image = save_path.images().join("task_0/step_000.png");
        std::fs::create_dir_all(image.parent().unwrap()).unwrap();
        std::fs::write(&image, b"x").unwrap();
        assert_eq!(save_path.resolve_image("/gone/elsewhere/images/task_0/step_000.png"), image);
        assert_eq!(save_path.resolve_image("images/task_0/step_000.png"), image);
        assert_eq!(save_path.resolve_image(&format!("file://{}", image.display())), image);
        assert_eq!(save_path.resolve_image("/gone/nothing.png"), Path::new("/gone/nothing.png"));
    }
}
