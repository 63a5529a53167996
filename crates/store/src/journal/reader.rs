//! Reads a journal line by line in constant memory. A damaged line is reported where it occurs, and reading continues
//! after it. Takes no lock, so a journal can be read while a run writes it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{JournalError, Record, frame};

/// Longer than any record. Longer lines are skipped without keeping them in memory.
const MAX_LINE_BYTES: usize = 1 << 30;

/// One line of a journal: its position, and its record or the reason why it cannot be read.
#[derive(Debug)]
pub struct Entry<T> {
    pub offset: u64,
    /// Length in bytes, including the line feed.
    pub length: u64,
    pub record: Result<T, LineError>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line is incomplete or was changed after it was written.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The line is intact but has no record that this version knows.
    #[error("unknown record: {0}")]
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
        Ok(Self::from_file(file, path))
    }

    pub(super) fn from_file(file: File, path: &Path) -> Self {
        let file = BufReader::with_capacity(1 << 18, file);
        Self { path: path.to_path_buf(), file, offset: 0, line: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn seek(&mut self, offset: u64) -> Result<(), JournalError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(|error| self.read_error(error))?;
        self.offset = offset;
        Ok(())
    }

    /// Parses the next line as `T`. Returns `None` at the end of the file.
    pub(super) fn next_entry<T: DeserializeOwned>(&mut self) -> Result<Option<Entry<T>>, JournalError> {
        let offset = self.offset;
        let is_too_long = self.read_line().map_err(|error| self.read_error(error))?;
        let length = self.offset - offset;
        if length == 0 {
            return Ok(None);
        }
        let record = if is_too_long {
            Err(LineError::Corrupt("the line is longer than any record"))
        } else {
            frame::decode(&self.line).map_err(LineError::Corrupt).and_then(|json| {
                serde_json::from_slice(json).map_err(|error| LineError::Unknown(error.to_string()))
            })
        };
        Ok(Some(Entry { offset, length, record }))
    }

    /// Returns the checksum of the JSON in the last line that was read.
    pub(super) fn line_checksum(&self) -> u32 {
        frame::decode(&self.line).map_or(0, crc32fast::hash)
    }

    /// Reads up to a line feed or the end of the file. Returns whether the line was too long to keep.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut is_too_long = false;
        loop {
            let buffer = self.file.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer).map(|position| position + 1);
            let chunk = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= self.line.len() + chunk.len() > MAX_LINE_BYTES;
            if !is_too_long {
                self.line.extend_from_slice(chunk);
            }
            let count = chunk.len();
            self.file.consume(count);
            self.offset += count as u64;
            if end.is_some() || count == 0 {
                return Ok(is_too_long);
            }
        }
    }

    fn read_error(&self, error: io::Error) -> JournalError {
        JournalError::io("read", &self.path, error)
    }
}

impl Iterator for JournalReader {
    type Item = Result<Entry<Record>, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().transpose()
    }
}
