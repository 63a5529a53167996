//! Runs an export: reads the iterations of a split, selects examples and writes them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde::Serialize;

use super::ExportError;
use super::advantage::Advantages;
use super::jsonl::Jsonl;
use super::llamafactory::{self, LlamaFactory};
use super::openai::OpenAiMessages;
use super::options::{ExportOptions, Format, Recency};
use super::parquet::ParquetDataset;
use super::pt::Pt;
use super::select::{self, WeightedSample};
use super::sink::{Example, Sink, Subset};
use super::verl::Verl;
use crate::columnar::DatasetOptions;
use crate::durable::Existing;
use crate::iteration::IterationFile;
use crate::layout::{FoundFile, SavePath, Split};
use crate::summary::Summary;

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    pub files: Vec<PathBuf>,
    pub trajectories_read: u64,
    pub trajectories_kept: u64,
    /// Number of exported trajectories without a reward, which are marked as masked.
    pub masked_trajectories: u64,
    /// Number of trajectories without a reward that were left out, because the format cannot mark them.
    pub masked_left_out: u64,
    /// Number of examples: steps or complete trajectories, depending on the format.
    pub train_examples: u64,
    pub validation_examples: u64,
    /// Number of steps without a prompt, or with a prompt that the format cannot represent.
    pub unusable_steps: u64,
}

impl fmt::Display for ExportReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} of {} trajectories, {} examples for training and {} for validation",
            self.trajectories_kept, self.trajectories_read, self.train_examples, self.validation_examples
        )?;
        let masked = [
            (self.masked_trajectories, "marked as masked"),
            (self.masked_left_out, "left out, because the format cannot mark them"),
        ];
        for (count, treatment) in masked.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(
                out,
                "{count} trajectories without a reward (lost, cancelled or not judged) were {treatment}"
            )?;
        }
        if self.train_examples == 0 {
            writeln!(out, "No example matches the selection: the files for training are empty")?;
        }
        if self.unusable_steps > 0 {
            writeln!(out, "{} steps without a usable prompt and reply were left out", self.unusable_steps)?;
        }
        self.files.iter().try_for_each(|file| writeln!(out, "{}", file.display()))
    }
}

/// Exports the finished iterations of a split to the directory `out`.
pub fn export(
    save_path: &SavePath,
    split: Split,
    out: &Path,
    options: &ExportOptions,
) -> Result<ExportReport, ExportError> {
    options.validate()?;
    let files = find_files(save_path, split, options)?;
    let existing = if options.overwrite { Existing::Replace } else { Existing::Refuse };
    let subsets: &[Subset] = if options.validation_share > 0.0 { &Subset::ALL } else { &[Subset::Train] };
    refuse_existing(out, options, subsets)?;
    std::fs::create_dir_all(out).map_err(|error| ExportError::io(out, error))?;
    let sampled = options.sample.map(|size| sample_steps(&files, options, size)).transpose()?;
    let mut sinks = subsets
        .iter()
        .map(|subset| open_sink(out, *subset, subsets.len() > 1, save_path, options, existing))
        .collect::<Result<Vec<_>, _>>()?;
    let advantages = compute_advantages(&files, options)?;
    let mut report = write_examples(&files, options, sampled.as_ref(), &advantages, &mut sinks)?;
    for sink in sinks {
        report.files.extend(sink.finish()?);
    }
    if options.format == Format::LlamaFactory {
        report.files.push(llamafactory::write_dataset_info(out, subsets, existing)?);
        if let Some(config) = &options.train_config {
            report.files.extend(config.write(out, subsets, report.train_examples, existing)?);
        }
    }
    Ok(report)
}

/// The files to export, oldest iteration first.
fn find_files(
    save_path: &SavePath,
    split: Split,
    options: &ExportOptions,
) -> Result<Vec<FoundFile>, ExportError> {
    let directory = save_path.split_directory(split);
    let mut files = save_path.finished_files(split).map_err(|error| ExportError::io(&directory, error))?;
    if let Some(requested) = &options.iterations {
        if let Some(missing) =
            requested.iter().find(|number| !files.iter().any(|file| file.id.iteration == **number))
        {
            return Err(ExportError::Options(format!("{split} has no finished iteration {missing}")));
        }
        files.retain(|file| requested.contains(&file.id.iteration));
    }
    if let Some(count) = options.last {
        let mut numbers: Vec<u64> = files.iter().map(|file| file.id.iteration).collect();
        numbers.dedup();
        let first = numbers[numbers.len().saturating_sub(count)..].first().copied();
        files.retain(|file| Some(file.id.iteration) >= first);
    }
    if files.is_empty() {
        return Err(ExportError::NoIterations { split, path: save_path.root().to_path_buf() });
    }
    Ok(files)
}

/// Fails early if an output exists, instead of after hours of writing.
fn refuse_existing(out: &Path, options: &ExportOptions, subsets: &[Subset]) -> Result<(), ExportError> {
    if options.overwrite || options.format == Format::Parquet {
        return Ok(());
    }
    let names = subsets.iter().map(|subset| match options.format {
        Format::LlamaFactory => format!("webgym_{}.json", subset.as_str()),
        Format::OpenAiMessages | Format::Jsonl => format!("{}.jsonl", subset.as_str()),
        Format::Verl | Format::Parquet => format!("{}.parquet", subset.as_str()),
        Format::Pt => format!("{}.pt", subset.as_str()),
    });
    match names.map(|name| out.join(name)).find(|path| path.exists()) {
        Some(path) => Err(ExportError::Exists { path }),
        None => Ok(()),
    }
}

fn open_sink(
    out: &Path,
    subset: Subset,
    is_divided: bool,
    save_path: &SavePath,
    options: &ExportOptions,
    existing: Existing,
) -> Result<Box<dyn Sink>, ExportError> {
    Ok(match options.format {
        Format::LlamaFactory => Box::new(LlamaFactory::create(out, subset, save_path, existing)?),
        Format::OpenAiMessages => Box::new(OpenAiMessages::create(out, subset, existing)?),
        Format::Verl => Box::new(Verl::create(out, subset, save_path, existing)?),
        Format::Jsonl => Box::new(Jsonl::create(out, subset, existing)?),
        Format::Pt => Box::new(Pt::create(out, subset, existing)?),
        Format::Parquet => {
            let root = if is_divided { out.join(subset.as_str()) } else { out.to_path_buf() };
            let options = DatasetOptions { inline_screenshots: options.inline_screenshots, existing };
            Box::new(ParquetDataset::create(root, save_path, options))
        }
    })
}

/// Calls `visit` for every selected trajectory.
fn for_each_selected<F>(
    files: &[FoundFile],
    options: &ExportOptions,
    mut visit: F,
) -> Result<Selection, ExportError>
where
    F: FnMut(&FoundFile, &Trajectory) -> Result<(), ExportError>,
{
    let mut selection = Selection::default();
    for file in files {
        for trajectory in IterationFile::open_found(file)?.trajectories()? {
            let trajectory = trajectory?;
            selection.read += 1;
            let summary = Summary::of(&trajectory);
            if !select::includes_trajectory(&summary, options) {
                continue;
            }
            if !options.format.can_mark_masked() && summary.outcome_or_inferred().is_masked() {
                selection.masked_left_out += 1;
                continue;
            }
            selection.kept += 1;
            visit(file, &trajectory)?;
        }
    }
    Ok(selection)
}

/// How many trajectories were read and kept, and how many were left out because the format cannot mark them as masked.
#[derive(Clone, Copy, Debug, Default)]
struct Selection {
    read: u64,
    kept: u64,
    masked_left_out: u64,
}

/// Numbers the steps that can be exported, in a first pass, and samples from them.
fn sample_steps(
    files: &[FoundFile],
    options: &ExportOptions,
    size: usize,
) -> Result<BTreeSet<u64>, ExportError> {
    let mut sample = WeightedSample::new(size, options.seed);
    let mut number = 0;
    let mut iterations: Vec<u64> = files.iter().map(|file| file.id.iteration).collect();
    iterations.dedup();
    for_each_selected(files, options, |file, trajectory| {
        for _ in trajectory.steps.iter().filter(|step| select::includes_step(step, options)) {
            let position = match options.recency {
                Recency::Sample => number,
                Recency::Iteration => {
                    iterations.iter().position(|one| *one == file.id.iteration).unwrap_or(0) as u64
                }
            };
            sample.offer(number, select::recency_weight(position, options.recency_power));
            number += 1;
        }
        Ok(())
    })?;
    Ok(sample.into_numbers())
}

/// Computes the advantages of every iteration, in a first pass, also with the trajectories that are not selected.
fn compute_advantages(files: &[FoundFile], options: &ExportOptions) -> Result<Advantages, ExportError> {
    let mut advantages = Advantages::default();
    let Some(kind) = options.advantage else { return Ok(advantages) };
    // The files of several ranks belong to one iteration.
    for files in files.chunk_by(|one, next| one.id.iteration == next.id.iteration) {
        let mut summaries = Vec::new();
        for file in files {
            for trajectory in IterationFile::open_found(file)?.trajectories()? {
                summaries.push(Summary::of(&trajectory?));
            }
        }
        advantages.add(kind, files[0].id.iteration, &summaries);
    }
    Ok(advantages)
}

fn write_examples(
    files: &[FoundFile],
    options: &ExportOptions,
    sampled: Option<&BTreeSet<u64>>,
    advantages: &Advantages,
    sinks: &mut [Box<dyn Sink>],
) -> Result<ExportReport, ExportError> {
    let mut report = ExportReport::default();
    let mut number = 0;
    let selection = for_each_selected(files, options, |file, trajectory| {
        let mut steps = Vec::new();
        for (position, step) in trajectory.steps.iter().enumerate() {
            if select::includes_step(step, options) {
                if sampled.is_none_or(|sampled| sampled.contains(&number)) {
                    steps.push(position);
                }
                number += 1;
            } else if options.format.is_per_step() && !select::is_example(step) {
                report.unusable_steps += 1;
            }
        }
        let is_validation = sinks.len() > 1 && select::is_validation(&trajectory.task, options);
        let summary = Summary::of(trajectory);
        let is_masked = summary.outcome_or_inferred().is_masked();
        report.masked_trajectories += u64::from(is_masked);
        let example = Example {
            id: file.id,
            trajectory,
            steps: &steps,
            reward: (!is_masked).then_some(summary.reward),
            advantage: advantages.of(file.id.iteration, summary.trajectory_index),
        };
        let examples = sinks[usize::from(is_validation)].push(&example)?;
        if options.format.is_per_step() {
            report.unusable_steps += steps.len() as u64 - examples;
        }
        *(if is_validation { &mut report.validation_examples } else { &mut report.train_examples }) +=
            examples;
        Ok(())
    })?;
    (report.trajectories_read, report.trajectories_kept) = (selection.read, selection.kept);
    report.masked_left_out = selection.masked_left_out;
    Ok(report)
}
