//! An archive opened for reading. It is opened once and shared: all requests, headers and keys are in memory, bodies are
//! read and decompressed when they are first needed and then kept, up to a bound.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    ArchiveError, Outcome, Redaction, Response,
    error::RecordProblem,
    exchange::Exchange,
    matching::{MatchRules, Sessions, Table},
    scan::{self, Payload, Scan, StoredExchange},
    warc::{Block, Limits, WarcReader, http},
};

/// How an archive is read.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    pub rules: MatchRules,
    pub limits: Limits,
    /// Decompressed bodies that are kept in memory, in bytes. Others are read again each time.
    pub max_cached: u64,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        Self { rules: MatchRules::default(), limits: Limits::default(), max_cached: 1 << 30 }
    }
}

/// A recorded archive, shared by all sessions that replay it.
#[derive(Debug)]
pub struct Archive {
    scan: Scan,
    files: Vec<File>,
    /// For each exchange: the exchange whose record has the body.
    holders: Vec<Option<u32>>,
    bodies: Vec<OnceLock<Bytes>>,
    cached: AtomicU64,
    table: Table,
    sessions: Sessions,
    options: ArchiveOptions,
}

impl Archive {
    pub fn open(directory: &Path, options: ArchiveOptions) -> Result<Arc<Self>, ArchiveError> {
        Self::from_scan(scan::scan(directory, options.limits)?, options).map(Arc::new)
    }

    /// Opens WARC files that are not in an archive's directory.
    pub fn open_files(files: Vec<PathBuf>, options: ArchiveOptions) -> Result<Arc<Self>, ArchiveError> {
        Self::from_scan(scan::scan_files(files, options.limits)?, options).map(Arc::new)
    }

    fn from_scan(mut scan: Scan, options: ArchiveOptions) -> Result<Self, ArchiveError> {
        let open = |path: &PathBuf| File::open(path).map_err(ArchiveError::io("open", path));
        let files = scan.files.iter().map(open).collect::<Result<_, _>>()?;
        let holders = find_holders(&mut scan);
        let table = Table::build(&scan.exchanges, &options.rules);
        let bodies = (0..scan.exchanges.len()).map(|_| OnceLock::new()).collect();
        let sessions = Sessions::collect(&scan.exchanges);
        Ok(Self { scan, files, holders, bodies, cached: AtomicU64::new(0), table, sessions, options })
    }

    /// All exchanges in the order of recording.
    pub fn exchanges(&self) -> &[StoredExchange] {
        &self.scan.exchanges
    }

    /// What could not be used.
    pub fn problems(&self) -> &[ArchiveError] {
        &self.scan.problems
    }

    pub fn redaction(&self) -> &Redaction {
        &self.scan.redaction
    }

    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// When the recording of a session began, or that of the whole archive if it has no such session.
    pub fn started(&self, session: Option<&str>) -> Option<Timestamp> {
        let of = |session: &str| {
            let exchanges = self.scan.exchanges.iter();
            exchanges
                .filter(|stored| stored.session.as_deref() == Some(session))
                .map(|stored| stored.date)
                .min()
        };
        session.and_then(of).or_else(|| self.scan.exchanges.iter().map(|stored| stored.date).min())
    }

    pub(crate) fn rules(&self) -> &MatchRules {
        &self.options.rules
    }

    /// Returns the body of the response of an exchange. It is empty for a request that failed.
    pub fn body(&self, index: usize) -> Result<Bytes, ArchiveError> {
        let Some(holder) = self.holders.get(index).copied().flatten() else { return Ok(Bytes::new()) };
        let (slot, stored) = (&self.bodies[holder as usize], &self.scan.exchanges[holder as usize]);
        if let Some(body) = slot.get() {
            return Ok(body.clone());
        }
        let body = self.read_body(stored)?;
        let size = body.len() as u64;
        if self.cached.fetch_add(size, Ordering::Relaxed) + size > self.options.max_cached {
            self.cached.fetch_sub(size, Ordering::Relaxed);
            return Ok(body);
        }
        if slot.set(body.clone()).is_err() {
            // Another session was faster.
            self.cached.fetch_sub(size, Ordering::Relaxed);
        }
        Ok(body)
    }

    fn read_body(&self, stored: &StoredExchange) -> Result<Bytes, ArchiveError> {
        let path = &self.scan.files[stored.file];
        let mut bytes = vec![0; stored.length as usize];
        let read = self.files[stored.file].read_exact_at(&mut bytes, stored.offset);
        read.map_err(ArchiveError::io("read", path))?;
        let wrong = |problem| ArchiveError::record(path, stored.offset, problem);
        let record = WarcReader::new(path, bytes.as_slice(), self.options.limits).next();
        let record = record.ok_or_else(|| wrong(RecordProblem::Truncated))?;
        // Offsets in messages of the reader are those within the record.
        let record = record.map_err(|error| match error {
            ArchiveError::Record { problem, .. } => wrong(problem),
            other => other,
        })?;
        if let Some(problem) = record.problems.into_iter().next() {
            return Err(wrong(problem));
        }
        match record.block {
            Block::Complete(block) => {
                Ok(http::parse_response(&block).map_err(|error| wrong(RecordProblem::Http(error)))?.body)
            }
            Block::TooLarge(size) => {
                Err(wrong(RecordProblem::TooLarge { size, limit: self.options.limits.max_block }))
            }
        }
    }

    /// Returns an exchange with its body, as it was recorded.
    pub fn exchange(&self, index: usize) -> Result<Exchange, ArchiveError> {
        let stored = &self.scan.exchanges[index];
        let outcome = match (&stored.payload, &stored.response) {
            (Payload::Failed(error), _) => Outcome::Failed(error.clone()),
            (_, Some(response)) => {
                Outcome::Response(Response { body: self.body(index)?, ..response.clone() })
            }
            (_, None) => Outcome::Response(Response::default()),
        };
        Ok(Exchange {
            started: stored.date,
            request: stored.request.clone(),
            outcome,
            timing: stored.timing,
            remote: stored.remote,
            protocol: stored.protocol.clone(),
            session: stored.session.clone(),
            resource_type: stored.resource_type.clone(),
            frames: stored.frames.clone(),
        })
    }
}

/// Returns for each exchange the position of the one that has its body: by the id in its revisit record, otherwise by the
/// digest. Positions and not ids, because other programs may leave out ids. A revisit record whose body is missing is removed
/// and reported.
fn find_holders(scan: &mut Scan) -> Vec<Option<u32>> {
    let stored: Vec<(String, String)> = scan
        .exchanges
        .iter()
        .filter(|stored| stored.payload == Payload::Here)
        .map(|stored| (stored.id.clone(), stored.digest.clone()))
        .collect();
    let ids: HashSet<&str> = stored.iter().map(|(id, _)| id.as_str()).collect();
    let digests: HashSet<&str> = stored.iter().map(|(_, digest)| digest.as_str()).collect();
    let exchanges = std::mem::take(&mut scan.exchanges);
    for stored in exchanges {
        match &stored.payload {
            Payload::Elsewhere { id, digest }
                if !id.as_deref().is_some_and(|id| ids.contains(id))
                    && !digests.contains(digest.as_str()) =>
            {
                let problem = RecordProblem::Dangling(stored.digest);
                scan.problems.push(ArchiveError::record(&scan.files[stored.file], stored.offset, problem));
            }
            _ => scan.exchanges.push(stored),
        }
    }
    let (mut by_id, mut by_digest) = (HashMap::new(), HashMap::new());
    for (index, stored) in scan.exchanges.iter().enumerate() {
        if stored.payload == Payload::Here {
            by_id.insert(stored.id.as_str(), index as u32);
            by_digest.entry(stored.digest.as_str()).or_insert(index as u32);
        }
    }
    let holder = |(index, stored): (usize, &StoredExchange)| match &stored.payload {
        Payload::Here => Some(index as u32),
        Payload::Elsewhere { id, digest } => {
            let named = id.as_deref().and_then(|id| by_id.get(id));
            named.or_else(|| by_digest.get(digest.as_str())).copied()
        }
        Payload::Failed(_) => None,
    };
    scan.exchanges.iter().enumerate().map(holder).collect()
}
