//! HAR files into a recorder. What a HAR file lacks is reported, never invented.

use std::{fs, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use jiff::Timestamp;

use super::format::{Entry, Har, HarResponse, Pair, PostData};
use crate::{
    ArchiveError, Exchange, Headers, Outcome, Recorder, Request, Response,
    exchange::{Direction, Frame, FrameData, Timing},
};

/// The largest HAR file that is read.
const MAX_FILE: u64 = 2 << 30;

/// What was imported, and what not.
#[derive(Debug, Default)]
pub struct HarReport {
    pub exchanges: usize,
    /// Responses whose body is not in the file. They are not imported, because a replay would show empty pages.
    pub without_body: Vec<String>,
    /// Entries that are not valid, with the reason.
    pub invalid: Vec<String>,
}

/// Imports a HAR file.
pub fn import(path: &Path, recorder: &Recorder) -> Result<HarReport, ArchiveError> {
    let size = fs::metadata(path).map_err(ArchiveError::io("read", path))?.len();
    if size > MAX_FILE {
        let problem = format!("the file has {size} bytes, more than the limit of {MAX_FILE}");
        return Err(ArchiveError::file(path, problem));
    }
    let text = fs::read(path).map_err(ArchiveError::io("read", path))?;
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let har: Har = serde_json::from_slice(text)
        .map_err(|error| ArchiveError::file(path, format!("not a HAR file: {error}")))?;
    let mut report = HarReport::default();
    for (index, entry) in har.log.entries.into_iter().enumerate() {
        let url = entry.request.url.clone();
        if !url.starts_with("http") && !url.starts_with("ws") {
            // data: and blob: URLs never reach the network.
            continue;
        }
        match convert(entry, path.parent().unwrap_or(Path::new("."))) {
            Ok(Some(exchange)) => match recorder.append(exchange) {
                Ok(()) => report.exchanges += 1,
                Err(ArchiveError::Exchange { problem, .. }) => {
                    report.invalid.push(format!("entry {index}, {url}: {problem}"));
                }
                Err(error) => return Err(error),
            },
            Ok(None) => report.without_body.push(url),
            Err(problem) => report.invalid.push(format!("entry {index}, {url}: {problem}")),
        }
    }
    Ok(report)
}

/// Converts an entry, or returns nothing if its body is missing.
fn convert(entry: Entry, folder: &Path) -> Result<Option<Exchange>, String> {
    let started: Timestamp = entry
        .started_date_time
        .parse()
        .map_err(|_| format!("startedDateTime is {:?}, not a time", entry.started_date_time))?;
    let Some(outcome) = outcome(entry.response, folder)? else { return Ok(None) };
    let body = entry.request.post_data.map(post_body).transpose()?.unwrap_or_default();
    let method = entry.request.method;
    let request = Request { method, url: entry.request.url, headers: headers(entry.request.headers), body };
    let mut exchange = Exchange::new(started, request, outcome);
    exchange.timing =
        Some(Timing { wait_ms: entry.timings.wait.max(0.0), receive_ms: entry.timings.receive.max(0.0) });
    let address = entry.server_ip_address.as_deref().map(|address| address.trim_matches(['[', ']']));
    exchange.remote = address.and_then(|address| address.parse().ok());
    exchange.protocol = Some(entry.request.http_version).filter(|version| !version.is_empty());
    exchange.resource_type = entry.resource_type;
    let start = started.as_millisecond() as f64;
    exchange.frames = entry
        .messages
        .into_iter()
        .map(|message| {
            let is_sent = message.kind == "send";
            let data = match message.opcode {
                2 => FrameData::Binary(STANDARD.decode(&message.data).map_err(|error| error.to_string())?),
                _ => FrameData::Text(message.data),
            };
            let direction = if is_sent { Direction::Sent } else { Direction::Received };
            Ok(Frame { at_ms: (message.time * 1000.0 - start).max(0.0), direction, data })
        })
        .collect::<Result<_, String>>()?;
    Ok(Some(exchange))
}

fn outcome(response: HarResponse, folder: &Path) -> Result<Option<Outcome>, String> {
    if response.status <= 0 {
        let error = response.error.unwrap_or_else(|| "net::ERR_FAILED".into());
        return Ok(Some(Outcome::Failed(error)));
    }
    let status = u16::try_from(response.status).map_err(|_| format!("the status is {}", response.status))?;
    let content = response.content;
    let body = match (content.text, content.encoding.as_deref(), content.file) {
        (Some(text), Some("base64"), _) => {
            STANDARD.decode(text.trim()).map_err(|error| format!("the body is not Base64: {error}"))?.into()
        }
        (Some(text), ..) => Bytes::from(text),
        (None, _, Some(file)) => read_attachment(folder, &file)?,
        (None, _, None) if content.size > 0 => return Ok(None),
        (None, _, None) => Bytes::new(),
    };
    let mut headers = headers(response.headers);
    // HAR has decoded bodies under the headers of encoded ones.
    headers.rename("content-encoding", "X-Archive-Orig-Content-Encoding");
    headers.rename("transfer-encoding", "X-Archive-Orig-Transfer-Encoding");
    if headers.contains("content-length") && !body.is_empty() {
        headers.set("Content-Length", body.len().to_string());
    }
    Ok(Some(Outcome::Response(Response { status, reason: response.status_text, headers, body })))
}

/// Reads a file beside the HAR file; its name must not lead anywhere else.
fn read_attachment(folder: &Path, name: &str) -> Result<Bytes, String> {
    let is_plain = !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != "..";
    if !is_plain {
        return Err(format!("the body is in {name:?}, which is not a file name beside the HAR file"));
    }
    let path = folder.join(name);
    fs::read(&path)
        .map(Bytes::from)
        .map_err(|error| format!("cannot read the body in {}: {error}", path.display()))
}

fn headers(pairs: Vec<Pair>) -> Headers {
    // HTTP/2's pseudo-headers are in other fields.
    let pairs = pairs.into_iter().filter(|pair| !pair.name.starts_with(':'));
    pairs.map(|pair| (pair.name, pair.value.into_bytes())).collect()
}

fn post_body(data: PostData) -> Result<Bytes, String> {
    match (data.text, data.encoding.as_deref()) {
        (Some(text), Some("base64")) => STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(|error| format!("the request's body is not Base64: {error}")),
        (Some(text), _) if !text.is_empty() || data.params.is_empty() => Ok(text.into()),
        _ => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            for pair in &data.params {
                form.append_pair(&pair.name, &pair.value);
            }
            Ok(form.finish().into())
        }
    }
}
