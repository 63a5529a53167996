//! The result of a merge, and its text for the user.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::index_ranges::{format_ranges, ranges};

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AggregateReport {
    pub path: PathBuf,
    pub ranks: Vec<u32>,
    pub trajectories: u64,
    pub missing_ranks: Vec<u32>,
    /// Ranks that have a journal but no finished file.
    pub unfinished_ranks: Vec<u32>,
    /// Inclusive ranges.
    pub missing_indices: Vec<(i64, i64)>,
    /// Indices that several ranks collected. The trajectory that finished first is kept, or the one of the lowest
    /// rank if the times are unknown.
    pub repeated_indices: Vec<i64>,
    /// Skipped files of other runs.
    pub other_runs: Vec<PathBuf>,
    /// Merged files that could not be removed.
    pub not_removed: Vec<PathBuf>,
}

impl fmt::Display for AggregateReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} trajectories of ranks {:?} in {}",
            self.trajectories,
            self.ranks,
            self.path.display()
        )?;
        for (ranks, label) in [(&self.missing_ranks, "missing"), (&self.unfinished_ranks, "not finished")] {
            if !ranks.is_empty() {
                writeln!(out, "ranks {label}: {ranks:?}")?;
            }
        }
        let repeated = ranges(&self.repeated_indices);
        for (ranges, label) in [(&self.missing_indices, "missing"), (&repeated, "repeated")] {
            if !ranges.is_empty() {
                writeln!(out, "trajectory indices {label}: {}", format_ranges(ranges))?;
            }
        }
        if !self.repeated_indices.is_empty() {
            let count = self.repeated_indices.len();
            writeln!(out, "{count} trajectories were dropped because another rank finished them earlier")?;
        }
        for path in &self.other_runs {
            writeln!(out, "skipped, belongs to another run: {}", path.display())?;
        }
        for path in &self.not_removed {
            writeln!(out, "merged, but could not be removed: {}", path.display())?;
        }
        Ok(())
    }
}
