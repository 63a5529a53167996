//! The export itself: reads the iterations of a split, selects, and feeds the writers.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde::Serialize;

use super::ExportError;
use super::llamafactory::{self, LlamaFactory};
use super::openai::OpenAiMessages;
use super::options::{ExportOptions, Format};
use super::select::{self, Draw};
use super::sink::{Part, Sink};
use super::verl::Verl;
use super::whole::{Jsonl, Parquet, Pt};
use crate::columnar::DatasetOptions;
use crate::durable::Existing;
use crate::iteration::IterationFile;
use crate::layout::{FoundFile, SavePath, Split};
use crate::summary::Summary;

/// What was written and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    pub files: Vec<PathBuf>,
    pub trajectories_read: u64,
    pub trajectories_kept: u64,
    /// Examples: steps, or trajectories where the format keeps them whole.
    pub train_examples: u64,
    pub validation_examples: u64,
    /// Steps without a prompt or reply, or whose prompt cannot be put into the format.
    pub unusable_steps: u64,
}

impl fmt::Display for ExportReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} of {} trajectories, {} examples for training and {} for validation",
            self.trajectories_kept, self.trajectories_read, self.train_examples, self.validation_examples
        )?;
        if self.unusable_steps > 0 {
            writeln!(out, "{} steps without a usable prompt and reply were left out", self.unusable_steps)?;
        }
        self.files.iter().try_for_each(|file| writeln!(out, "{}", file.display()))
    }
}

/// Writes the finished iterations of a split into the directory `out`.
pub fn export(
    save_path: &SavePath,
    split: Split,
    out: &Path,
    options: &ExportOptions,
) -> Result<ExportReport, ExportError> {
    options.check()?;
    let files = find(save_path, split, options)?;
    let existing = if options.overwrite { Existing::Replace } else { Existing::Refuse };
    let parts: &[Part] = if options.validation_share > 0.0 { &Part::ALL } else { &[Part::Train] };
    refuse_existing(out, options, parts)?;
    std::fs::create_dir_all(out).map_err(|error| ExportError::io(out, error))?;
    let chosen = options.sample.map(|wanted| draw(&files, options, wanted)).transpose()?;
    let mut sinks = parts
        .iter()
        .map(|part| open(out, *part, parts.len() > 1, save_path, options, existing))
        .collect::<Result<Vec<_>, _>>()?;
    let mut report = write(&files, options, chosen.as_ref(), &mut sinks)?;
    for sink in sinks {
        report.files.extend(sink.finish()?);
    }
    if options.format == Format::LlamaFactory {
        report.files.push(llamafactory::write_dataset_info(out, parts, existing)?);
    }
    Ok(report)
}

/// The files to read, oldest iteration first.
fn find(save_path: &SavePath, split: Split, options: &ExportOptions) -> Result<Vec<FoundFile>, ExportError> {
    let directory = save_path.split_directory(split);
    let mut files = save_path.finished(split).map_err(|error| ExportError::io(&directory, error))?;
    if let Some(wanted) = &options.iterations {
        if let Some(missing) =
            wanted.iter().find(|number| !files.iter().any(|file| file.id.iteration == **number))
        {
            return Err(ExportError::Options(format!("{split} has no finished iteration {missing}")));
        }
        files.retain(|file| wanted.contains(&file.id.iteration));
    }
    if files.is_empty() {
        return Err(ExportError::Nothing { split, path: save_path.root().to_path_buf() });
    }
    Ok(files)
}

/// Found out now rather than after hours of writing.
fn refuse_existing(out: &Path, options: &ExportOptions, parts: &[Part]) -> Result<(), ExportError> {
    if options.overwrite || options.format == Format::Parquet {
        return Ok(());
    }
    let names = parts.iter().map(|part| match options.format {
        Format::LlamaFactory => format!("webgym_{}.json", part.as_str()),
        Format::OpenAiMessages | Format::Jsonl => format!("{}.jsonl", part.as_str()),
        Format::Verl | Format::Parquet => format!("{}.parquet", part.as_str()),
        Format::Pt => format!("{}.pt", part.as_str()),
    });
    match names.map(|name| out.join(name)).find(|path| path.exists()) {
        Some(path) => Err(ExportError::Exists { path }),
        None => Ok(()),
    }
}

fn open(
    out: &Path,
    part: Part,
    is_divided: bool,
    save_path: &SavePath,
    options: &ExportOptions,
    existing: Existing,
) -> Result<Box<dyn Sink>, ExportError> {
    Ok(match options.format {
        Format::LlamaFactory => Box::new(LlamaFactory::create(out, part, save_path, existing)?),
        Format::OpenAiMessages => Box::new(OpenAiMessages::create(out, part, existing)?),
        Format::Verl => Box::new(Verl::create(out, part, save_path, existing)?),
        Format::Jsonl => Box::new(Jsonl::create(out, part, existing)?),
        Format::Pt => Box::new(Pt::create(out, part, existing)?),
        Format::Parquet => {
            let root = if is_divided { out.join(part.as_str()) } else { out.to_path_buf() };
            let options = DatasetOptions { inline_screenshots: options.inline_screenshots, existing };
            Box::new(Parquet::create(root, save_path, options))
        }
    })
}

/// Calls `visit` with every trajectory that is kept, and where its iteration stands among all.
fn each_kept<F>(files: &[FoundFile], options: &ExportOptions, mut visit: F) -> Result<(u64, u64), ExportError>
where
    F: FnMut(&FoundFile, (usize, usize), &Trajectory) -> Result<(), ExportError>,
{
    let mut iterations: Vec<u64> = files.iter().map(|file| file.id.iteration).collect();
    iterations.dedup();
    let (mut read, mut kept) = (0, 0);
    for file in files {
        let position = iterations.iter().position(|number| *number == file.id.iteration).unwrap_or(0);
        for trajectory in IterationFile::open_found(file)?.trajectories()? {
            let trajectory = trajectory?;
            read += 1;
            if select::keeps_trajectory(&Summary::of(&trajectory), options) {
                kept += 1;
                visit(file, (position, iterations.len()), &trajectory)?;
            }
        }
    }
    Ok((read, kept))
}

/// A first pass that numbers the steps that could be exported and draws among them.
fn draw(files: &[FoundFile], options: &ExportOptions, wanted: usize) -> Result<BTreeSet<u64>, ExportError> {
    let mut draw = Draw::new(wanted, options.seed);
    let mut number = 0;
    each_kept(files, options, |_, (position, count), trajectory| {
        let weight = select::recency(position, count, options.recency_power);
        for _ in trajectory.steps.iter().filter(|step| select::keeps_step(step, options)) {
            draw.offer(number, weight);
            number += 1;
        }
        Ok(())
    })?;
    Ok(draw.chosen())
}

fn write(
    files: &[FoundFile],
    options: &ExportOptions,
    chosen: Option<&BTreeSet<u64>>,
    sinks: &mut [Box<dyn Sink>],
) -> Result<ExportReport, ExportError> {
    let mut report = ExportReport::default();
    let mut number = 0;
    let (read, kept) = each_kept(files, options, |file, _, trajectory| {
        let mut steps = Vec::new();
        for (position, step) in trajectory.steps.iter().enumerate() {
            if select::keeps_step(step, options) {
                if chosen.is_none_or(|chosen| chosen.contains(&number)) {
                    steps.push(position);
                }
                number += 1;
            } else if options.format.is_of_steps() && !select::is_example(step) {
                report.unusable_steps += 1;
            }
        }
        let is_validation = sinks.len() > 1 && select::is_validation(&trajectory.task, options);
        let examples = sinks[usize::from(is_validation)].push(file.id, trajectory, &steps)?;
        if options.format.is_of_steps() {
            report.unusable_steps += steps.len() as u64 - examples;
        }
        *(if is_validation { &mut report.validation_examples } else { &mut report.train_examples }) +=
            examples;
        Ok(())
    })?;
    (report.trajectories_read, report.trajectories_kept) = (read, kept);
    Ok(report)
}
