//! Success rates of finished iterations. A rate is computed once for each iteration file, in small portions, so that the page
//! of a long loop appears at once.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;
use store::{SavePath, Split, metrics};

/// How long one reading may compute; the rest follows with the next.
const BUDGET: Duration = Duration::from_millis(400);

/// The success of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Success {
    pub split: Split,
    pub iteration: u64,
    /// Trajectories that count: neither lost nor blocked.
    pub scored: u64,
    pub successes: u64,
}

/// Size and time of a file, which show that it was replaced.
type Stamp = (u64, Option<SystemTime>);

#[derive(Debug, Default)]
pub(super) struct SuccessRates {
    /// `None` for a file that cannot be read.
    known: HashMap<(Split, u64), (Stamp, Option<Success>)>,
}

impl SuccessRates {
    /// Returns the success of all finished iterations that are known by now, sorted by split and iteration.
    pub(super) fn of_save_path(&mut self, save_path: &SavePath) -> Vec<Success> {
        let end = Instant::now() + BUDGET;
        let mut found = Vec::new();
        for split in Split::ALL {
            let files = save_path.finished_files(split).unwrap_or_default();
            for file in files.iter().filter(|file| file.id.rank.is_none()) {
                let key = (split, file.id.iteration);
                let stamp = stamp(&file.path);
                let is_known = self.known.get(&key).is_some_and(|(known, _)| *known == stamp);
                if !is_known && Instant::now() < end {
                    self.known.insert(key, (stamp, compute(save_path, split, file.id.iteration)));
                }
                found.extend(self.known.get(&key).and_then(|(_, success)| success.clone()));
            }
        }
        found
    }
}

fn stamp(path: &Path) -> Stamp {
    path.metadata().map_or((0, None), |metadata| (metadata.len(), metadata.modified().ok()))
}

fn compute(save_path: &SavePath, split: Split, iteration: u64) -> Option<Success> {
    let metrics = metrics::of_iteration(save_path, split, iteration).ok()?.breakdown.overall;
    Some(Success { split, iteration, scored: metrics.scored, successes: metrics.successes })
}
