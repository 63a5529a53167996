//! The viewer of saved trajectories: iterations, the table of one iteration, complete trajectories, screenshots, and curves
//! over iterations. Reads files through `store`, never writes, and works while a run is writing.

mod cache;
mod detail;
mod error;
mod iteration;
mod overview;
mod recording;
mod routes;
mod screenshots;
mod table;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;

use store::metrics::TaskKey;
use store::{SavePath, Split, Summary};

pub use error::ViewError;
pub use overview::{Contents, IterationName, Overview, Sibling, TrajectoryResult};
pub use routes::{api, router};
pub use table::Table;

use cache::IterationCache;
use iteration::Entry;
use overview::Overviews;
use screenshots::Screenshots;

use crate::plot::{ChartOptions, Charts};

/// Shown in place of an outcome while an episode is running.
const RUNNING: &str = "running";

fn outcome_of(summary: &Summary, entry: &Entry) -> &'static str {
    if entry.is_running() { RUNNING } else { summary.outcome_or_inferred().as_str() }
}

/// A save path to view. The methods read files and block.
#[derive(Clone, Debug)]
pub struct View(Arc<ViewInner>);

#[derive(Debug)]
struct ViewInner {
    cache: IterationCache,
    overviews: Overviews,
    screenshots: Screenshots,
}

impl View {
    /// Creates a view of a save path. `image_folders` are folders outside it from which screenshots may be shown too.
    pub fn new(save_path: SavePath, image_folders: Vec<PathBuf>) -> Self {
        let screenshots = Screenshots::new(save_path.clone(), image_folders);
        Self(Arc::new(ViewInner {
            cache: IterationCache::new(save_path),
            overviews: Overviews::default(),
            screenshots,
        }))
    }

    pub fn contents(&self) -> Result<Contents, ViewError> {
        Overviews::contents(&self.0.cache)
    }

    pub fn overview(&self, split: Split, iteration: u64) -> Result<Overview, ViewError> {
        self.0.overviews.overview(&self.0.cache, split, iteration)
    }

    /// Returns messages about unreadable files and damaged lines of all iterations.
    pub fn problems(&self) -> Result<Vec<String>, ViewError> {
        self.0.overviews.problems(&self.0.cache)
    }

    pub fn charts(&self, options: ChartOptions) -> Result<Charts, ViewError> {
        self.0.overviews.charts(&self.0.cache, options)
    }

    /// Returns all trajectories with the same task as this one, including this one.
    pub fn siblings(&self, split: Split, iteration: u64, key: &str) -> Result<Vec<Sibling>, ViewError> {
        let opened = self.0.cache.iteration(split, iteration)?;
        let entry = opened.find(key)?;
        let task = opened.summary(entry).map(TaskKey::of);
        task.map_or_else(|| Ok(Vec::new()), |task| self.0.overviews.siblings(&self.0.cache, task))
    }
}
