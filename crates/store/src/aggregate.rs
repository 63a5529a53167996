//! Merges the rank files of an iteration into one file, in the order of the trajectory indices, and reports what is
//! missing. Finished trajectories count even if their rank has not finished. An existing file is replaced only on
//! request.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::durable::Existing;
use crate::iteration::{IterationFile, open_all};
use crate::layout::{FileKind, FoundFile, IterationId, SavePath, Split};
use crate::pt::{PtError, PtFile, PtWriter};
use crate::run_record::RunMetadata;

/// Metadata key of a run with several ranks: the unique id of the run.
pub const RUN_ID: &str = "run_id";
/// Metadata key of a trajectory that several ranks may have collected: when it was finished.
pub const FINISHED_AT: &str = "finished_at";

#[derive(Clone, Debug, Default)]
pub struct AggregateOptions {
    /// The expected number of ranks; by default, the highest rank with a file plus one.
    pub ranks: Option<u32>,
    /// The expected number of trajectories; by default, the highest index plus one. If this is given and none is
    /// missing, unfinished ranks do not prevent the merge.
    pub tasks: Option<u64>,
    /// Skip files of runs with another id.
    pub run_id: Option<String>,
    /// Merge even if ranks are missing or still running.
    pub partial: bool,
    /// Replace an existing merged file.
    pub overwrite: bool,
}

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
}

#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("{split} iteration {iteration} has no rank files under {path}", path = path.display())]
    NoFiles { split: Split, iteration: u64, path: PathBuf },
    #[error("{path} already exists; add --overwrite to replace it", path = path.display())]
    Exists { path: PathBuf },
    #[error(
        "not all ranks have finished: missing {missing:?}, running or interrupted {unfinished:?}; resume them, or add \
         --partial to merge what exists"
    )]
    Incomplete { missing: Vec<u32>, unfinished: Vec<u32> },
    #[error(transparent)]
    File(#[from] PtError),
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
        Ok(())
    }
}

/// Groups sorted indices into inclusive ranges: 1, 2, 3, 7 becomes 1–3 and 7–7.
fn ranges(indices: &[i64]) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for index in indices {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *index => *end = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    ranges
}

fn format_ranges(ranges: &[(i64, i64)]) -> String {
    let format_range = |(start, end): &(i64, i64)| {
        if start == end { start.to_string() } else { format!("{start}-{end}") }
    };
    ranges.iter().map(format_range).collect::<Vec<_>>().join(", ")
}

/// The ranges missing from sorted `indices`, which should be 0 to `count` - 1.
fn gaps(indices: impl Iterator<Item = i64>, count: i64) -> Vec<(i64, i64)> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for index in indices.chain([count]) {
        if index > next {
            gaps.push((next, index - 1));
        }
        next = next.max(index.saturating_add(1));
    }
    gaps
}

/// The progress of the ranks of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankStatus {
    pub finished: Vec<FoundFile>,
    pub unfinished: Vec<u32>,
    pub missing: Vec<u32>,
}

pub fn rank_status(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    ranks: Option<u32>,
) -> std::io::Result<RankStatus> {
    let files: Vec<FoundFile> =
        save_path.files(split)?.into_iter().filter(|file| file.id.iteration == iteration).collect();
    let with = |kind: FileKind| files.iter().filter(move |file| file.kind == kind && file.id.rank.is_some());
    let finished: Vec<FoundFile> = with(FileKind::Finished).cloned().collect();
    let is_finished = |rank: u32| finished.iter().any(|file| file.id.rank == Some(rank));
    let unfinished: Vec<u32> =
        with(FileKind::Journal).filter_map(|file| file.id.rank).filter(|rank| !is_finished(*rank)).collect();
    let highest = files.iter().filter_map(|file| file.id.rank).max();
    let count = ranks.or(highest.map(|rank| rank + 1)).unwrap_or(0);
    let missing = (0..count).filter(|rank| !is_finished(*rank) && !unfinished.contains(rank)).collect();
    Ok(RankStatus { finished, unfinished, missing })
}

/// The files of an iteration before merging: finished files, and journals of ranks without one. A run without ranks
/// has a single file.
pub fn files_of_run(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let mut files: Vec<FoundFile> = save_path.files(split)?;
    files.retain(|file| file.id.iteration == iteration && file.kind != FileKind::SetAside);
    let has_ranks = files.iter().any(|file| file.id.rank.is_some());
    files.retain(|file| file.id.rank.is_some() == has_ranks);
    let finished: Vec<IterationId> =
        files.iter().filter(|file| file.kind == FileKind::Finished).map(|file| file.id).collect();
    files.retain(|file| file.kind == FileKind::Finished || !finished.contains(&file.id));
    Ok(files)
}

fn rank_files(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let mut files = files_of_run(save_path, split, iteration)?;
    files.retain(|file| file.id.rank.is_some());
    Ok(files)
}

/// Merges the finished trajectories of all ranks. Removes the plan of the run once no trajectory is missing.
pub fn aggregate(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    options: &AggregateOptions,
) -> Result<AggregateReport, AggregateError> {
    let path = save_path.iteration_file(IterationId::new(split, iteration));
    let list_error = |error| PtError::io("list", &save_path.split_directory(split), error);
    let status = rank_status(save_path, split, iteration, options.ranks).map_err(list_error)?;
    let files = open_all(save_path, split, || rank_files(save_path, split, iteration), IndexedFile::open)?;
    let mut report = AggregateReport { path, ..AggregateReport::default() };
    let files = skip_other_runs(files, options, &mut report);
    if files.is_empty() {
        return Err(AggregateError::NoFiles { split, iteration, path: save_path.root().to_path_buf() });
    }
    if report.path.exists() && !options.overwrite {
        return Err(AggregateError::Exists { path: report.path });
    }
    let sources = select_sources(&files, options, &mut report)?;
    let is_covered = options.tasks.is_some() && report.missing_indices.is_empty();
    let is_complete = is_covered || (status.missing.is_empty() && status.unfinished.is_empty());
    if !is_complete && !options.partial {
        return Err(AggregateError::Incomplete { missing: status.missing, unfinished: status.unfinished });
    }
    report.ranks = files.iter().filter_map(|file| file.rank).collect();
    (report.missing_ranks, report.unfinished_ranks) = (status.missing, status.unfinished);
    write_merged(&files, &sources, options, &mut report)?;
    if is_covered {
        // A leftover plan would make the iteration look unfinished; failing to remove it is not fatal.
        let _ = std::fs::remove_file(save_path.plan(split, iteration));
    }
    Ok(report)
}

fn skip_other_runs(
    files: Vec<IndexedFile>,
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Vec<IndexedFile> {
    let is_same_run = |file: &IndexedFile| {
        let run_id = file.file.metadata().extra.get(RUN_ID).and_then(|id| id.as_str());
        run_id.is_none() || options.run_id.is_none() || run_id == options.run_id.as_deref()
    };
    let (same_run, others): (Vec<_>, Vec<_>) = files.into_iter().partition(is_same_run);
    report.other_runs = others.iter().map(|file| file.file.path().to_path_buf()).collect();
    same_run
}

/// Maps each trajectory index to its file and its position in that file. Files are in the order of the ranks.
type Sources = BTreeMap<i64, (usize, usize)>;

fn select_sources(
    files: &[IndexedFile],
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Result<Sources, AggregateError> {
    let mut sources = Sources::new();
    for (number, file) in files.iter().enumerate() {
        for (position, summary) in file.file.summaries().iter().enumerate() {
            match sources.entry(summary.trajectory_index) {
                Entry::Vacant(vacant) => _ = vacant.insert((number, position)),
                Entry::Occupied(mut occupied) => {
                    report.repeated_indices.push(summary.trajectory_index);
                    let (other_file, other_position) = *occupied.get();
                    let other = finished_at(&files[other_file], other_position)?;
                    if is_earlier(finished_at(file, position)?, other) {
                        occupied.insert((number, position));
                    }
                }
            }
        }
    }
    report.repeated_indices.sort_unstable();
    let count = options.tasks.and_then(|tasks| i64::try_from(tasks).ok()).unwrap_or(0);
    report.missing_indices = gaps(sources.keys().copied(), count);
    Ok(sources)
}

fn finished_at(file: &IndexedFile, position: usize) -> Result<Option<jiff::Timestamp>, PtError> {
    let trajectory = file.file.read(position)?;
    Ok(trajectory.metadata.extra.get(FINISHED_AT).and_then(|time| time.as_str()?.parse().ok()))
}

/// Whether both times are known and `first` is before `second`.
fn is_earlier(first: Option<jiff::Timestamp>, second: Option<jiff::Timestamp>) -> bool {
    matches!((first, second), (Some(first), Some(second)) if first < second)
}

fn write_merged(
    files: &[IndexedFile],
    sources: &Sources,
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Result<(), AggregateError> {
    let mut writer = PtWriter::create(&report.path)?;
    for (file, position) in sources.values() {
        writer.push(&files[*file].file.read(*position)?)?;
    }
    report.trajectories = writer.len() as u64;
    let existing = if options.overwrite { Existing::Replace } else { Existing::Refuse };
    writer.finish(&merged_metadata(files), existing)?;
    Ok(())
}

/// The metadata of the lowest rank, with the sum of the instances of all ranks.
fn merged_metadata(files: &[IndexedFile]) -> RunMetadata {
    let sizes: Option<Vec<i64>> = files.iter().map(|file| file.file.metadata().server_size).collect();
    let mut metadata = files.first().map(|file| file.file.metadata().clone()).unwrap_or_default();
    metadata.server_size = sizes.map(|sizes| sizes.iter().sum()).or(metadata.server_size);
    metadata
}

/// A file with random access to its trajectories. Files of the Python system are converted to a temporary file first.
struct IndexedFile {
    file: IterationFile,
    rank: Option<u32>,
    temporary: Option<PathBuf>,
}

impl IndexedFile {
    fn open(found: &FoundFile) -> Result<Self, PtError> {
        let (path, rank) = (found.path.as_path(), found.id.rank);
        if found.kind != FileKind::Finished {
            return Ok(Self { file: IterationFile::open_found(found)?, rank, temporary: None });
        }
        let original = PtFile::open(path)?;
        if original.entries().is_some() {
            return Ok(Self { file: IterationFile::open(path)?, rank, temporary: None });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}-merge.tmp", std::process::id()));
        let mut writer = PtWriter::create(&temporary)?;
        let mut trajectories = original.trajectories()?;
        for trajectory in &mut trajectories {
            writer.push(&trajectory?)?;
        }
        writer.finish(&trajectories.metadata()?, Existing::Replace)?;
        Ok(Self { file: IterationFile::open(&temporary)?, rank, temporary: Some(temporary) })
    }
}

impl Drop for IndexedFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // A leftover file only takes space, and `webgym trajectories check` reports it.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_indices_become_ranges() {
        assert_eq!(format_ranges(&ranges(&[0, 1, 2, 5, 7, 8])), "0-2, 5, 7-8");
        assert_eq!(format_ranges(&ranges(&[])), "");
    }

    #[test]
    fn gaps_include_the_end_up_to_the_count() {
        assert_eq!(gaps([0, 1, 4, 5].into_iter(), 8), [(2, 3), (6, 7)]);
        assert_eq!(gaps([0, 1].into_iter(), 0), []);
        assert_eq!(gaps([i64::MAX].into_iter(), 0), [(0, i64::MAX - 1)]);
        assert_eq!(gaps([].into_iter(), 3), [(0, 2)]);
    }
}
