//! The benchmarks whose files can be imported, and the import itself.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use serde_json::{Map, Value};

use super::{
    assistantbench, browsecomp, csv, online_mind2web,
    records::{self, Record},
    task_draft::TaskDraft,
    webarena_verified, webvoyager,
};
use crate::plan::tasks::{BadLines, parse_line};

/// A benchmark with a file of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    Webvoyager,
    OnlineMind2web,
    WebarenaVerified,
    Browsecomp,
    Assistantbench,
}

/// What the files do not say.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The start page of benchmarks whose tasks have none.
    pub website: String,
    /// The address of each site of WebArena, by its name.
    pub sites: BTreeMap<String, String>,
    /// Leave out tasks of sites without an address instead of reporting them.
    pub skip_other_sites: bool,
}

/// The lines of a task file, and what the user should know about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub lines: Vec<String>,
    pub notes: Vec<String>,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{0}")]
    BadLines(BadLines),
    #[error("{0}")]
    Options(String),
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: std::path::PathBuf, source: std::io::Error },
}

/// What a converter makes of a record.
pub(super) enum Converted {
    Task(Box<TaskDraft>),
    /// The record is left out on request, for this reason.
    Skipped(String),
}

impl Benchmark {
    const fn name(self) -> &'static str {
        match self {
            Self::Webvoyager => "webvoyager",
            Self::OnlineMind2web => "online-mind2web",
            Self::WebarenaVerified => "webarena-verified",
            Self::Browsecomp => "browsecomp",
            Self::Assistantbench => "assistantbench",
        }
    }

    /// The numbers of tasks in the files that the project publishes.
    const fn published_counts(self) -> &'static [usize] {
        match self {
            Self::Webvoyager => &[643],
            Self::OnlineMind2web => &[300],
            Self::WebarenaVerified => &[812, 258],
            Self::Browsecomp => &[1266],
            Self::Assistantbench => &[33, 181],
        }
    }

    fn records(self, text: &str) -> Result<Vec<Record>, (u32, String)> {
        match self {
            Self::Webvoyager | Self::Assistantbench => Ok(records::json_lines(text)),
            Self::OnlineMind2web | Self::WebarenaVerified => records::json_list(text),
            Self::Browsecomp => csv::records(text),
        }
    }

    fn convert(
        self,
        index: usize,
        record: &mut Map<String, Value>,
        options: &ImportOptions,
    ) -> Result<Converted, String> {
        let draft = match self {
            Self::Webvoyager => webvoyager::convert(record)?,
            Self::OnlineMind2web => online_mind2web::convert(record)?,
            Self::Browsecomp => browsecomp::convert(index, record, &options.website)?,
            Self::Assistantbench => assistantbench::convert(record, &options.website)?,
            Self::WebarenaVerified => return webarena_verified::convert(record, options),
        };
        Ok(Converted::Task(Box::new(draft)))
    }
}

/// Converts the content of a benchmark's file. `path` is its name in messages.
pub fn import(
    benchmark: Benchmark,
    path: &Path,
    content: &[u8],
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    if benchmark == Benchmark::WebarenaVerified {
        webarena_verified::check_sites(options).map_err(ImportError::Options)?;
    }
    let mut builder =
        Builder { bad: BadLines { path: path.to_owned(), ..BadLines::default() }, ..Builder::default() };
    let records = text(content).and_then(|text| benchmark.records(text));
    match records {
        Ok(records) => {
            for (index, record) in records.into_iter().enumerate() {
                builder.add(benchmark, index, record, options);
            }
        }
        Err((line, reason)) => builder.bad.add(line, reason.into()),
    }
    builder.finish(benchmark)
}

/// Returns the content without a byte order mark. The error is the line that is not UTF-8.
fn text(content: &[u8]) -> Result<&str, (u32, String)> {
    match std::str::from_utf8(content) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let line = 1 + memchr::memchr_iter(b'\n', &content[..error.valid_up_to()]).count() as u32;
            Err((line, "not UTF-8".to_owned()))
        }
    }
}

#[derive(Default)]
struct Builder {
    imported: Imported,
    bad: BadLines,
    /// The line of each task id.
    ids: HashMap<String, u32>,
    /// Records that were left out, by reason.
    skipped: BTreeMap<String, usize>,
    /// Tasks whose check is not supported, by reason.
    unsupported: BTreeMap<String, usize>,
}

impl Builder {
    fn add(&mut self, benchmark: Benchmark, index: usize, record: Record, options: &ImportOptions) {
        let line = record.line;
        let converted = record.fields.and_then(|mut fields| {
            let converted = benchmark.convert(index, &mut fields, options)?;
            Ok((converted, fields))
        });
        match converted {
            Ok((Converted::Task(draft), fields)) => self.add_task(benchmark, line, &draft, &fields),
            Ok((Converted::Skipped(reason), _)) => *self.skipped.entry(reason).or_default() += 1,
            Err(reason) => self.bad.add(line, reason.into()),
        }
    }

    fn add_task(&mut self, benchmark: Benchmark, line: u32, draft: &TaskDraft, fields: &Map<String, Value>) {
        if let Some(first) = self.ids.insert(draft.task_id.to_string(), line) {
            return self
                .bad
                .add(line, format!("the id {} is already used in line {first}", draft.task_id).into());
        }
        if let Some(reason) = draft.judge.as_ref().and_then(|judge| judge["unsupported"].as_str()) {
            *self.unsupported.entry(reason.to_owned()).or_default() += 1;
        }
        let text = draft.to_line(benchmark.name(), fields);
        // What was written must be readable as a task file.
        match parse_line(text.as_bytes()) {
            Ok(_) => self.imported.lines.push(text),
            Err(defects) => self.bad.add(line, defects),
        }
    }

    fn finish(mut self, benchmark: Benchmark) -> Result<Imported, ImportError> {
        if self.bad.count > 0 {
            return Err(ImportError::BadLines(self.bad));
        }
        let count = self.imported.lines.len();
        let skipped: usize = self.skipped.values().sum();
        let published = benchmark.published_counts();
        if !published.contains(&(count + skipped)) {
            let known: Vec<String> = published.iter().map(ToString::to_string).collect();
            let note = format!(
                "the file has {} tasks; the published files have {}",
                count + skipped,
                known.join(" or ")
            );
            self.imported.notes.push(note);
        }
        for (reason, count) in &self.skipped {
            self.imported.notes.push(format!("{count} tasks were left out: {reason}"));
        }
        let unsupported: usize = self.unsupported.values().sum();
        if unsupported > 0 {
            let note = format!("{unsupported} of {count} tasks stay unjudged with judge=program, because");
            self.imported.notes.push(note);
        }
        for (reason, count) in &self.unsupported {
            self.imported.notes.push(format!("  {count}: {reason}"));
        }
        Ok(self.imported)
    }
}
