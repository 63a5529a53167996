//! The checkpoints of a save path: `checkpoints/iteration_N` for each iteration, and a link (`model.pt`) to the current one.

use std::io;
use std::path::{Path, PathBuf};

use store::SavePath;
use store::durable::sync_parent;

use super::CheckpointError;

/// The checkpoints of a save path.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    save_path: SavePath,
    /// The name of the link to the current checkpoint.
    link: String,
}

/// Whose folder the current checkpoint was before the loop replaced it by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedBy {
    Loop,
    /// A folder, as the original's scripts write it.
    Others,
}

impl Checkpoints {
    pub fn new(save_path: SavePath, link: &str) -> Self {
        Self { save_path, link: link.to_owned() }
    }

    pub fn link(&self) -> PathBuf {
        self.save_path.root().join(&self.link)
    }

    /// Where the checkpoint of an iteration is once it is verified.
    pub fn published(&self, iteration: u64) -> PathBuf {
        self.save_path.checkpoints().join(name(iteration))
    }

    /// Where the trainer writes.
    pub fn partial(&self, iteration: u64) -> PathBuf {
        self.save_path.checkpoints().join(format!("{}.partial", name(iteration)))
    }

    /// The path of a checkpoint relative to the save path.
    pub fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.save_path.root()).unwrap_or(path).to_owned()
    }

    /// Returns the current checkpoint, if there is one, and who wrote it.
    pub fn current(&self) -> Option<(PathBuf, PublishedBy)> {
        let link = self.link();
        match std::fs::read_link(&link) {
            Ok(target) => {
                let path = self.save_path.root().join(target);
                path.is_dir().then_some((path, PublishedBy::Loop))
            }
            Err(_) => link.is_dir().then_some((link, PublishedBy::Others)),
        }
    }

    /// Prepares an empty folder for the trainer's output.
    pub fn prepare_output(&self, iteration: u64, keep_partial: bool) -> Result<PathBuf, CheckpointError> {
        let output = self.partial(iteration);
        if !keep_partial {
            remove(&output)?;
        }
        std::fs::create_dir_all(&output).map_err(CheckpointError::io("create", &output))?;
        Ok(output)
    }

    /// Gives a verified checkpoint its final name, and removes the rest of the trainer's output.
    pub fn publish(&self, checkpoint: &Path, iteration: u64) -> Result<PathBuf, CheckpointError> {
        let (output, target) = (self.partial(iteration), self.published(iteration));
        sync_tree(checkpoint).map_err(CheckpointError::io("sync", checkpoint))?;
        std::fs::rename(checkpoint, &target).map_err(CheckpointError::io("rename", checkpoint))?;
        sync_parent(&target).map_err(CheckpointError::io("sync", &target))?;
        if checkpoint != output {
            remove(&output)?;
        }
        Ok(target)
    }

    /// Makes a checkpoint the current one. A reader of the link sees the old or the new one.
    pub fn switch_to(&self, checkpoint: &Path) -> Result<(), CheckpointError> {
        let link = self.link();
        self.keep_folder_of_others()?;
        replace_link(&link, &self.relative(checkpoint)).map_err(CheckpointError::io("replace", link))
    }

    /// Takes the link away: there is no checkpoint, only the first model.
    pub fn remove_link(&self) -> Result<(), CheckpointError> {
        let link = self.link();
        match std::fs::symlink_metadata(&link) {
            Ok(metadata) if metadata.is_symlink() => {
                std::fs::remove_file(&link).map_err(CheckpointError::io("remove", link))
            }
            _ => Ok(()),
        }
    }

    /// Moves a folder with the name of the link, which the original's scripts wrote, to the checkpoints.
    fn keep_folder_of_others(&self) -> Result<(), CheckpointError> {
        let Some((folder, PublishedBy::Others)) = self.current() else { return Ok(()) };
        let target = self.folder_of_others();
        std::fs::create_dir_all(self.save_path.checkpoints())
            .and_then(|()| std::fs::rename(&folder, &target))
            .map_err(CheckpointError::io("move", folder))
    }

    /// Where a folder of the original's scripts is kept.
    pub fn folder_of_others(&self) -> PathBuf {
        self.save_path.checkpoints().join("before_loop")
    }

    /// Sets a checkpoint aside that cannot be served. Returns its new path.
    pub fn set_aside(&self, iteration: u64) -> Result<PathBuf, CheckpointError> {
        let published = self.published(iteration);
        let free = |number: &u32| {
            let path = published.with_file_name(format!("{}.rejected_{number}", name(iteration)));
            (!path.exists()).then_some(path)
        };
        let target = (1..).find_map(|number| free(&number)).unwrap_or_else(|| published.clone());
        match std::fs::rename(&published, &target) {
            // It was set aside before the loop was killed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
            moved => moved.map(|()| target).map_err(CheckpointError::io("move", published)),
        }
    }

    /// Removes all but the latest `keep` published checkpoints; 0 keeps all.
    pub fn remove_old(&self, latest: u64, keep: usize) -> Result<(), CheckpointError> {
        if keep == 0 {
            return Ok(());
        }
        let current = self.current().map(|(path, _)| path);
        for iteration in 0..(latest + 1).saturating_sub(keep as u64) {
            let path = self.published(iteration);
            if Some(&path) != current.as_ref() {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Makes a link, or replaces it in one step.
pub(crate) fn replace_link(link: &Path, target: &Path) -> io::Result<()> {
    let name = link.file_name().unwrap_or_default().to_string_lossy();
    let temporary = link.with_file_name(format!(".{name}.new"));
    let _ = std::fs::remove_file(&temporary);
    std::os::unix::fs::symlink(target, &temporary)?;
    std::fs::rename(&temporary, link)?;
    sync_parent(link)
}

fn name(iteration: u64) -> String {
    format!("iteration_{iteration}")
}

fn remove(path: &Path) -> Result<(), CheckpointError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CheckpointError::Io { operation: "remove", path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Makes the files of a folder durable.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = std::fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            sync_tree(&path)?;
        } else if metadata.is_file() {
            std::fs::File::open(&path)?.sync_all()?;
        }
    }
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoints() -> (tempfile::TempDir, Checkpoints) {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(SavePath::new(folder.path()), "model.pt");
        (folder, checkpoints)
    }

    fn train(checkpoints: &Checkpoints, iteration: u64) -> PathBuf {
        let output = checkpoints.prepare_output(iteration, false).unwrap();
        std::fs::write(output.join("config.json"), iteration.to_string()).unwrap();
        checkpoints.publish(&output, iteration).unwrap()
    }

    #[test]
    fn link_follows_the_switch_and_the_rollback() {
        let (_folder, checkpoints) = checkpoints();
        assert_eq!(checkpoints.current(), None);
        let (first, second) = (train(&checkpoints, 0), train(&checkpoints, 1));
        checkpoints.switch_to(&first).unwrap();
        checkpoints.switch_to(&second).unwrap();
        assert_eq!(std::fs::read_to_string(checkpoints.link().join("config.json")).unwrap(), "1");
        checkpoints.switch_to(&first).unwrap();
        let aside = checkpoints.set_aside(1).unwrap();
        assert_eq!(checkpoints.current(), Some((first, PublishedBy::Loop)));
        assert!(aside.join("config.json").exists() && !second.exists(), "nothing is deleted");
    }

    #[test]
    fn folder_of_the_original_is_kept() {
        let (_folder, checkpoints) = checkpoints();
        std::fs::create_dir(checkpoints.link()).unwrap();
        std::fs::write(checkpoints.link().join("config.json"), "old").unwrap();
        assert_eq!(checkpoints.current(), Some((checkpoints.link(), PublishedBy::Others)));
        let published = train(&checkpoints, 1);
        checkpoints.switch_to(&published).unwrap();
        assert_eq!(checkpoints.current(), Some((published, PublishedBy::Loop)));
        let kept = std::fs::read_to_string(checkpoints.folder_of_others().join("config.json")).unwrap();
        assert_eq!(kept, "old");
    }

    #[test]
    fn nested_checkpoint_is_published_alone() {
        let (_folder, checkpoints) = checkpoints();
        let output = checkpoints.prepare_output(0, false).unwrap();
        let nested = output.join("checkpoint-2");
        std::fs::create_dir(&nested).unwrap();
        std::fs::write(nested.join("config.json"), "{}").unwrap();
        let published = checkpoints.publish(&nested, 0).unwrap();
        assert!(published.join("config.json").exists() && !output.exists());
    }

    #[test]
    fn old_checkpoints_are_removed_on_request_only() {
        let (_folder, checkpoints) = checkpoints();
        let paths: Vec<PathBuf> = (0..4).map(|iteration| train(&checkpoints, iteration)).collect();
        checkpoints.switch_to(&paths[0]).unwrap();
        checkpoints.remove_old(3, 0).unwrap();
        assert!(paths.iter().all(|path| path.exists()));
        checkpoints.remove_old(3, 2).unwrap();
        let left: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(left, [true, false, true, true], "the current one is never removed");
    }
}
