//! Merges rank files: selects the source of every trajectory index and writes the merged file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

use super::index_ranges::gaps;
use super::indexed_file::IndexedFile;
use super::rank_status::{rank_files, rank_status};
use super::{AggregateError, AggregateOptions, AggregateReport, FINISHED_AT, MERGED_RANKS, RUN_ID};
use crate::durable::Existing;
use crate::iteration::open_all;
use crate::layout::{FileKind, IterationId, SavePath, Split, acknowledged_path, selection_path};
use crate::pt::{PtError, PtWriter};
use crate::run_record::RunMetadata;

/// Merges the finished trajectories of all ranks. Once no trajectory is missing, removes the plan of the run and the rank
/// files, which other tools would count again.
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
    report.ranks = files.iter().filter_map(|file| file.found.id.rank).collect();
    (report.missing_ranks, report.unfinished_ranks) = (status.missing, status.unfinished);
    write_merged(&files, &sources, options, &mut report)?;
    if is_covered {
        // A leftover plan would make the iteration look unfinished; failing to remove it is not fatal.
        let _ = std::fs::remove_file(save_path.plan(split, iteration));
    }
    if is_complete && report.missing_indices.is_empty() {
        report.not_removed = remove_rank_files(save_path, &files);
    }
    Ok(report)
}

/// Removes the merged files of the ranks. Returns those that could not be removed. The journal of a rank that died is set
/// aside, so that the rank learns about the merge when it is started again. A journal in use is left to its rank.
fn remove_rank_files(save_path: &SavePath, files: &[IndexedFile]) -> Vec<PathBuf> {
    let mut not_removed = Vec::new();
    for found in files.iter().map(|file| &file.found) {
        let removed = match found.kind {
            FileKind::Finished => std::fs::remove_file(&found.path),
            FileKind::Journal if !crate::journal::is_being_written(&found.path) => {
                let _ = std::fs::remove_file(selection_path(&found.path));
                let _ = std::fs::remove_file(acknowledged_path(&found.path));
                std::fs::rename(&found.path, save_path.merged_journal(found.id))
            }
            FileKind::Journal | FileKind::SetAside => Ok(()),
        };
        if removed.is_err() {
            not_removed.push(found.path.clone());
        }
    }
    not_removed
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

/// The metadata of the lowest rank, with the sum of the instances of all ranks, and the ranks.
fn merged_metadata(files: &[IndexedFile]) -> RunMetadata {
    let sizes: Option<Vec<i64>> = files.iter().map(|file| file.file.metadata().server_size).collect();
    let mut metadata = files.first().map(|file| file.file.metadata().clone()).unwrap_or_default();
    metadata.server_size = sizes.map(|sizes| sizes.iter().sum()).or(metadata.server_size);
    metadata.extra.insert("num_ranks_aggregated".to_owned(), files.len().into());
    let ranks: Vec<u32> = files.iter().filter_map(|file| file.found.id.rank).collect();
    metadata.extra.insert(MERGED_RANKS.to_owned(), ranks.into());
    metadata
}
