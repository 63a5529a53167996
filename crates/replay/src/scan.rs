//! Reads all records of an archive once and joins what belongs together: requests, responses, metadata.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    ArchiveError,
    error::RecordProblem,
    exchange::{Frame, Request, Response, Timing},
    frames, layout,
    recorder::write::{ERROR_TYPE, NetworkError, Wrapped},
    redact::Redaction,
    warc::{Block, Limits, ReadRecord, WarcReader, digest::sha256_label, http},
};

/// Where the body of a response is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the response's own record.
    Here,
    /// In another record, by its id and by its digest.
    Elsewhere { id: Option<String>, digest: String },
    /// There is no response: the network error.
    Failed(String),
}

/// An exchange in an archive. The body of its response stays on disk.
#[derive(Clone, Debug)]
pub struct StoredExchange {
    /// The file, as an index into [`Scan::files`], with the place of the response in it, or of the request if that failed.
    pub file: usize,
    pub offset: u64,
    pub length: u64,
    pub id: String,
    pub date: Timestamp,
    pub request: Request,
    /// Status and headers; its body is empty.
    pub response: Option<Response>,
    pub payload: Payload,
    pub digest: String,
    /// The size of the body, also if it is elsewhere.
    pub body_length: u64,
    pub timing: Option<Timing>,
    pub remote: Option<IpAddr>,
    pub protocol: Option<String>,
    pub session: Option<String>,
    pub resource_type: Option<String>,
    pub frames: Vec<Frame>,
}

/// Everything that is in an archive, in the order of recording.
#[derive(Debug, Default)]
pub struct Scan {
    pub files: Vec<PathBuf>,
    pub exchanges: Vec<StoredExchange>,
    /// What could not be used, in the order of the files.
    pub problems: Vec<ArchiveError>,
    /// What was removed when it was recorded; nothing in archives of other programs.
    pub redaction: Redaction,
    pub records: u64,
}

/// Reads the WARC files of a directory.
pub fn scan(directory: &Path, limits: Limits) -> Result<Scan, ArchiveError> {
    scan_files(layout::warc_files(directory)?, limits)
}

/// Reads these WARC files, which may refer to each other's payloads.
pub fn scan_files(files: Vec<PathBuf>, limits: Limits) -> Result<Scan, ArchiveError> {
    let mut collected = Collected { limits, ..Collected::default() };
    for (file, path) in files.iter().enumerate() {
        for record in WarcReader::open(path, limits)? {
            match record {
                Ok(record) => collected.add(file, path, record),
                Err(error) => collected.problems.push(error),
            }
        }
    }
    Ok(collected.join(files))
}

#[derive(Default)]
struct Collected {
    limits: Limits,
    ids: HashSet<String>,
    requests: Vec<StoredRequest>,
    /// Records of requests by their own id and by the id that they are concurrent to.
    requests_by_id: HashMap<String, usize>,
    responses: Vec<StoredExchange>,
    concurrent: Vec<Option<String>>,
    frames: HashMap<String, Vec<Frame>>,
    errors: HashMap<String, String>,
    problems: Vec<ArchiveError>,
    redaction: Option<Redaction>,
    records: u64,
}

struct StoredRequest {
    place: StoredExchange,
    is_joined: bool,
}

impl Collected {
    fn add(&mut self, file: usize, path: &Path, record: ReadRecord) {
        self.records += 1;
        let offset = record.offset;
        let problem = |problem| ArchiveError::record(path, offset, problem);
        if !record.problems.is_empty() {
            self.problems.extend(record.problems.into_iter().map(problem));
            return;
        }
        let id = record.header.id().to_owned();
        if !id.is_empty() && !self.ids.insert(id.clone()) {
            self.problems.push(problem(RecordProblem::DuplicateId(id)));
            return;
        }
        if let Err(error) = self.add_intact(file, &record) {
            self.problems.push(problem(error));
        }
    }

    fn add_intact(&mut self, file: usize, record: &ReadRecord) -> Result<(), RecordProblem> {
        let kind = record.header.kind().to_owned();
        let is_http =
            record.header.get("Content-Type").is_some_and(|kind| kind.starts_with("application/http"));
        if !matches!(kind.as_str(), "request" | "response" | "revisit" | "metadata" | "warcinfo") {
            return Ok(());
        }
        let block = match &record.block {
            Block::Complete(block) => block,
            Block::TooLarge(size) => {
                return Err(RecordProblem::TooLarge { size: *size, limit: self.limits.max_block });
            }
        };
        let concurrent = record.header.get("WARC-Concurrent-To").map(str::to_owned);
        match kind.as_str() {
            "warcinfo" => self.add_info(block),
            "metadata" => return self.add_metadata(record, block, concurrent),
            "request" if is_http => {
                let mut place = place_of(file, record)?;
                place.request =
                    http::parse_request(block, &place.request.url).map_err(RecordProblem::Http)?;
                let index = self.requests.len();
                self.requests_by_id.insert(place.id.clone(), index);
                if let Some(other) = concurrent {
                    self.requests_by_id.entry(other).or_insert(index);
                }
                self.requests.push(StoredRequest { place, is_joined: false });
            }
            "response" | "revisit" if is_http => {
                let mut place = place_of(file, record)?;
                let mut response = http::parse_response(block).map_err(RecordProblem::Http)?;
                let body = std::mem::take(&mut response.body);
                place.body_length = body.len() as u64;
                place.digest = record
                    .header
                    .get("WARC-Payload-Digest")
                    .map_or_else(|| sha256_label(&body), str::to_owned);
                // "Not modified" has no body of its own, and needs none.
                if kind == "revisit" && response.status != 304 {
                    let id = record.header.get("WARC-Refers-To").map(str::to_owned);
                    place.payload = Payload::Elsewhere { id, digest: place.digest.clone() };
                }
                place.response = Some(response);
                self.responses.push(place);
                self.concurrent.push(concurrent);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_info(&mut self, block: &[u8]) {
        let text = String::from_utf8_lossy(block);
        let redaction = text.lines().find_map(|line| line.strip_prefix("webgym-redaction:"));
        if let Some(redaction) = redaction.and_then(|json| serde_json::from_str::<Redaction>(json).ok()) {
            self.redaction.get_or_insert_with(Redaction::none).merge(&redaction);
        }
    }

    fn add_metadata(
        &mut self,
        record: &ReadRecord,
        block: &[u8],
        concurrent: Option<String>,
    ) -> Result<(), RecordProblem> {
        let Some(concurrent) = concurrent else { return Ok(()) };
        match record.header.get("Content-Type") {
            Some(frames::FRAMES_TYPE) => {
                self.frames.insert(concurrent, frames::from_lines(block).map_err(RecordProblem::Metadata)?);
            }
            Some(ERROR_TYPE) => {
                let parsed: Result<NetworkError, _> = serde_json::from_slice(block);
                let parsed = parsed.map_err(|error| RecordProblem::Metadata(error.to_string()))?;
                self.errors.insert(concurrent, parsed.error);
            }
            _ => {}
        }
        Ok(())
    }

    fn join(mut self, files: Vec<PathBuf>) -> Scan {
        let mut exchanges = Vec::with_capacity(self.responses.len());
        for (mut response, concurrent) in std::mem::take(&mut self.responses).into_iter().zip(self.concurrent)
        {
            let by_concurrent = concurrent.and_then(|id| self.requests_by_id.get(&id));
            let request = by_concurrent.or_else(|| self.requests_by_id.get(&response.id)).copied();
            if let Some(found) = request.and_then(|index| self.requests.get_mut(index)) {
                found.is_joined = true;
                response.request = found.place.request.clone();
            }
            if response.response.as_ref().is_some_and(|response| response.status == 101) {
                response.request.url = http::web_socket_url(&response.request.url).into_owned();
            }
            response.frames = self.frames.remove(&response.id).unwrap_or_default();
            exchanges.push(response);
        }
        for StoredRequest { mut place, is_joined } in self.requests {
            // A request without response and error was cut off by a kill.
            if let Some(error) = self.errors.remove(&place.id).filter(|_| !is_joined) {
                place.payload = Payload::Failed(error);
                exchanges.push(place);
            }
        }
        exchanges.sort_by_key(|exchange| exchange.date);
        set_lengths_of_revisits(&mut exchanges);
        let redaction = self.redaction.unwrap_or_else(Redaction::none);
        Scan { files, exchanges, problems: self.problems, redaction, records: self.records }
    }
}

fn set_lengths_of_revisits(exchanges: &mut [StoredExchange]) {
    let stored = exchanges.iter().filter(|exchange| exchange.payload == Payload::Here);
    let lengths: HashMap<String, u64> =
        stored.map(|exchange| (exchange.digest.clone(), exchange.body_length)).collect();
    for exchange in exchanges {
        if matches!(exchange.payload, Payload::Elsewhere { .. }) {
            exchange.body_length = lengths.get(&exchange.digest).copied().unwrap_or_default();
        }
    }
}

fn place_of(file: usize, record: &ReadRecord) -> Result<StoredExchange, RecordProblem> {
    let header = &record.header;
    let missing = |name: &str| RecordProblem::Header(format!("it has no valid {name}"));
    let extra = header.get("WARC-JSON-Metadata").and_then(|json| serde_json::from_str::<Wrapped>(json).ok());
    let extra = extra.map(|wrapped| wrapped.webgym).unwrap_or_default();
    Ok(StoredExchange {
        file,
        offset: record.offset,
        length: record.length,
        id: header.id().to_owned(),
        date: header.date().ok_or_else(|| missing("WARC-Date"))?,
        request: Request::get(header.target().ok_or_else(|| missing("WARC-Target-URI"))?),
        response: None,
        payload: Payload::Here,
        digest: String::new(),
        body_length: 0,
        timing: extra.timing,
        remote: header.get("WARC-IP-Address").and_then(|address| address.parse().ok()),
        protocol: header.get("WARC-Protocol").map(str::to_owned),
        session: extra.session,
        resource_type: header.get("WARC-Resource-Type").map(str::to_owned),
        frames: Vec::new(),
    })
}
