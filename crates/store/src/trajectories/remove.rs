//! Removes an iteration or some of its trajectories. The removal is planned first, so that it can be shown before it
//! is executed. Only screenshots below `images` of the save path are deleted.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::durable::sync_parent;
use crate::iteration::IterationFile;
use crate::journal::{JournalError, lock_existing};
use crate::layout::{FileKind, FoundFile, SavePath, Split};
use crate::pt::{self, PtError};

#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("{split} has no iteration {iteration}")]
    NoIteration { split: Split, iteration: u64 },
    #[error("{split} iteration {iteration} has no trajectory {index}")]
    NoSuchIndex { split: Split, iteration: u64, index: i64 },
    #[error("{path} is a journal; single trajectories can be removed once the run is finished", path = path.display())]
    Journal { path: PathBuf },
    #[error("cannot remove {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    File(#[from] PtError),
}

/// A planned removal.
#[derive(Clone, Debug)]
pub struct Removal {
    files: Vec<FoundFile>,
    /// The trajectories to remove; `None` removes the files.
    indices: Option<BTreeSet<i64>>,
    images: Vec<PathBuf>,
    pub trajectories: u64,
    pub image_bytes: u64,
}

/// Plans the removal of an iteration with all its files, or of the given trajectories.
pub fn plan_removal(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    indices: Option<&[i64]>,
) -> Result<Removal, RemoveError> {
    let directory = save_path.split_directory(split);
    let all = save_path.files(split).map_err(|source| RemoveError::Io { path: directory, source })?;
    let files: Vec<FoundFile> = all.into_iter().filter(|file| file.id.iteration == iteration).collect();
    if files.is_empty() {
        return Err(RemoveError::NoIteration { split, iteration });
    }
    let indices: Option<BTreeSet<i64>> = indices.map(|indices| indices.iter().copied().collect());
    if let Some(journal) =
        files.iter().find(|file| file.kind != FileKind::Finished).filter(|_| indices.is_some())
    {
        return Err(RemoveError::Journal { path: journal.path.clone() });
    }
    let mut removal = Removal { files, indices, images: Vec::new(), trajectories: 0, image_bytes: 0 };
    removal.collect(save_path, split, iteration)?;
    Ok(removal)
}

impl Removal {
    /// Collects the affected trajectories and screenshots.
    fn collect(&mut self, save_path: &SavePath, split: Split, iteration: u64) -> Result<(), RemoveError> {
        let images = save_path.images();
        let mut found = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for file in &self.files {
            for trajectory in IterationFile::open_found(file)?.trajectories()? {
                let trajectory = trajectory?;
                let index = trajectory.task.trajectory_index;
                if self.indices.as_ref().is_some_and(|indices| !indices.contains(&index)) {
                    continue;
                }
                found.insert(index);
                for step in &trajectory.steps {
                    let path = save_path.resolve_image(&step.observation.image_path);
                    if is_below(&path, &images) {
                        paths.insert(path);
                    }
                }
            }
        }
        if let Some(index) = self.indices.iter().flatten().find(|index| !found.contains(index)) {
            return Err(RemoveError::NoSuchIndex { split, iteration, index: *index });
        }
        self.trajectories = found.len() as u64;
        self.images = paths.into_iter().filter(|path| path.is_file()).collect();
        self.image_bytes =
            self.images.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum();
        Ok(())
    }

    /// Removes the trajectories, then their screenshots.
    pub fn execute(&self) -> Result<(), RemoveError> {
        for file in &self.files {
            match &self.indices {
                Some(indices) => {
                    pt::rewrite(&file.path, |trajectory| {
                        (!indices.contains(&trajectory.task.trajectory_index)).then_some(trajectory)
                    })?;
                }
                None => remove_file(file)?,
            }
        }
        for image in &self.images {
            std::fs::remove_file(image).map_err(|source| RemoveError::Io { path: image.clone(), source })?;
            // Fails if the directory still has other screenshots.
            let _ = image.parent().map(std::fs::remove_dir);
        }
        Ok(())
    }
}

fn remove_file(file: &FoundFile) -> Result<(), RemoveError> {
    // The lock prevents the removal of a journal that a process is writing.
    let _lock = match file.kind {
        FileKind::Finished => None,
        FileKind::Journal | FileKind::SetAside => {
            Some(lock_existing(&file.path).map_err(|error: JournalError| PtError::from(error))?)
        }
    };
    std::fs::remove_file(&file.path)
        .and_then(|()| sync_parent(&file.path))
        .map_err(|source| RemoveError::Io { path: file.path.clone(), source })
}

/// Whether a path is below a directory after resolving `..` and symbolic links.
fn is_below(path: &Path, directory: &Path) -> bool {
    match (path.canonicalize(), directory.canonicalize()) {
        (Ok(path), Ok(directory)) => path.starts_with(directory),
        _ => false,
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.indices.is_some() { "rewrite" } else { "delete" };
        for file in &self.files {
            writeln!(out, "{verb} {}", file.path.display())?;
        }
        writeln!(
            out,
            "{} trajectories, {} screenshots ({:.1} MiB)",
            self.trajectories,
            self.images.len(),
            self.image_bytes as f64 / f64::from(1 << 20)
        )
    }
}
