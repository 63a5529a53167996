//! What a journal holds, told without keeping any trajectory: which are finished and where, which were running,
//! which lines are damaged and where the whole part ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Component, Path};

use proto::trajectory::{Trajectory, TrajectoryMetadata};

use super::read::LineError;
use super::record::LightRecord;
use super::{FORMAT, Finished, JournalError, JournalReader, Record};
use crate::run::RunRecord;
use crate::summary::Summary;

/// A finished trajectory and the bytes of its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    pub offset: u64,
    pub length: u64,
    pub summary: Summary,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub line: u64,
    pub offset: u64,
    pub reason: String,
}

/// An episode that began and did not finish: its latest attempt and how many steps of it are in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedEpisode {
    pub attempt: u32,
    pub steps: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub run: Option<RunRecord>,
    /// By trajectory index; of several records the last counts.
    pub finished: BTreeMap<i64, Located>,
    /// Indices with more than one finished record, as a second judgement leaves them.
    pub repeated: Vec<i64>,
    pub unfinished: BTreeMap<i64, UnfinishedEpisode>,
    /// What is known of the tasks of those: no more than their task and how many steps there are.
    pub begun: BTreeMap<i64, Summary>,
    /// The folders of pictures of all attempts, finished or not.
    pub images: BTreeSet<String>,
    /// Damaged lines with whole ones after them.
    pub damaged: Vec<Damage>,
    /// What follows the last whole line: a write that was cut short.
    pub torn_tail: Option<Damage>,
    /// Where the last whole line ends.
    pub whole_length: u64,
    pub file_length: u64,
}

/// Reads the journal at `path` once, in constant memory but for the summaries.
pub fn scan(path: &Path) -> Result<Scan, JournalError> {
    scan_reader(JournalReader::open(path)?)
}

pub(super) fn scan_file(file: File, path: &Path) -> Result<Scan, JournalError> {
    scan_reader(JournalReader::over(file, path))
}

fn scan_reader(mut reader: JournalReader) -> Result<Scan, JournalError> {
    let mut scan = Scan::default();
    let mut broken = Vec::new();
    let mut line = 0;
    while let Some(entry) = reader.next_as::<LightRecord>()? {
        line += 1;
        scan.file_length = entry.offset + entry.length;
        let damage = |reason: &LineError| Damage { line, offset: entry.offset, reason: reason.to_string() };
        match entry.record {
            Err(reason @ LineError::Broken(_)) => {
                broken.push(damage(&reason));
                continue;
            }
            Err(reason @ LineError::Unknown(_)) => {
                let damage = damage(&reason);
                scan.damaged.append(&mut broken);
                scan.damaged.push(damage);
            }
            Ok(record) => {
                scan.damaged.append(&mut broken);
                scan.take(record, line, entry.offset, entry.length);
            }
        }
        scan.whole_length = scan.file_length;
    }
    scan.torn_tail = broken.into_iter().next();
    Ok(scan)
}

impl Scan {
    fn take(&mut self, record: LightRecord, line: u64, offset: u64, length: u64) {
        match record {
            LightRecord::Run(header) if line == 1 && header.format <= FORMAT => self.run = Some(header.run),
            LightRecord::Run(header) => {
                let reason = format!("a run record of format {} does not belong here", header.format);
                self.damaged.push(Damage { line, offset, reason });
            }
            LightRecord::Episode { trajectory_index, attempt, task, images } => {
                self.images.extend(images);
                self.begun.insert(trajectory_index, Summary { trajectory_index, ..*task });
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
                if let Some(summary) = self.begun.get_mut(&trajectory_index) {
                    summary.steps = episode.steps;
                }
            }
            LightRecord::Finished { summary } => {
                let index = summary.trajectory_index;
                self.unfinished.remove(&index);
                self.begun.remove(&index);
                let located = Located { offset, length, summary: *summary };
                if self.finished.insert(index, located).is_some() && !self.repeated.contains(&index) {
                    self.repeated.push(index);
                }
            }
        }
    }

    /// The folders of pictures that no finished trajectory names: of attempts that were cut short.
    pub fn abandoned_images(&self) -> Vec<&str> {
        let folders = self.finished.values().filter_map(|located| located.summary.image_directory.as_deref());
        let named: BTreeSet<_> = folders.filter_map(|folder| Path::new(folder).file_name()).collect();
        let is_name = |name: &str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        let left = self.images.iter().map(String::as_str);
        left.filter(|name| is_name(name) && !named.contains(Path::new(name).as_os_str())).collect()
    }

    pub fn is_complete(&self) -> bool {
        self.run.as_ref().is_some_and(|run| self.finished.len() as u64 >= run.tasks)
    }
}

/// What was collected of an episode that did not finish: the steps of its latest attempt. `None` if it never began, or
/// is finished.
pub fn read_unfinished(path: &Path, trajectory_index: i64) -> Result<Option<Trajectory>, JournalError> {
    let mut found: Option<Trajectory> = None;
    let mut attempt = 0;
    for entry in JournalReader::open(path)? {
        match entry?.record {
            Ok(Record::Episode(episode)) if episode.trajectory_index == trajectory_index => {
                attempt = episode.attempt;
                let metadata = TrajectoryMetadata::default();
                found = Some(Trajectory { task: episode.task, steps: Vec::new(), metadata });
            }
            Ok(Record::Step(step))
                if step.trajectory_index == trajectory_index && step.attempt == attempt =>
            {
                if let Some(trajectory) = &mut found {
                    trajectory.steps.push(step.step);
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

/// Reads one finished trajectory back from where a scan found it.
pub fn read_finished(reader: &mut JournalReader, located: &Located) -> Result<Trajectory, JournalError> {
    reader.seek(located.offset)?;
    let reason = match reader.next().transpose()?.map(|entry| entry.record) {
        Some(Ok(Record::Finished(finished))) => {
            let Finished { trajectory, .. } = *finished;
            return Ok(trajectory);
        }
        Some(Ok(_)) => "another record is there now".to_owned(),
        Some(Err(error)) => error.to_string(),
        None => "the file ends before it".to_owned(),
    };
    Err(JournalError::Damaged { path: reader.path().to_path_buf(), offset: located.offset, reason })
}
