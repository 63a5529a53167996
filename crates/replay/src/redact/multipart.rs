//! Removes fields from `multipart/form-data`.

use super::{MARKER, body::is_field_secret};
use crate::Headers;

pub(super) fn redact(headers: &Headers, body: &[u8], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    let content_type = headers.text("content-type")?;
    let (_, boundary) = content_type.split_once("boundary=")?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let delimiter = format!("--{boundary}").into_bytes();
    let mut redacted = Vec::with_capacity(body.len());
    let mut has_changed = false;
    for (index, part) in split(body, &delimiter).into_iter().enumerate() {
        if index > 0 {
            redacted.extend_from_slice(&delimiter);
        }
        match value_start(part).filter(|start| *start < part.len()) {
            Some(start) if is_field_secret(&field_name(&part[..start]), is_secret) => {
                redacted.extend_from_slice(&part[..start]);
                redacted.extend_from_slice(MARKER.as_bytes());
                redacted.extend_from_slice(b"\r\n");
                has_changed = true;
            }
            _ => redacted.extend_from_slice(part),
        }
    }
    has_changed.then_some(redacted)
}

fn split<'a>(mut body: &'a [u8], delimiter: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(found) = body.windows(delimiter.len()).position(|window| window == delimiter) {
        parts.push(&body[..found]);
        body = &body[found + delimiter.len()..];
    }
    parts.push(body);
    parts
}

fn value_start(part: &[u8]) -> Option<usize> {
    part.windows(4).position(|window| window == b"\r\n\r\n").map(|position| position + 4)
}

fn field_name(headers: &[u8]) -> String {
    let headers = String::from_utf8_lossy(headers);
    let after = headers.split(['\n', ';']).map(str::trim).find_map(|item| item.strip_prefix("name="));
    after.unwrap_or_default().trim_matches('"').to_owned()
}
