//! Reads the records of a WARC file in order, checks their digests, and keeps at most one bounded block in memory.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    Limits, RecordHeader,
    digest::Hasher,
    http,
    member::{Counting, Member, skip_line_breaks},
};
use crate::{ArchiveError, error::RecordProblem};

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Complete(Vec<u8>),
    /// Larger than the limit: its digests were checked, but it was not kept.
    TooLarge(u64),
}

/// A record with its place in the file.
#[derive(Clone, Debug)]
pub struct ReadRecord {
    pub offset: u64,
    /// The bytes that it occupies in the file.
    pub length: u64,
    pub header: RecordHeader,
    pub block: Block,
    /// Digests that do not agree with the content.
    pub problems: Vec<RecordProblem>,
}

/// Reads records until the end or the first one that cannot be read.
pub struct WarcReader<R> {
    path: PathBuf,
    source: Counting<R>,
    limits: Limits,
    has_failed: bool,
}

impl WarcReader<BufReader<File>> {
    pub fn open(path: &Path, limits: Limits) -> Result<Self, ArchiveError> {
        let file = File::open(path).map_err(ArchiveError::io("open", path))?;
        Ok(Self::new(path, BufReader::with_capacity(1 << 16, file), limits))
    }
}

impl<R: BufRead> WarcReader<R> {
    /// Reads from any source; `path` is used in messages only.
    pub fn new(path: &Path, source: R, limits: Limits) -> Self {
        let source = Counting { inner: source, position: 0 };
        Self { path: path.to_owned(), source, limits, has_failed: false }
    }

    /// Where the next record starts.
    pub fn offset(&self) -> u64 {
        self.source.position
    }

    fn read_next(&mut self) -> Result<Option<ReadRecord>, (u64, RecordProblem)> {
        let start = self.source.position;
        let failed = |error: io::Error| (start, problem_of(&error));
        let first = self.source.fill_buf().map_err(failed)?;
        let is_gzip = match first {
            [] => return Ok(None),
            [first, ..] => *first == 0x1f,
        };
        if !is_gzip {
            skip_line_breaks(&mut self.source).map_err(failed)?;
        }
        let offset = self.source.position;
        let failed = |error: io::Error| (offset, problem_of(&error));
        let mut member =
            if is_gzip { Member::gzip(&mut self.source) } else { Member::Plain(&mut self.source) };
        let Some(header) = member.read_header(self.limits.max_header).map_err(failed)? else {
            // A plain file ended after line breaks; an empty gzip member is not a record.
            let problem = RecordProblem::Header("it is empty".into());
            return if is_gzip { Err((offset, problem)) } else { Ok(None) };
        };
        let wrong = |message| (offset, RecordProblem::Header(message));
        let header = RecordHeader::parse(&header).map_err(wrong)?;
        let size = header.content_length().map_err(wrong)?;
        let (block, problems) = read_block(&mut member, &header, size, self.limits).map_err(failed)?;
        member.finish().map_err(failed)?;
        Ok(Some(ReadRecord { offset, length: self.source.position - offset, header, block, problems }))
    }
}

impl<R: BufRead> Iterator for WarcReader<R> {
    type Item = Result<ReadRecord, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match self.read_next() {
            Ok(record) => record.map(Ok),
            Err((offset, problem)) => {
                self.has_failed = true;
                Some(Err(ArchiveError::record(&self.path, offset, problem)))
            }
        }
    }
}

fn problem_of(error: &io::Error) -> RecordProblem {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        RecordProblem::Truncated
    } else {
        RecordProblem::Gzip(error.to_string())
    }
}

/// Reads a block in pieces: computes its digests and keeps it if it is small enough.
fn read_block(
    source: &mut impl Read,
    header: &RecordHeader,
    size: u64,
    limits: Limits,
) -> io::Result<(Block, Vec<RecordProblem>)> {
    let mut check = DigestCheck::new(header);
    let is_kept = size <= limits.max_block;
    let mut kept = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let mut remaining = size;
    while remaining > 0 {
        let wanted = remaining.min(piece.len() as u64) as usize;
        let read = source.read(&mut piece[..wanted])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        check.update(&piece[..read], limits.max_header);
        if is_kept {
            kept.extend_from_slice(&piece[..read]);
        }
        remaining -= read as u64;
    }
    Ok((if is_kept { Block::Complete(kept) } else { Block::TooLarge(size) }, check.finish(header)))
}

/// Computes the digests of a block and of the payload, which starts after the headers of an HTTP message.
struct DigestCheck {
    block: Option<Hasher>,
    payload: Option<Hasher>,
    /// The start of the block until the end of its HTTP headers is found.
    head: Option<Vec<u8>>,
}

impl DigestCheck {
    fn new(header: &RecordHeader) -> Self {
        // The payload of a revisit record is elsewhere.
        let is_revisit = header.kind() == "revisit";
        let payload = header.get("WARC-Payload-Digest").filter(|_| !is_revisit);
        let is_http = header.get("Content-Type").is_some_and(|kind| kind.starts_with("application/http"));
        Self {
            block: header.get("WARC-Block-Digest").and_then(Hasher::for_label),
            payload: payload.and_then(Hasher::for_label),
            head: is_http.then(Vec::new),
        }
    }

    fn update(&mut self, bytes: &[u8], max_header: usize) {
        if let Some(block) = &mut self.block {
            block.update(bytes);
        }
        let Some(payload) = &mut self.payload else { return };
        let Some(head) = &mut self.head else { return payload.update(bytes) };
        head.extend_from_slice(bytes);
        if let Some(end) = http::header_end(head) {
            payload.update(&head[end..]);
            self.head = None;
        } else if head.len() > max_header {
            // Not an HTTP message that we can read: its payload has no start.
            self.payload = None;
        }
    }

    fn finish(self, header: &RecordHeader) -> Vec<RecordProblem> {
        let compare = |hasher: Option<Hasher>, which, name| {
            let (hasher, expected) = (hasher?, header.get(name)?);
            let found = hasher.mismatch(expected)?;
            Some(RecordProblem::Digest { which, expected: expected.to_owned(), found })
        };
        let block = compare(self.block, "block", "WARC-Block-Digest");
        let payload = compare(self.payload, "payload", "WARC-Payload-Digest");
        block.into_iter().chain(payload).collect()
    }
}
