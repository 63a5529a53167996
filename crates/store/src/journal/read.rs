//! Reads a journal line by line in constant memory. Damaged lines are reported in their place and do not hide the
//! whole ones after them. Takes no lock, so a running journal can be looked at.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{JournalError, Record, frame};

/// No record is that long; a longer "line" is rubbish and is passed over without being kept.
const MAX_LINE: usize = 1 << 30;

/// A line of the journal: where it is, and the record or what is wrong with it.
#[derive(Debug)]
pub struct Entry<T> {
    pub offset: u64,
    /// With the line feed.
    pub length: u64,
    pub record: Result<T, LineError>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line is not what was written.
    #[error("{0}")]
    Broken(&'static str),
    /// The line is what was written, but nothing that this program knows.
    #[error("not a record: {0}")]
    Unknown(String),
}

/// Iterates over the records of a journal.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    file: BufReader<File>,
    offset: u64,
    line: Vec<u8>,
}

impl JournalReader {
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = File::open(path).map_err(|error| JournalError::io("open", path, error))?;
        Ok(Self::over(file, path))
    }

    pub(super) fn over(file: File, path: &Path) -> Self {
        let file = BufReader::with_capacity(1 << 18, file);
        Self { path: path.to_path_buf(), file, offset: 0, line: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn seek(&mut self, offset: u64) -> Result<(), JournalError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(error))?;
        self.offset = offset;
        Ok(())
    }

    /// The next line as `T`; `None` at the end of the file.
    pub(super) fn next_as<T: DeserializeOwned>(&mut self) -> Result<Option<Entry<T>>, JournalError> {
        let offset = self.offset;
        let is_too_long = self.read_line().map_err(|error| self.failed(error))?;
        let length = self.offset - offset;
        if length == 0 {
            return Ok(None);
        }
        let record = if is_too_long {
            Err(LineError::Broken("the line is too long"))
        } else {
            frame::decode(&self.line).map_err(LineError::Broken).and_then(|json| {
                serde_json::from_slice(json).map_err(|error| LineError::Unknown(error.to_string()))
            })
        };
        Ok(Some(Entry { offset, length, record }))
    }

    /// Reads up to a line feed or the end; tells whether the line was too long to keep.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut is_too_long = false;
        loop {
            let buffer = self.file.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer).map(|position| position + 1);
            let taken = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= self.line.len() + taken.len() > MAX_LINE;
            if !is_too_long {
                self.line.extend_from_slice(taken);
            }
            let count = taken.len();
            self.file.consume(count);
            self.offset += count as u64;
            if end.is_some() || count == 0 {
                return Ok(is_too_long);
            }
        }
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::io("read", &self.path, error)
    }
}

impl Iterator for JournalReader {
    type Item = Result<Entry<Record>, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_as().transpose()
    }
}
