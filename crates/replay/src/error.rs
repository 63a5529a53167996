//! What can be wrong with an archive. Every message names the file and, where there is one, the offset of the record.

use std::{
    io,
    path::{Path, PathBuf},
};

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// A record of a WARC file is unreadable or wrong.
    #[error("{}, offset {offset}: {problem}", path.display())]
    Record { path: PathBuf, offset: u64, problem: RecordProblem },
    /// A file as a whole is not what it should be.
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    /// Something that was passed in cannot be recorded.
    #[error("cannot record {what}: {problem}")]
    Exchange { what: String, problem: String },
}

/// What is wrong with one record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordProblem {
    #[error("the record is incomplete: the file ends inside it")]
    Truncated,
    #[error("the record cannot be decompressed: {0}")]
    Gzip(String),
    #[error("not a WARC record: {0}")]
    Header(String),
    #[error("the record has {size} bytes, more than the limit of {limit}; raise the limit to read it")]
    TooLarge { size: u64, limit: u64 },
    #[error("the {which} digest is {found}, but the record says {expected}")]
    Digest { which: &'static str, expected: String, found: String },
    #[error("not an HTTP message: {0}")]
    Http(String),
    #[error("the id {0} was already used by another record")]
    DuplicateId(String),
    #[error("the payload that this revisit record refers to ({0}) is not in the archive")]
    Dangling(String),
    #[error("invalid metadata: {0}")]
    Metadata(String),
}

impl ArchiveError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn record(path: &Path, offset: u64, problem: RecordProblem) -> Self {
        Self::Record { path: path.to_owned(), offset, problem }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into() }
    }

    /// Whether a file ends inside a record, as after a kill of the recorder.
    pub fn is_truncation(&self) -> bool {
        matches!(self, Self::Record { problem: RecordProblem::Truncated, .. })
    }
}
