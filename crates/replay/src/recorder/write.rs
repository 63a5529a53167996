//! The records of an exchange: request, response or revisit, and metadata with frames or the error.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RecorderOptions;
use crate::{
    ArchiveError,
    exchange::{Exchange, Outcome, Request, Response, Timing},
    frames,
    warc::{self, RecordHeader, digest::sha256_label, http},
};

/// The content type of the metadata record of a request that failed.
pub(crate) const ERROR_TYPE: &str = "application/vnd.webgym.error+json";
const REVISIT_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// A revisit record is not worth its own headers below this.
const MIN_REVISIT_BYTES: usize = 256;

/// The record that has a payload which others refer to.
#[derive(Clone, Debug)]
pub(crate) struct Original {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) date: Timestamp,
}

/// What WARC has no field for, in the header `WARC-JSON-Metadata` under the name `webgym`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Extra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timing: Option<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Wrapped {
    #[serde(default)]
    pub(crate) webgym: Extra,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NetworkError {
    pub(crate) error: String,
}

pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) is_revisit: bool,
    /// A new payload with its digest.
    pub(super) original: Option<(String, Original)>,
}

/// Encodes an exchange. `find` returns the record that already has a payload.
pub(super) fn encode_exchange(
    exchange: &Exchange,
    find: impl Fn(&str) -> Option<Original>,
) -> Result<Encoded, ArchiveError> {
    let url = target_url(&exchange.request.url)?;
    let failed = |error: std::io::Error| ArchiveError::Exchange {
        what: exchange.request.url.clone(),
        problem: error.to_string(),
    };
    let request_id = warc::record_id();
    let mut encoded = Encoded { bytes: Vec::new(), is_revisit: false, original: None };
    encoded.bytes = request_record(exchange, &url, &request_id).map_err(failed)?;
    let last_id = match &exchange.outcome {
        Outcome::Response(response) => {
            let id = warc::record_id();
            let record = ResponseRecord { exchange, response, url: &url, id: &id, request_id: &request_id };
            record.append_to(&mut encoded, find).map_err(failed)?;
            id
        }
        Outcome::Failed(error) => {
            let block = serde_json::to_vec(&NetworkError { error: error.clone() }).unwrap_or_default();
            let record =
                metadata_record(exchange, "error", &url, &request_id, ERROR_TYPE, &block).map_err(failed)?;
            encoded.bytes.extend(record);
            request_id
        }
    };
    if !exchange.frames.is_empty() {
        let block = frames::to_lines(&exchange.frames);
        let record = metadata_record(exchange, "frames", &url, &last_id, frames::FRAMES_TYPE, &block)
            .map_err(failed)?;
        encoded.bytes.extend(record);
    }
    Ok(encoded)
}

/// Returns the URL without fragment, which a server never sees.
fn target_url(url: &str) -> Result<String, ArchiveError> {
    let invalid = |problem: String| ArchiveError::Exchange {
        what: url.to_owned(),
        problem: format!("{problem}; an absolute URL is expected"),
    };
    let mut parsed = url::Url::parse(&http::stored_url(url)).map_err(|error| invalid(error.to_string()))?;
    if !parsed.has_host() {
        return Err(invalid("it has no host".into()));
    }
    parsed.set_fragment(None);
    Ok(parsed.into())
}

fn request_record(exchange: &Exchange, url: &str, id: &str) -> std::io::Result<Vec<u8>> {
    let mut request = Request { url: url.to_owned(), ..exchange.request.clone() };
    remove_transfer_encoding(&mut request.headers);
    if !request.body.is_empty() {
        // Readers need it to find the end of the body.
        request.headers.set("Content-Length", request.body.len().to_string());
    }
    let head = http::request_head(&request);
    let mut header = RecordHeader::new("request", id, exchange.started);
    header.push("WARC-Target-URI", url);
    header.push("Content-Type", "application/http; msgtype=request");
    header.push("WARC-Payload-Digest", sha256_label(&request.body));
    header.push("WARC-Block-Digest", sha256_label(&[head.as_slice(), &request.body].concat()));
    push_shared(&mut header, exchange);
    warc::encode(&header, &[&head, &request.body])
}

fn remove_transfer_encoding(headers: &mut crate::Headers) {
    headers.rename("transfer-encoding", "X-Archive-Orig-Transfer-Encoding");
}

/// The headers that request and response have in common. Both have them, so that a request that failed has them too.
fn push_shared(header: &mut RecordHeader, exchange: &Exchange) {
    if let Some(remote) = exchange.remote {
        header.push("WARC-IP-Address", remote.to_string());
    }
    if let Some(protocol) = &exchange.protocol {
        header.push("WARC-Protocol", protocol);
    }
    if let Some(kind) = &exchange.resource_type {
        header.push("WARC-Resource-Type", kind);
    }
    let extra = Extra { timing: exchange.timing, session: exchange.session.clone() };
    if extra != Extra::default()
        && let Ok(json) = serde_json::to_string(&Wrapped { webgym: extra })
    {
        header.push("WARC-JSON-Metadata", json);
    }
}

struct ResponseRecord<'a> {
    exchange: &'a Exchange,
    response: &'a Response,
    url: &'a str,
    id: &'a str,
    request_id: &'a str,
}

impl ResponseRecord<'_> {
    fn append_to(
        &self,
        encoded: &mut Encoded,
        find: impl Fn(&str) -> Option<Original>,
    ) -> std::io::Result<()> {
        let mut response = self.response.clone();
        remove_transfer_encoding(&mut response.headers);
        let head = http::response_head(&response);
        let digest = sha256_label(&response.body);
        let is_large = response.body.len() >= MIN_REVISIT_BYTES;
        let original = if is_large { find(&digest) } else { None };
        let kind = if original.is_some() { "revisit" } else { "response" };
        let mut header = RecordHeader::new(kind, self.id, self.exchange.started);
        header.push("WARC-Target-URI", self.url);
        header.push("WARC-Concurrent-To", self.request_id);
        header.push("Content-Type", "application/http; msgtype=response");
        header.push("WARC-Payload-Digest", digest.as_str());
        push_shared(&mut header, self.exchange);
        if let Some(original) = original {
            header.push("WARC-Profile", REVISIT_PROFILE);
            header.push("WARC-Refers-To", original.id);
            header.push("WARC-Refers-To-Target-URI", original.url);
            header.push("WARC-Refers-To-Date", warc::warc_date(original.date));
            header.push("WARC-Block-Digest", sha256_label(&head));
            encoded.bytes.extend(warc::encode(&header, &[&head])?);
            encoded.is_revisit = true;
            return Ok(());
        }
        header.push("WARC-Block-Digest", sha256_label(&[head.as_slice(), &response.body].concat()));
        encoded.bytes.extend(warc::encode(&header, &[&head, &response.body])?);
        let (id, url) = (self.id.to_owned(), self.url.to_owned());
        encoded.original = is_large.then_some((digest, Original { id, url, date: self.exchange.started }));
        Ok(())
    }
}

/// Metadata has a URN as its target, so that no index takes it for a capture of the page.
fn metadata_record(
    exchange: &Exchange,
    name: &str,
    url: &str,
    belongs_to: &str,
    content_type: &str,
    block: &[u8],
) -> std::io::Result<Vec<u8>> {
    let mut header = RecordHeader::new("metadata", &warc::record_id(), exchange.started);
    header.push("WARC-Target-URI", format!("urn:webgym-{name}:{url}"));
    header.push("WARC-Concurrent-To", belongs_to);
    header.push("Content-Type", content_type);
    header.push("WARC-Block-Digest", sha256_label(block));
    warc::encode(&header, &[block])
}

/// The first record of a file.
pub(super) fn encode_info(name: &str, now: Timestamp, options: &RecorderOptions) -> std::io::Result<Vec<u8>> {
    let redaction = serde_json::to_string(&options.redaction).unwrap_or_default();
    let block = format!(
        "software: {}\r\nformat: WARC file version 1.1\r\n\
         conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
         webgym-redaction: {redaction}\r\n",
        options.software
    );
    let mut header = RecordHeader::new("warcinfo", &warc::record_id(), now);
    header.push("WARC-Filename", name);
    header.push("Content-Type", "application/warc-fields");
    header.push("WARC-Block-Digest", sha256_label(block.as_bytes()));
    warc::encode(&header, &[block.as_bytes()])
}
