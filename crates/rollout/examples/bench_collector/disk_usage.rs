//! What a run occupies on disk, before and after its iteration is finished.

use std::{collections::HashMap, os::unix::fs::MetadataExt, path::Path};

use store::{IterationId, SavePath};

/// Bytes on disk.
pub(crate) struct DiskUsage {
    pub(crate) screenshots: f64,
    pub(crate) journal: f64,
    /// The file of the iteration, which replaces the journal.
    pub(crate) iteration_file: f64,
    /// CPU seconds for writing the file of the iteration.
    pub(crate) cpu: f64,
}

impl DiskUsage {
    /// Measures a run, and finishes its iteration.
    pub(crate) fn of(root: &Path) -> Self {
        let (save_path, id) = (SavePath::new(root), IterationId::new(store::Split::Train, 0));
        let (screenshots, journal) = (allocated(&save_path.images()), allocated(&save_path.journal(id)));
        let since = crate::cpu();
        let file = store::finish_iteration(&save_path, id).unwrap().path;
        Self { screenshots, journal, iteration_file: allocated(&file), cpu: crate::cpu() - since }
    }
}

/// Returns the size of a file, or of all files in a folder, each counted once if it has several names.
fn allocated(path: &Path) -> f64 {
    fn add(path: &Path, counted: &mut HashMap<u64, u64>) {
        let metadata = path.symlink_metadata().unwrap();
        counted.insert(metadata.ino(), metadata.blocks() * 512);
        if metadata.is_dir() {
            path.read_dir().unwrap().for_each(|entry| add(&entry.unwrap().path(), counted));
        }
    }
    let mut counted = HashMap::new();
    add(path, &mut counted);
    counted.values().sum::<u64>() as f64
}
