//! Random access to the trajectories of a rank file. Files of the Python system have no index and are converted to a
//! temporary file first.

use std::path::{Path, PathBuf};

use crate::durable::Existing;
use crate::iteration::IterationFile;
use crate::layout::{FileKind, FoundFile};
use crate::pt::{PtError, PtFile, PtWriter};

/// A rank file with random access to its trajectories.
pub(super) struct IndexedFile {
    pub(super) file: IterationFile,
    pub(super) found: FoundFile,
    temporary: Option<PathBuf>,
}

impl IndexedFile {
    pub(super) fn open(found: &FoundFile) -> Result<Self, PtError> {
        let path = found.path.as_path();
        if found.kind != FileKind::Finished {
            return Ok(Self {
                file: IterationFile::open_found(found)?,
                found: found.clone(),
                temporary: None,
            });
        }
        let original = PtFile::open(path)?;
        if original.entries().is_some() {
            return Ok(Self { file: IterationFile::open(path)?, found: found.clone(), temporary: None });
        }
        let temporary = convert(&original, path)?;
        Ok(Self { file: IterationFile::open(&temporary)?, found: found.clone(), temporary: Some(temporary) })
    }
}

/// Copies a file of the Python system to a temporary file with an index.
fn convert(original: &PtFile, path: &Path) -> Result<PathBuf, PtError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}-merge.tmp", std::process::id()));
    let mut writer = PtWriter::create(&temporary)?;
    let mut trajectories = original.trajectories()?;
    for trajectory in &mut trajectories {
        writer.push(&trajectory?)?;
    }
    writer.finish(&trajectories.metadata()?, Existing::Replace)?;
    Ok(temporary)
}

impl Drop for IndexedFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // A leftover file only takes space, and `webgym trajectories check` reports it.
            let _ = std::fs::remove_file(temporary);
        }
    }
}
