//! An archive as a HAR file with bodies.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::format::{
    Content, Entry, Har, HarRequest, HarResponse, Log, Message, Pair, PostData, Timings, unknown,
};
use crate::{
    Archive, ArchiveError, Exchange, Headers, Outcome, Response, encoding,
    exchange::{Direction, FrameData},
};

/// Writes all exchanges of an archive in the order of recording and returns how many there are.
pub fn export(archive: &Archive, output: &mut impl std::io::Write) -> Result<usize, ArchiveError> {
    let count = archive.exchanges().len();
    let entries = (0..count).map(|index| archive.exchange(index).map(entry)).collect::<Result<_, _>>()?;
    let har = Har { log: Log { entries, ..Log::default() } };
    let written = serde_json::to_writer_pretty(&mut *output, &har).map_err(std::io::Error::from);
    let written = written.and_then(|()| output.write_all(b"\n"));
    written.map_err(ArchiveError::io("write", std::path::Path::new("the HAR file")))?;
    Ok(count)
}

fn entry(exchange: Exchange) -> Entry {
    let timing = exchange.timing.unwrap_or_default();
    let version = exchange.protocol.clone().unwrap_or_else(|| "HTTP/1.1".into());
    let request = &exchange.request;
    let query = url::Url::parse(&request.url).ok();
    let query =
        query.iter().flat_map(|url| url.query_pairs()).map(|(name, value)| pair(&name, &value)).collect();
    Entry {
        started_date_time: format!("{:.3}", exchange.started),
        time: timing.wait_ms + timing.receive_ms,
        request: HarRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            http_version: version.clone(),
            cookies: cookies(&request.headers, "cookie"),
            headers: pairs(&request.headers),
            query_string: query,
            post_data: (!request.body.is_empty()).then(|| post_data(&request.headers, &request.body)),
            headers_size: unknown(),
            body_size: size_of_body(&request.body),
        },
        response: match &exchange.outcome {
            Outcome::Response(response) => har_response(response, version),
            Outcome::Failed(error) => failed(error),
        },
        cache: serde_json::Map::new(),
        timings: Timings { send: 0.0, wait: timing.wait_ms, receive: timing.receive_ms },
        server_ip_address: exchange.remote.map(|address| address.to_string()),
        messages: messages(&exchange),
        resource_type: exchange.resource_type,
    }
}

fn size_of_body(body: &[u8]) -> i64 {
    i64::try_from(body.len()).unwrap_or(i64::MAX)
}

fn pair(name: &str, value: &str) -> Pair {
    Pair { name: name.to_owned(), value: value.to_owned() }
}

/// Bytes that are not UTF-8 are read as Latin-1, as browsers do.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect())
}

fn pairs(headers: &Headers) -> Vec<Pair> {
    headers.iter().map(|(name, value)| pair(name, &text_of(value))).collect()
}

fn cookies(headers: &Headers, name: &str) -> Vec<Pair> {
    let values =
        headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| text_of(value));
    let is_list = name == "cookie";
    values
        .flat_map(|value| {
            let cookies = value.split(';').take(if is_list { usize::MAX } else { 1 });
            let cookies = cookies.filter_map(|cookie| cookie.trim().split_once('='));
            cookies.map(|(name, value)| pair(name, value)).collect::<Vec<_>>()
        })
        .collect()
}

fn post_data(headers: &Headers, body: &[u8]) -> PostData {
    let mime_type = headers.text("content-type").unwrap_or_default().to_owned();
    if let Ok(text) = std::str::from_utf8(body) {
        return PostData { mime_type, text: Some(text.to_owned()), ..PostData::default() };
    }
    let (text, encoding) = (Some(STANDARD.encode(body)), Some("base64".into()));
    PostData { mime_type, text, encoding, ..PostData::default() }
}

fn har_response(response: &Response, version: String) -> HarResponse {
    HarResponse {
        status: i64::from(response.status),
        status_text: response.reason.clone(),
        http_version: version,
        cookies: cookies(&response.headers, "set-cookie"),
        headers: pairs(&response.headers),
        content: content(response),
        redirect_url: response.headers.get("location").map(text_of).unwrap_or_default(),
        headers_size: unknown(),
        body_size: size_of_body(&response.body),
        error: None,
    }
}

fn failed(error: &str) -> HarResponse {
    HarResponse {
        status: 0,
        status_text: String::new(),
        http_version: String::new(),
        cookies: Vec::new(),
        headers: Vec::new(),
        content: Content { mime_type: "x-unknown".into(), ..Content::default() },
        redirect_url: String::new(),
        headers_size: unknown(),
        body_size: unknown(),
        error: Some(error.to_owned()),
    }
}

/// The body without its content encoding, as text if it is UTF-8.
fn content(response: &Response) -> Content {
    let decoded = encoding::decode(&response.headers, &response.body);
    let comment =
        decoded.is_none().then(|| "still has its content encoding, which is unknown or broken".to_owned());
    let body = decoded.as_deref().unwrap_or(&response.body);
    let mime_type = response.headers.text("content-type").unwrap_or("x-unknown").to_owned();
    let size = size_of_body(body);
    match std::str::from_utf8(body) {
        Ok(text) => Content { size, mime_type, text: Some(text.to_owned()), comment, ..Content::default() },
        Err(_) => Content {
            size,
            mime_type,
            text: Some(STANDARD.encode(body)),
            encoding: Some("base64".into()),
            comment,
            file: None,
        },
    }
}

fn messages(exchange: &Exchange) -> Vec<Message> {
    let start = exchange.started.as_millisecond() as f64 / 1000.0;
    let frames = exchange.frames.iter();
    frames
        .filter_map(|frame| {
            let (opcode, data) = match &frame.data {
                FrameData::Text(text) => (1, text.clone()),
                FrameData::Binary(bytes) => (2, STANDARD.encode(bytes)),
                // HAR has no form for these.
                FrameData::Close { .. } | FrameData::Chunk(_) => return None,
            };
            let kind = if frame.direction == Direction::Sent { "send" } else { "receive" };
            Some(Message { kind: kind.into(), time: start + frame.at_ms / 1000.0, opcode, data })
        })
        .collect()
}
