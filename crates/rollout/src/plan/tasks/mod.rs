//! Reads task files. Every line is checked once, and only what sampling needs is kept in memory (about 50 bytes per task).
//! The tasks that are selected are read again from the file.

mod defects;
mod fields;
mod key;
mod line;
mod lines;
mod rubric;

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use proto::trajectory::{Task, TaskId};

pub use defects::LineDefects;
pub use key::TaskKey;
pub(crate) use key::digest;
pub use line::parse as parse_line;
use lines::{Line, Lines};

use crate::address;

const READ_BUFFER_BYTES: usize = 1 << 18;
/// Further bad lines are only counted.
const MAX_REPORTED_LINES: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    #[error("cannot read the task file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{0}\nCorrect the lines, or set env_config.skip_bad_tasks=true to skip them.")]
    BadLines(BadLines),
    #[error("the task file {} contains no task", path.display())]
    Empty { path: PathBuf },
    #[error("{}:{line}: the file has changed since it was read", path.display())]
    Changed { path: PathBuf, line: u32 },
}

/// The lines of a file that are not tasks: the first of them with their defects, and the number of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadLines {
    pub path: PathBuf,
    /// Line number and defects.
    pub first: Vec<(u32, LineDefects)>,
    pub count: usize,
}

impl BadLines {
    pub(crate) fn add(&mut self, line: u32, defects: LineDefects) {
        self.count += 1;
        if self.first.len() < MAX_REPORTED_LINES {
            self.first.push((line, defects));
        }
    }
}

impl fmt::Display for BadLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.count == 1 { "line is" } else { "lines are" };
        write!(f, "{} {subject} not a task:", self.count)?;
        for (line, defects) in &self.first {
            write!(f, "\n  {}:{line}: {defects}", self.path.display())?;
        }
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more lines"),
        }
    }
}

/// What is kept of a task between checking the file and loading the task.
#[derive(Clone, Copy, Debug)]
pub struct TaskEntry {
    pub key: TaskKey,
    pub difficulty: i64,
    offset: u64,
    length: u32,
    line: u32,
    domain: u32,
}

/// A task file that has been read and checked.
#[derive(Debug)]
pub struct TaskFile {
    path: PathBuf,
    entries: Vec<TaskEntry>,
    domains: Vec<Box<str>>,
    /// The bad lines that were skipped.
    pub skipped: BadLines,
}

impl TaskFile {
    /// Reads and checks every line. Bad lines are an error unless `skip_bad` is set.
    pub fn open(path: &Path, skip_bad: bool) -> Result<Self, TaskError> {
        let read_error = |source| TaskError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(read_error)?;
        let mut builder = TaskFileBuilder::new(path);
        let mut lines = Lines::new(BufReader::with_capacity(READ_BUFFER_BYTES, file));
        while let Some(line) = lines.next_line().map_err(read_error)? {
            builder.add(&line);
        }
        builder.finish(skip_bad)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn entries(&self) -> &[TaskEntry] {
        &self.entries
    }

    /// Returns a digest of the tasks and their order.
    pub fn digest(&self) -> String {
        let keys: Vec<u8> = self.entries.iter().flat_map(|entry| entry.key.to_bytes()).collect();
        format!("{:032x}", digest(&[&keys]))
    }

    /// Returns the domain of a task's website, in the form that the blocklist uses.
    pub fn domain(&self, entry: &TaskEntry) -> &str {
        self.domains.get(entry.domain as usize).map_or("", |domain| domain)
    }

    /// Loads the tasks at these indices of [`Self::entries`], in the given order.
    pub fn load(&self, indices: &[usize]) -> Result<Vec<Task>, TaskError> {
        let read_error = |source| TaskError::Read { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(read_error)?;
        let mut tasks = Vec::with_capacity(indices.len());
        let mut buffer = Vec::new();
        for index in indices {
            let Some(entry) = self.entries.get(*index) else { continue };
            buffer.resize(entry.length as usize, 0);
            file.seek(SeekFrom::Start(entry.offset)).map_err(read_error)?;
            let read = file.read_exact(&mut buffer);
            let task = read.ok().and_then(|()| line::parse(&buffer).ok());
            let task = task.filter(|task| TaskKey::of(task) == entry.key);
            tasks.push(task.ok_or_else(|| TaskError::Changed { path: self.path.clone(), line: entry.line })?);
        }
        Ok(tasks)
    }
}

struct TaskFileBuilder {
    path: PathBuf,
    entries: Vec<TaskEntry>,
    domains: Vec<Box<str>>,
    domain_indices: HashMap<Box<str>, u32>,
    /// The line of each task id. Ids are stored as digests, so that long ones cost no memory.
    id_lines: HashMap<u128, u32>,
    bad: BadLines,
}

impl TaskFileBuilder {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            entries: Vec::new(),
            domains: Vec::new(),
            domain_indices: HashMap::new(),
            id_lines: HashMap::new(),
            bad: BadLines { path: path.to_owned(), ..BadLines::default() },
        }
    }

    fn add(&mut self, line: &Line<'_>) {
        let text = match line.text {
            Ok(text) => text,
            Err(too_long) => return self.bad.add(line.number, too_long.to_string().into()),
        };
        let parsed = line::parse_with_id(text);
        let id = parsed.task_id.as_ref().map(id_digest);
        let first_line = id.and_then(|id| self.id_lines.get(&id));
        let duplicate = parsed.task_id.as_ref().zip(first_line).map(|(id, first_line)| {
            format!("task_id {} is already used in line {first_line}", display_id(id))
        });
        match (parsed.task, duplicate) {
            (Ok(task), None) => {
                // Only good lines reserve their id: if a bad line is skipped, a later line may have it.
                self.id_lines.extend(id.map(|id| (id, line.number)));
                self.add_entry(&task, line, text.len());
            }
            (Ok(_), Some(duplicate)) => self.bad.add(line.number, duplicate.into()),
            (Err(mut defects), duplicate) => {
                if let Some(duplicate) = duplicate {
                    defects.add(duplicate);
                }
                self.bad.add(line.number, defects);
            }
        }
    }

    fn add_entry(&mut self, task: &Task, line: &Line<'_>, length: usize) {
        let domain = self.domain_index(&task.website);
        self.entries.push(TaskEntry {
            key: TaskKey::of(task),
            difficulty: task.difficulty,
            offset: line.offset,
            length: length as u32,
            line: line.number,
            domain,
        });
    }

    fn domain_index(&mut self, website: &str) -> u32 {
        let domain: Box<str> = address::domain(website).into();
        if let Some(index) = self.domain_indices.get(&domain) {
            return *index;
        }
        let index = self.domains.len() as u32;
        self.domains.push(domain.clone());
        self.domain_indices.insert(domain, index);
        index
    }

    fn finish(mut self, skip_bad: bool) -> Result<TaskFile, TaskError> {
        if self.bad.count > 0 && !skip_bad {
            return Err(TaskError::BadLines(self.bad));
        }
        if self.entries.is_empty() {
            return Err(TaskError::Empty { path: self.path });
        }
        self.entries.shrink_to_fit();
        Ok(TaskFile { path: self.path, entries: self.entries, domains: self.domains, skipped: self.bad })
    }
}

fn id_digest(id: &TaskId) -> u128 {
    match id {
        TaskId::Number(number) => digest(&[b"number", &number.to_le_bytes()]),
        TaskId::Text(text) => digest(&[b"text", text.as_bytes()]),
    }
}

fn display_id(id: &TaskId) -> String {
    match id {
        TaskId::Number(number) => number.to_string(),
        TaskId::Text(text) => format!("{text:?}"),
    }
}
