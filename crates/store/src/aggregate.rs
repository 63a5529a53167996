//! Merges the files of the ranks of an iteration into one, in the order of the trajectory indices. Says what is missing;
//! never puts anything in the place of a finished file unless told to. What a rank has finished counts, whether the
//! rank itself has finished or not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::durable::Existing;
use crate::iteration::{IterationFile, open_all};
use crate::layout::{FileKind, FoundFile, IterationId, SavePath, Split};
use crate::pt::{PtError, PtFile, PtWriter};
use crate::run::RunMetadata;

/// In the metadata of a run of several ranks: what tells it from every other.
pub const RUN_ID: &str = "run_id";
/// In the metadata of a trajectory that several collectors may have had: when it was finished.
pub const FINISHED_AT: &str = "finished_at";

#[derive(Clone, Debug, Default)]
pub struct AggregateOptions {
    /// How many ranks there must be; when not said, as many as the highest that left anything.
    pub ranks: Option<u32>,
    /// How many trajectories there must be; when not said, one more than the highest index. When all of them are
    /// there, it does not matter which rank has not finished.
    pub tasks: Option<u64>,
    /// Leave out files of other runs.
    pub run_id: Option<String>,
    /// Merge even though a rank is missing or still running.
    pub partial: bool,
    /// Replace a merged file that is there already.
    pub overwrite: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AggregateReport {
    pub path: PathBuf,
    pub ranks: Vec<u32>,
    pub trajectories: u64,
    pub missing_ranks: Vec<u32>,
    /// Ranks that have a journal but no finished file.
    pub unfinished_ranks: Vec<u32>,
    /// From – to, both included.
    pub missing_indices: Vec<(i64, i64)>,
    /// Indices that several ranks had; the first to be finished was taken, the lowest rank's if that is not known.
    pub repeated_indices: Vec<i64>,
    /// Files of another run that lay in the way.
    pub strangers: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("{split} iteration {iteration} has no files of ranks under {path}", path = path.display())]
    Nothing { split: Split, iteration: u64, path: PathBuf },
    #[error("{path} is there already; add --overwrite to replace it", path = path.display())]
    Exists { path: PathBuf },
    #[error(
        "not all ranks are done: missing {missing:?}, still running or cut short {unfinished:?}; resume those, or say so \
         to merge what is there"
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
        for (ranks, what) in [(&self.missing_ranks, "missing"), (&self.unfinished_ranks, "not finished")] {
            if !ranks.is_empty() {
                writeln!(out, "ranks {what}: {ranks:?}")?;
            }
        }
        for (runs, what) in [(&self.missing_indices, "missing"), (&runs(&self.repeated_indices), "repeated")]
        {
            if !runs.is_empty() {
                writeln!(out, "trajectory indices {what}: {}", words(runs))?;
            }
        }
        if !self.repeated_indices.is_empty() {
            let count = self.repeated_indices.len();
            writeln!(out, "{count} trajectories that another rank had finished before were dropped")?;
        }
        for path in &self.strangers {
            writeln!(out, "left out, of another run: {}", path.display())?;
        }
        Ok(())
    }
}

/// 1, 2, 3, 7 as 1–3 and 7–7.
fn runs(indices: &[i64]) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *index => *end = *index,
            _ => runs.push((*index, *index)),
        }
    }
    runs
}

fn words(runs: &[(i64, i64)]) -> String {
    let word = |(start, end): &(i64, i64)| {
        if start == end { start.to_string() } else { format!("{start}-{end}") }
    };
    runs.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What lies between the indices that are there, from 0 to `count`.
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

/// Which ranks of an iteration are where.
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

/// What the ranks of an iteration have on disk: finished files, and the journals of those that have none.
pub fn of_run(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let mut files: Vec<FoundFile> = save_path.files(split)?;
    files.retain(|file| file.id.iteration == iteration && file.kind != FileKind::SetAside);
    let several = files.iter().any(|file| file.id.rank.is_some());
    files.retain(|file| file.id.rank.is_some() == several);
    let finished: Vec<IterationId> =
        files.iter().filter(|file| file.kind == FileKind::Finished).map(|file| file.id).collect();
    files.retain(|file| file.kind == FileKind::Finished || !finished.contains(&file.id));
    Ok(files)
}

fn ranks_of_run(save_path: &SavePath, split: Split, iteration: u64) -> std::io::Result<Vec<FoundFile>> {
    let mut files = of_run(save_path, split, iteration)?;
    files.retain(|file| file.id.rank.is_some());
    Ok(files)
}

/// Merges what the ranks have finished. Once every trajectory is there, the plan of the run has done its duty.
pub fn aggregate(
    save_path: &SavePath,
    split: Split,
    iteration: u64,
    options: &AggregateOptions,
) -> Result<AggregateReport, AggregateError> {
    let path = save_path.iteration_file(IterationId::new(split, iteration));
    let listing = |error| PtError::io("list", &save_path.split_directory(split), error);
    let status = rank_status(save_path, split, iteration, options.ranks).map_err(listing)?;
    let files = open_all(save_path, split, || ranks_of_run(save_path, split, iteration), Indexed::open)?;
    let mut report = AggregateReport { path, ..AggregateReport::default() };
    let files = of_this_run(files, options, &mut report);
    if files.is_empty() {
        return Err(AggregateError::Nothing { split, iteration, path: save_path.root().to_path_buf() });
    }
    if report.path.exists() && !options.overwrite {
        return Err(AggregateError::Exists { path: report.path });
    }
    let places = places(&files, options, &mut report)?;
    let is_covered = options.tasks.is_some() && report.missing_indices.is_empty();
    let is_complete = is_covered || (status.missing.is_empty() && status.unfinished.is_empty());
    if !is_complete && !options.partial {
        return Err(AggregateError::Incomplete { missing: status.missing, unfinished: status.unfinished });
    }
    report.ranks = files.iter().filter_map(|file| file.rank).collect();
    (report.missing_ranks, report.unfinished_ranks) = (status.missing, status.unfinished);
    write(&files, &places, options, &mut report)?;
    if is_covered {
        // Left behind it would only make the iteration look unfinished.
        let _ = std::fs::remove_file(save_path.plan(split, iteration));
    }
    Ok(report)
}

fn of_this_run(
    files: Vec<Indexed>,
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Vec<Indexed> {
    let is_ours = |file: &Indexed| {
        let theirs = file.file.metadata().extra.get(RUN_ID).and_then(|id| id.as_str());
        theirs.is_none() || options.run_id.is_none() || theirs == options.run_id.as_deref()
    };
    let (ours, others): (Vec<_>, Vec<_>) = files.into_iter().partition(is_ours);
    report.strangers = others.iter().map(|file| file.file.path().to_path_buf()).collect();
    ours
}

/// Index → file and place. The files are in the order of the ranks.
type Places = BTreeMap<i64, (usize, usize)>;

fn places(
    files: &[Indexed],
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Result<Places, AggregateError> {
    let mut places = Places::new();
    for (number, file) in files.iter().enumerate() {
        for (position, summary) in file.file.summaries().iter().enumerate() {
            match places.entry(summary.trajectory_index) {
                Entry::Vacant(vacant) => _ = vacant.insert((number, position)),
                Entry::Occupied(mut there) => {
                    report.repeated_indices.push(summary.trajectory_index);
                    let (other, place) = *there.get();
                    if is_earlier(finished_at(file, position)?, finished_at(&files[other], place)?) {
                        there.insert((number, position));
                    }
                }
            }
        }
    }
    report.repeated_indices.sort_unstable();
    let count = options.tasks.and_then(|tasks| i64::try_from(tasks).ok()).unwrap_or(0);
    report.missing_indices = gaps(places.keys().copied(), count);
    Ok(places)
}

fn finished_at(file: &Indexed, position: usize) -> Result<Option<jiff::Timestamp>, PtError> {
    let trajectory = file.file.read(position)?;
    Ok(trajectory.metadata.extra.get(FINISHED_AT).and_then(|at| at.as_str()?.parse().ok()))
}

fn is_earlier(one: Option<jiff::Timestamp>, other: Option<jiff::Timestamp>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one < other)
}

fn write(
    files: &[Indexed],
    places: &Places,
    options: &AggregateOptions,
    report: &mut AggregateReport,
) -> Result<(), AggregateError> {
    let mut writer = PtWriter::create(&report.path)?;
    for (file, position) in places.values() {
        writer.push(&files[*file].file.read(*position)?)?;
    }
    report.trajectories = writer.len() as u64;
    let existing = if options.overwrite { Existing::Replace } else { Existing::Refuse };
    writer.finish(&merged_metadata(files), existing)?;
    Ok(())
}

/// That of the lowest rank, with the instances of all.
fn merged_metadata(files: &[Indexed]) -> RunMetadata {
    let sizes: Option<Vec<i64>> = files.iter().map(|file| file.file.metadata().server_size).collect();
    let mut metadata = files.first().map(|file| file.file.metadata().clone()).unwrap_or_default();
    metadata.server_size = sizes.map(|sizes| sizes.iter().sum()).or(metadata.server_size);
    metadata
}

/// A file that any trajectory can be read from directly. Files of the Python system are first written again as ours.
struct Indexed {
    file: IterationFile,
    rank: Option<u32>,
    temporary: Option<PathBuf>,
}

impl Indexed {
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

impl Drop for Indexed {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Left behind it would only take space; `check` names it.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_indices_are_written_short() {
        assert_eq!(words(&runs(&[0, 1, 2, 5, 7, 8])), "0-2, 5, 7-8");
        assert_eq!(words(&runs(&[])), "");
    }

    #[test]
    fn gaps_are_found_in_the_middle_and_up_to_the_count() {
        assert_eq!(gaps([0, 1, 4, 5].into_iter(), 8), [(2, 3), (6, 7)]);
        assert_eq!(gaps([0, 1].into_iter(), 0), []);
        assert_eq!(gaps([i64::MAX].into_iter(), 0), [(0, i64::MAX - 1)]);
        assert_eq!(gaps([].into_iter(), 3), [(0, 2)]);
    }
}
