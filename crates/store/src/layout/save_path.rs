//! The directory that holds everything a run writes: paths inside it, and listings of its trajectory files.

use std::io;
use std::path::{Path, PathBuf};

use super::file_kind::{JOURNAL_SUFFIX, PLAN_SUFFIX, parse_file_name, set_aside_path};
use super::{FileKind, FoundFile, IterationId, Split};

/// The directory given as `save_path` in the configuration.
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

    /// The plan that the ranks of an iteration share.
    pub fn plan(&self, split: Split, iteration: u64) -> PathBuf {
        let name = format!("{}{PLAN_SUFFIX}", IterationId::new(split, iteration).file_name());
        self.split_directory(split).join(name)
    }

    /// Plans of iterations that ranks have started and that are not fully merged yet, sorted by iteration.
    pub fn plans(&self, split: Split) -> io::Result<Vec<(u64, PathBuf)>> {
        let plan =
            |(name, path): (String, PathBuf)| match parse_file_name(split, name.strip_suffix(PLAN_SUFFIX)?) {
                Some((IterationId { iteration, rank: None, .. }, FileKind::Finished)) => {
                    Some((iteration, path))
                }
                _ => None,
            };
        let mut found: Vec<_> = self.directory_entries(split)?.into_iter().filter_map(plan).collect();
        found.sort();
        Ok(found)
    }

    /// Names and paths in the directory of a split; empty if the directory does not exist.
    fn directory_entries(&self, split: Split) -> io::Result<Vec<(String, PathBuf)>> {
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

    /// State, logs and training data of a training loop.
    pub fn loop_directory(&self) -> PathBuf {
        self.0.join("loop")
    }

    /// The checkpoints that a training loop has trained.
    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints")
    }

    pub fn hyperparameters(&self) -> PathBuf {
        self.0.join("hyperparameters.yaml")
    }

    pub fn create_directories(&self, split: Split) -> io::Result<()> {
        std::fs::create_dir_all(self.images())?;
        std::fs::create_dir_all(self.split_directory(split))
    }

    /// The trajectory files of a split, sorted by iteration, rank and kind; empty if the directory does not exist.
    pub fn files(&self, split: Split) -> io::Result<Vec<FoundFile>> {
        let file = |(name, path): (String, PathBuf)| {
            parse_file_name(split, &name).map(|(id, kind)| FoundFile { id, kind, path })
        };
        let mut found: Vec<_> = self.directory_entries(split)?.into_iter().filter_map(file).collect();
        found.sort();
        Ok(found)
    }

    /// The finished files of a split. Rank files are left out once a merged file of their iteration exists.
    pub fn finished_files(&self, split: Split) -> io::Result<Vec<FoundFile>> {
        let mut finished: Vec<FoundFile> =
            self.files(split)?.into_iter().filter(|file| file.kind == FileKind::Finished).collect();
        let merged: Vec<u64> =
            finished.iter().filter(|file| file.id.rank.is_none()).map(|file| file.id.iteration).collect();
        finished.retain(|file| file.id.rank.is_none() || !merged.contains(&file.id.iteration));
        Ok(finished)
    }

    /// The number after the highest finished iteration. A rank counts only merged files and its own: other ranks of
    /// the same run may finish before this one starts.
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

    /// The journal to resume: that of the latest unfinished iteration. An iteration that was merged without this rank
    /// still has its plan, and is not finished for this rank.
    pub fn unfinished_journal(&self, split: Split, rank: Option<u32>) -> io::Result<Option<FoundFile>> {
        let files = self.files(split)?;
        let is_finished = |id: IterationId| {
            files.iter().any(|file| {
                file.kind == FileKind::Finished
                    && file.id.iteration == id.iteration
                    && (file.id.rank == id.rank
                        || (file.id.rank.is_none() && !self.plan(split, id.iteration).exists()))
            })
        };
        let is_resumable = |file: &&FoundFile| {
            file.kind == FileKind::Journal && file.id.rank == rank && !is_finished(file.id)
        };
        Ok(files.iter().rfind(is_resumable).cloned())
    }

    /// The path of a journal that was merged after its rank had died.
    pub fn merged_journal(&self, id: IterationId) -> PathBuf {
        set_aside_path(&self.journal(id), "merged")
    }

    /// The latest journal of a rank whose iteration was fully merged from what other ranks collected. It does not have
    /// to be resumed.
    pub fn superseded_journal(&self, split: Split, rank: u32) -> io::Result<Option<FoundFile>> {
        let files = self.files(split)?;
        let is_finished =
            |id: IterationId| files.iter().any(|file| file.kind == FileKind::Finished && file.id == id);
        let is_superseded = |file: &&FoundFile| {
            let merged = IterationId { rank: None, ..file.id };
            (file.kind == FileKind::Journal || file.path == self.merged_journal(file.id))
                && file.id.rank == Some(rank)
                && is_finished(merged)
                && !is_finished(file.id)
                && !self.plan(split, file.id.iteration).exists()
        };
        Ok(files.iter().rfind(is_superseded).cloned())
    }

    /// Renames unfinished collections of the Python system, which have the names of journals but are `PyTorch` files, so that
    /// their iterations can be collected. Returns the new paths.
    pub fn set_aside_unfinished_of_original(&self, split: Split) -> io::Result<Vec<PathBuf>> {
        let mut renamed = Vec::new();
        for file in self.files(split)?.into_iter().filter(|file| file.kind == FileKind::Journal) {
            if is_zip(&file.path)? {
                let target = set_aside_path(&file.path, "original");
                std::fs::rename(&file.path, &target)?;
                renamed.push(target);
            }
        }
        Ok(renamed)
    }

    /// The current path of a screenshot: the recorded one, or one below this save path if the directory was moved.
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

/// Whether a file begins like an archive, as `PyTorch` files do.
fn is_zip(path: &Path) -> io::Result<bool> {
    let mut start = [0; 4];
    match std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| start == *b"PK\x03\x04"),
    }
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

    fn temporary_save_path() -> (tempfile::TempDir, SavePath) {
        let directory = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(directory.path());
        (directory, save_path)
    }

    #[test]
    fn paths_match_the_python_system() {
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
    fn next_iteration_follows_the_highest_finished() {
        let (_directory, save_path) = temporary_save_path();
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
    fn next_iteration_ignores_other_ranks() {
        let (_directory, save_path) = temporary_save_path();
        touch(&save_path, Split::Test, &["test_trajectories.pt.iteration0_rank_1"]);
        assert_eq!(save_path.next_iteration(Split::Test, Some(0)).unwrap(), 0);
        assert_eq!(save_path.next_iteration(Split::Test, Some(1)).unwrap(), 1);
        assert_eq!(save_path.next_iteration(Split::Test, None).unwrap(), 1);
    }

    #[test]
    fn latest_unfinished_journal_of_the_rank_is_resumed() {
        let (_directory, save_path) = temporary_save_path();
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
        let found =
            |rank| save_path.unfinished_journal(Split::Train, rank).unwrap().map(|file| file.id.iteration);
        assert_eq!(found(None), Some(3));
        assert_eq!(found(Some(1)), Some(5));
        assert_eq!(found(Some(0)), None);
    }

    #[test]
    fn unfinished_collection_of_the_original_is_set_aside() {
        let (_directory, save_path) = temporary_save_path();
        let names =
            ["train_trajectories.pt.iteration2.checkpoint", "train_trajectories.pt.iteration3.checkpoint"];
        touch(&save_path, Split::Train, &names);
        let folder = save_path.split_directory(Split::Train);
        std::fs::write(folder.join(names[1]), b"PK\x03\x04 and more").unwrap();
        let renamed = save_path.set_aside_unfinished_of_original(Split::Train).unwrap();
        assert_eq!(renamed, [folder.join(format!("set_aside_{}.original", names[1]))]);
        let left = save_path.unfinished_journal(Split::Train, None).unwrap().unwrap();
        assert_eq!(left.id.iteration, 2, "a journal stays");
        assert_eq!(save_path.files(Split::Train).unwrap().last().unwrap().kind, FileKind::SetAside);
    }

    #[test]
    fn merged_file_hides_rank_files() {
        let (_directory, save_path) = temporary_save_path();
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
        let ids = save_path.finished_files(Split::Test).unwrap();
        let ids: Vec<_> = ids.iter().map(|file| (file.id.iteration, file.id.rank)).collect();
        assert_eq!(ids, [(0, None), (1, Some(0)), (1, Some(1))]);
    }

    #[test]
    fn images_are_found_after_the_save_path_moves() {
        let (_directory, save_path) = temporary_save_path();
        let image = save_path.images().join("task_0/step_000.png");
        std::fs::create_dir_all(image.parent().unwrap()).unwrap();
        std::fs::write(&image, b"x").unwrap();
        assert_eq!(save_path.resolve_image("/gone/elsewhere/images/task_0/step_000.png"), image);
        assert_eq!(save_path.resolve_image("images/task_0/step_000.png"), image);
        assert_eq!(save_path.resolve_image(&format!("file://{}", image.display())), image);
        assert_eq!(save_path.resolve_image("/gone/nothing.png"), Path::new("/gone/nothing.png"));
    }
}
