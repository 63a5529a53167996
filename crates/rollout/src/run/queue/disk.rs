//! Reads from the shared disk what all ranks of a run have collected. The disk is authoritative; Redis may lose its data.

use std::collections::BTreeSet;

use store::{IterationFile, IterationId, SavePath, aggregate};

/// The trajectory indices found on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundIndices {
    pub(super) finished: BTreeSet<usize>,
    /// Started by some rank and not known to be finished.
    pub(super) started: BTreeSet<usize>,
}

/// The files of one run.
#[derive(Clone, Debug)]
pub(super) struct RunFiles {
    pub(super) save_path: SavePath,
    pub(super) id: IterationId,
    pub(super) run_id: String,
}

impl RunFiles {
    /// Reads the files of all ranks. Blocks on the disk.
    pub(super) fn read_all(&self) -> Result<FoundIndices, String> {
        self.read(|_| true)
    }

    /// Reads the files of one rank. Blocks on the disk.
    pub(super) fn read_rank(&self, rank: Option<u32>) -> Result<FoundIndices, String> {
        self.read(|found| found == rank)
    }

    fn read(&self, includes: impl Fn(Option<u32>) -> bool) -> Result<FoundIndices, String> {
        let files = aggregate::files_of_run(&self.save_path, self.id.split, self.id.iteration)
            .map_err(|error| error.to_string())?;
        let mut found = FoundIndices::default();
        for file in files.iter().filter(|file| includes(file.id.rank)) {
            let file = match IterationFile::open_found(file) {
                Ok(file) => file,
                // The journal has just become a finished file, which the next call reads.
                Err(_) if !file.path.exists() => continue,
                Err(error) => return Err(error.to_string()),
            };
            if file.metadata().extra.get(aggregate::RUN_ID).and_then(|id| id.as_str()) != Some(&self.run_id) {
                continue;
            }
            let index = |index: i64| usize::try_from(index).ok();
            let summaries = file.summaries().iter();
            found.finished.extend(summaries.filter_map(|summary| index(summary.trajectory_index)));
            let started = file.scan().into_iter().flat_map(|scan| scan.unfinished.keys());
            found.started.extend(started.filter_map(|started| index(*started)));
        }
        Ok(found)
    }
}
