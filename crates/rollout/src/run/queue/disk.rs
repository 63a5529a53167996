//! What all ranks of a run have on the shared disk: the last word on what is collected, also when Redis has forgotten.

use std::collections::BTreeSet;

use store::{IterationFile, IterationId, SavePath, aggregate};

/// Which trajectory indices are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) finished: BTreeSet<usize>,
    /// Begun by somebody, and not known to have been finished.
    pub(super) begun: BTreeSet<usize>,
}

/// The files of one run.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) save_path: SavePath,
    pub(super) id: IterationId,
    pub(super) run_id: String,
}

impl Disk {
    /// Reads what all ranks have written, or only one of them. Waits for the disk.
    pub(super) fn read(&self, only: Option<Option<u32>>) -> Result<OnDisk, String> {
        let files = aggregate::files_of_run(&self.save_path, self.id.split, self.id.iteration)
            .map_err(|error| error.to_string())?;
        let mut found = OnDisk::default();
        for file in files.iter().filter(|file| only.is_none_or(|rank| file.id.rank == rank)) {
            let file = match IterationFile::open_found(file) {
                Ok(file) => file,
                // A journal that has just become a finished file is read on the next occasion.
                Err(_) if !file.path.exists() => continue,
                Err(error) => return Err(error.to_string()),
            };
            if file.metadata().extra.get(aggregate::RUN_ID).and_then(|id| id.as_str()) != Some(&self.run_id) {
                continue;
            }
            let index = |index: i64| usize::try_from(index).ok();
            found.finished.extend(file.summaries().iter().filter_map(|one| index(one.trajectory_index)));
            let begun = file.scan().into_iter().flat_map(|scan| scan.unfinished.keys());
            found.begun.extend(begun.filter_map(|begun| index(*begun)));
        }
        Ok(found)
    }
}
