//! Task files. A file is read once, every line checked, and only what sampling needs is kept (about 50 bytes a task);
//! the tasks that are chosen are read again from their places. Owns the reading; knows nothing of runs.

mod key;
mod line;
mod lines;

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use proto::trajectory::{Task, TaskId};

pub use key::TaskKey;
pub(crate) use key::digest;
pub use line::parse as parse_line;
use lines::{Line, Lines};

use crate::address;

/// How many bad lines are told apart before only their number is.
const TOLD: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    #[error("cannot read the task file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{0}\nCorrect the lines, or set env_config.skip_bad_tasks=true to leave them out.")]
    BadLines(BadLines),
    #[error("the task file {} holds no task", path.display())]
    Empty { path: PathBuf },
    #[error("{}:{line}: the file has changed since it was read", path.display())]
    Changed { path: PathBuf, line: u32 },
}

/// Lines that are not tasks: the first of them with reasons, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadLines {
    pub path: PathBuf,
    pub first: Vec<(u32, String)>,
    pub count: usize,
}

impl BadLines {
    fn add(&mut self, line: u32, reason: String) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push((line, reason));
        }
    }
}

impl fmt::Display for BadLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "line is" } else { "lines are" };
        write!(f, "{} {plural} not a task:", self.count)?;
        for (line, reason) in &self.first {
            write!(f, "\n  {}:{line}: {reason}", self.path.display())?;
        }
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more"),
        }
    }
}

/// What is kept of a task between reading the file and choosing it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
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
    entries: Vec<Entry>,
    domains: Vec<Box<str>>,
    /// The lines left out, when they were to be.
    pub skipped: BadLines,
}

impl TaskFile {
    /// Reads and checks every line. Bad ones are an error, unless they are to be skipped.
    pub fn open(path: &Path, skip_bad: bool) -> Result<Self, TaskError> {
        let unreadable = |source| TaskError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let mut builder = Builder::new(path);
        let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file));
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            builder.add(&line);
        }
        builder.finish(skip_bad)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The same for the same tasks in the same order.
    pub fn digest(&self) -> String {
        let keys: Vec<u8> = self.entries.iter().flat_map(|entry| entry.key.bytes()).collect();
        format!("{:032x}", digest(&[&keys]))
    }

    /// The domain of a task's website, as the blocklist knows it.
    pub fn domain(&self, entry: &Entry) -> &str {
        self.domains.get(entry.domain as usize).map_or("", |domain| domain)
    }

    /// The tasks at these places of [`Self::entries`], in the order asked for.
    pub fn load(&self, places: &[usize]) -> Result<Vec<Task>, TaskError> {
        let unreadable = |source| TaskError::Read { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(unreadable)?;
        let mut tasks = Vec::with_capacity(places.len());
        let mut buffer = Vec::new();
        for place in places {
            let Some(entry) = self.entries.get(*place) else { continue };
            buffer.resize(entry.length as usize, 0);
            file.seek(SeekFrom::Start(entry.offset)).map_err(unreadable)?;
            let read = file.read_exact(&mut buffer);
            let task = read.ok().and_then(|()| line::parse(&buffer).ok());
            let task = task.filter(|task| TaskKey::of(task) == entry.key);
            tasks.push(task.ok_or_else(|| TaskError::Changed { path: self.path.clone(), line: entry.line })?);
        }
        Ok(tasks)
    }
}

struct Builder {
    path: PathBuf,
    entries: Vec<Entry>,
    domains: Vec<Box<str>>,
    domain_numbers: HashMap<Box<str>, u32>,
    /// Task id → the line that has it. Ids are kept by digest: long ones cost no memory.
    ids: HashMap<u128, u32>,
    bad: BadLines,
}

impl Builder {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            entries: Vec::new(),
            domains: Vec::new(),
            domain_numbers: HashMap::new(),
            ids: HashMap::new(),
            bad: BadLines { path: path.to_owned(), ..BadLines::default() },
        }
    }

    fn add(&mut self, line: &Line<'_>) {
        let parsed = match line.text {
            Ok(text) => line::parse(text).and_then(|task| self.unique(task, line.number)),
            Err(too_long) => Err(too_long.to_string()),
        };
        match (parsed, line.text) {
            (Ok(task), Ok(text)) => {
                let domain = self.domain_number(&task.website);
                self.entries.push(Entry {
                    key: TaskKey::of(&task),
                    difficulty: task.difficulty,
                    offset: line.offset,
                    length: text.len() as u32,
                    line: line.number,
                    domain,
                });
            }
            (Err(reason), _) => self.bad.add(line.number, reason),
            (Ok(_), Err(_)) => {}
        }
    }

    fn unique(&mut self, task: Task, line: u32) -> Result<Task, String> {
        let Some(id) = &task.task_id else { return Ok(task) };
        let (digest, shown) = match id {
            TaskId::Number(number) => (key::digest(&[b"number", &number.to_le_bytes()]), number.to_string()),
            TaskId::Text(text) => (key::digest(&[b"text", text.as_bytes()]), format!("{text:?}")),
        };
        match self.ids.entry(digest) {
            std::collections::hash_map::Entry::Occupied(first) => {
                Err(format!("task_id {shown} is already that of line {}", first.get()))
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(line);
                Ok(task)
            }
        }
    }

    fn domain_number(&mut self, website: &str) -> u32 {
        let domain: Box<str> = address::domain(website).into();
        if let Some(number) = self.domain_numbers.get(&domain) {
            return *number;
        }
        let number = self.domains.len() as u32;
        self.domains.push(domain.clone());
        self.domain_numbers.insert(domain, number);
        number
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
