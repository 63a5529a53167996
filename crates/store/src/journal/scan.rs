//! Scans a journal without keeping trajectories in memory: which trajectories are finished and where their records
//! are, which episodes were running, which lines are damaged and where the valid part ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Component, Path};

use proto::trajectory::{Trajectory, TrajectoryMetadata};

use super::reader::LineError;
use super::record::LightRecord;
use super::{FORMAT, FinishedPosition, JournalError, JournalReader, Record};
use crate::prompts::Prompts;
use crate::run_record::RunRecord;
use crate::summary::Summary;

/// The summary of a finished trajectory and the position of its record.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedRecord {
    pub offset: u64,
    pub length: u64,
    pub summary: Summary,
}

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLine {
    pub line: u64,
    pub offset: u64,
    pub reason: String,
}

/// An episode that started and did not finish: its latest attempt and the number of steps recorded for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedEpisode {
    pub attempt: u32,
    pub steps: u64,
}

/// What a journal contains.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub run: Option<RunRecord>,
    /// The format version of the journal.
    pub(super) format: u32,
    /// Finished trajectories by index. If an index has several records, the last one counts.
    pub finished: BTreeMap<i64, LocatedRecord>,
    /// Indices with more than one finished record, for example after a second judgment.
    pub repeated: Vec<i64>,
    pub unfinished: BTreeMap<i64, UnfinishedEpisode>,
    /// Summaries of the unfinished episodes; they have only the task and the number of steps.
    pub unfinished_summaries: BTreeMap<i64, Summary>,
    /// Names of the screenshot folders of all attempts, finished or not.
    pub images: BTreeSet<String>,
    /// Unknown or misplaced records, and corrupt lines before the last intact one.
    pub damaged: Vec<DamagedLine>,
    /// The first corrupt line after the last intact one: an interrupted write.
    pub torn_tail: Option<DamagedLine>,
    /// The end of the last intact line.
    pub valid_length: u64,
    pub file_length: u64,
}

/// Reads the journal at `path` once. Memory use grows only with the number of summaries.
pub fn scan(path: &Path) -> Result<Scan, JournalError> {
    scan_reader(JournalReader::open(path)?)
}

pub(super) fn scan_file(file: File, path: &Path) -> Result<Scan, JournalError> {
    scan_reader(JournalReader::from_file(file, path))
}

fn scan_reader(mut reader: JournalReader) -> Result<Scan, JournalError> {
    let mut scan = Scan::default();
    let mut corrupt = Vec::new();
    let mut line = 0;
    while let Some(entry) = reader.next_entry::<LightRecord>()? {
        line += 1;
        scan.file_length = entry.offset + entry.length;
        let damaged_line =
            |error: &LineError| DamagedLine { line, offset: entry.offset, reason: error.to_string() };
        match entry.record {
            Err(error @ LineError::Corrupt(_)) => {
                corrupt.push(damaged_line(&error));
                continue;
            }
            Err(error @ LineError::Unknown(_)) => {
                let unknown = damaged_line(&error);
                scan.damaged.append(&mut corrupt);
                scan.damaged.push(unknown);
            }
            Ok(record) => {
                scan.damaged.append(&mut corrupt);
                scan.add(record, line, entry.offset, entry.length);
            }
        }
        scan.valid_length = scan.file_length;
    }
    scan.torn_tail = corrupt.into_iter().next();
    Ok(scan)
}

impl Scan {
    fn add(&mut self, record: LightRecord, line: u64, offset: u64, length: u64) {
        match record {
            LightRecord::Run(header) if line == 1 && header.format <= FORMAT => {
                self.format = header.format;
                self.run = Some(header.run);
            }
            LightRecord::Run(header) => {
                let reason = format!("unexpected run record of format {}", header.format);
                self.damaged.push(DamagedLine { line, offset, reason });
            }
            LightRecord::Episode { trajectory_index, attempt, task, images } => {
                self.images.extend(images);
                self.unfinished_summaries.insert(trajectory_index, Summary { trajectory_index, ..*task });
                self.unfinished.insert(trajectory_index, UnfinishedEpisode { attempt, steps: 0 });
            }
            LightRecord::Step { trajectory_index, attempt } => {
                let episode = self
                    .unfinished
                    .entry(trajectory_index)
                    .and_modify(|episode| {
                        if episode.attempt != attempt {
                            *episode = UnfinishedEpisode { attempt, steps: 0 };
                        }
                    })
                    .or_insert(UnfinishedEpisode { attempt, steps: 0 });
                episode.steps += 1;
                if let Some(summary) = self.unfinished_summaries.get_mut(&trajectory_index) {
                    summary.steps = episode.steps;
                }
            }
            LightRecord::Finished { summary } => {
                let index = summary.trajectory_index;
                self.unfinished.remove(&index);
                self.unfinished_summaries.remove(&index);
                let located = LocatedRecord { offset, length, summary: *summary };
                if self.finished.insert(index, located).is_some() && !self.repeated.contains(&index) {
                    self.repeated.push(index);
                }
            }
        }
    }

    /// Names of screenshot folders that no finished trajectory refers to: those of interrupted attempts.
    pub fn abandoned_images(&self) -> Vec<&str> {
        let folders = self.finished.values().filter_map(|record| record.summary.image_directory.as_deref());
        let used: BTreeSet<_> = folders.filter_map(|folder| Path::new(folder).file_name()).collect();
        // A journal from elsewhere could name a path outside of `images/`.
        let is_single_component = |name: &str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        let names = self.images.iter().map(String::as_str);
        names
            .filter(|name| is_single_component(name) && !used.contains(Path::new(name).as_os_str()))
            .collect()
    }

    pub fn is_complete(&self) -> bool {
        self.run.as_ref().is_some_and(|run| self.finished.len() as u64 >= run.tasks)
    }
}

/// Reads an unfinished episode: its task and the steps of its latest attempt. Returns `None` if it never started or is
/// finished.
pub fn read_unfinished(path: &Path, trajectory_index: i64) -> Result<Option<Trajectory>, JournalError> {
    let mut found: Option<Trajectory> = None;
    let mut attempt = 0;
    let mut prompts = Prompts::default();
    for entry in JournalReader::open(path)? {
        match entry?.record {
            Ok(Record::Episode(episode)) if episode.trajectory_index == trajectory_index => {
                attempt = episode.attempt;
                prompts = Prompts::default();
                let metadata = TrajectoryMetadata::default();
                found = Some(Trajectory { task: episode.task, steps: Vec::new(), metadata });
            }
            Ok(Record::Step(step))
                if step.trajectory_index == trajectory_index && step.attempt == attempt =>
            {
                if let Some(trajectory) = &mut found {
                    let mut record = *step;
                    // After a damaged line, prompts whose parts it had are not shown.
                    if let Some(prompt) = record.prompt.and_then(|prompt| prompts.extend_by_last(prompt)) {
                        record.step.response.raw_prompt = prompt;
                    }
                    trajectory.steps.push(record.step);
                }
            }
            Ok(Record::Finished(finished)) if finished.summary.trajectory_index == trajectory_index => {
                found = None;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Lists the positions of all finished records in the order of the file. An index occurs again if its trajectory was
/// recorded again.
pub fn finished_positions(path: &Path) -> Result<Vec<FinishedPosition>, JournalError> {
    let mut reader = JournalReader::open(path)?;
    let mut positions = Vec::new();
    while let Some(entry) = reader.next_entry::<LightRecord>()? {
        if let Ok(LightRecord::Finished { summary }) = entry.record {
            let (trajectory_index, offset, length) = (summary.trajectory_index, entry.offset, entry.length);
            positions.push(FinishedPosition { trajectory_index, offset, length });
        }
    }
    Ok(positions)
}

/// Returns the checksum of the first line, which describes the run, so that it tells two runs apart.
pub fn run_checksum(path: &Path) -> Result<u32, JournalError> {
    let mut reader = JournalReader::open(path)?;
    let Some(first) = reader.next_entry::<LightRecord>()? else {
        let reason = "the file is empty".to_owned();
        return Err(JournalError::NoRun { path: path.to_path_buf(), reason });
    };
    match first.record {
        Ok(_) => Ok(reader.line_checksum()),
        Err(error) => Err(JournalError::NoRun { path: path.to_path_buf(), reason: error.to_string() }),
    }
}

/// Reads a finished trajectory from the position that a scan found.
pub fn read_finished(
    reader: &mut JournalReader,
    located: &LocatedRecord,
) -> Result<Trajectory, JournalError> {
    read_finished_at(reader, located.offset)
}

/// Reads the finished trajectory whose record starts at `offset`.
pub fn read_finished_at(reader: &mut JournalReader, offset: u64) -> Result<Trajectory, JournalError> {
    reader.seek(offset)?;
    let reason = match reader.next().transpose()?.map(|entry| entry.record) {
        Some(Ok(Record::Finished(finished))) => match finished.into_trajectory() {
            Some(trajectory) => return Ok(trajectory),
            None => "parts of its prompts are missing".to_owned(),
        },
        Some(Ok(_)) => "the position has another record now".to_owned(),
        Some(Err(error)) => error.to_string(),
        None => "the file is shorter than before".to_owned(),
    };
    Err(JournalError::Damaged { path: reader.path().to_path_buf(), offset, reason })
}
