//! Removes fields from WebSocket messages and from streams of server-sent events.

use super::{Redaction, body, has};
use crate::{
    encoding,
    exchange::{Direction, Frame, FrameData, Response},
};

pub(super) fn redact_messages(redaction: &Redaction, frames: &mut [Frame]) {
    for frame in frames {
        let is_sent = frame.direction == Direction::Sent;
        let is_secret = |name: &str| {
            if is_sent { redaction.is_request_secret(name) } else { has(&redaction.fields, name) }
        };
        match &mut frame.data {
            FrameData::Text(text) => {
                let redacted = body::redact_json(text.as_bytes(), &is_secret);
                if let Some(redacted) = redacted.and_then(|redacted| String::from_utf8(redacted).ok()) {
                    *text = redacted;
                }
            }
            FrameData::Binary(bytes) => {
                if let Some(redacted) = body::redact_json(bytes, &is_secret) {
                    *bytes = redacted;
                }
            }
            FrameData::Close { .. } | FrameData::Chunk(_) => {}
        }
    }
}

/// Removes fields from the `data:` lines of a stream and moves the ends of its chunks accordingly.
pub(super) fn redact_stream(redaction: &Redaction, response: &mut Response, frames: &mut [Frame]) {
    let is_secret = |name: &str| has(&redaction.fields, name);
    if redaction.fields.is_empty() {
        return;
    }
    let Some(decoded) = encoding::decode(&response.headers, &response.body) else { return };
    let mut redacted = Vec::with_capacity(decoded.len());
    // For every line: where it ended before and where it ends now.
    let mut ends = Vec::new();
    let mut old = 0;
    for line in decoded.split_inclusive(|byte| *byte == b'\n') {
        old += line.len();
        let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
        match data.and_then(|data| body::redact_json(data, &is_secret)) {
            Some(data) => redacted.extend_from_slice(&[b"data: ", data.as_slice(), b"\n"].concat()),
            None => redacted.extend_from_slice(line),
        }
        ends.push((old, redacted.len()));
    }
    if redacted == decoded.as_ref() {
        return;
    }
    move_chunks(frames, &ends);
    super::replace_body(&mut response.headers, &mut response.body, redacted);
}

/// A chunk that ended inside a line now ends with that line.
fn move_chunks(frames: &mut [Frame], ends: &[(usize, usize)]) {
    let (mut old, mut new) = (0, 0);
    for frame in frames {
        let FrameData::Chunk(length) = &mut frame.data else { continue };
        old += *length as usize;
        let line = ends.partition_point(|(end, _)| *end < old);
        let end = ends.get(line).or(ends.last()).map_or(0, |(_, end)| *end);
        *length = (end - new) as u64;
        new = end;
    }
}
