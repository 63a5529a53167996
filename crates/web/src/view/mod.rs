//! Saved trajectories for the viewer, read through `store`'s indexes: iterations, a light table of one, a trajectory in
//! full, its screenshots, the curves over iterations. Only reads; works while a run is writing.

mod catalogue;
mod detail;
mod error;
mod iteration;
mod pictures;
mod routes;
mod shelf;
mod table;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;

use store::{SavePath, Split, Summary};

pub use catalogue::{Card, Contents, IterationName, Overview, Sibling};
pub use error::ViewError;
pub use routes::{api, router};
pub use table::Table;

use catalogue::Catalogue;
use iteration::Entry;
use pictures::Pictures;
use shelf::Shelf;

use crate::plot::{Curves, TaskKey};

/// What an episode that is not over is called beside the outcomes.
const RUNNING: &str = "running";

fn outcome_of(summary: &Summary, entry: &Entry) -> &'static str {
    if entry.is_begun() { RUNNING } else { summary.outcome_or_inferred().as_str() }
}

/// A save path that somebody looks at. Its methods read files: call them where blocking is allowed.
#[derive(Clone, Debug)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shelf: Shelf,
    catalogue: Catalogue,
    pictures: Pictures,
}

impl View {
    /// `images` are folders beside the save path from which screenshots may be shown.
    pub fn new(save_path: SavePath, images: Vec<PathBuf>) -> Self {
        let pictures = Pictures::new(save_path.clone(), images);
        Self(Arc::new(Inner { shelf: Shelf::new(save_path), catalogue: Catalogue::default(), pictures }))
    }

    pub fn contents(&self) -> Result<Contents, ViewError> {
        Catalogue::contents(&self.0.shelf)
    }

    pub fn overview(&self, split: Split, iteration: u64) -> Result<Overview, ViewError> {
        self.0.catalogue.overview(&self.0.shelf, split, iteration)
    }

    pub fn curves(&self) -> Result<Curves, ViewError> {
        self.0.catalogue.curves(&self.0.shelf)
    }

    /// The other attempts at the task of a trajectory, and itself.
    pub fn siblings(&self, split: Split, iteration: u64, key: &str) -> Result<Vec<Sibling>, ViewError> {
        let opened = self.0.shelf.iteration(split, iteration)?;
        let entry = opened.find(key)?;
        let task = opened.summary(entry).map(TaskKey::of);
        task.map_or_else(|| Ok(Vec::new()), |task| self.0.catalogue.siblings(&self.0.shelf, task))
    }
}
