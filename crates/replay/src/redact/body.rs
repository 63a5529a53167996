//! Removes fields from JSON, URL-encoded and multipart bodies. A body without such a field is not changed at all.

use std::borrow::Cow;

use serde_json::Value;

use super::{MARKER, multipart};
use crate::Headers;

/// Returns the changed body, or nothing if it has no such field.
pub(crate) fn redact(headers: &Headers, body: &[u8], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    if body.is_empty() {
        return None;
    }
    let media_type = headers.media_type().unwrap_or_default();
    match media_type.as_str() {
        "application/x-www-form-urlencoded" => redact_form(body, is_secret),
        "multipart/form-data" => multipart::redact(headers, body, is_secret),
        _ => redact_json(body, is_secret)
            .or_else(|| redact_lines(body, is_secret))
            // Scripts often send forms as text/plain.
            .or_else(|| (media_type == "text/plain").then(|| redact_form(body, is_secret)).flatten()),
    }
}

/// Whether the first character can start a JSON object or array, so that other bodies are not parsed in vain.
fn may_be_json(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

pub(crate) fn redact_json(text: &[u8], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    if !may_be_json(text) {
        return None;
    }
    let mut value: Value = serde_json::from_slice(text).ok()?;
    redact_value(&mut value, is_secret).then(|| value.to_string().into_bytes())
}

/// Bodies with one JSON text in each line, as batches of events are sent.
fn redact_lines(body: &[u8], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    if !may_be_json(body) {
        return None;
    }
    let mut has_changed = false;
    let lines: Vec<Cow<'_, [u8]>> = body
        .split(|byte| *byte == b'\n')
        .map(|line| match redact_json(line, is_secret) {
            Some(redacted) => {
                has_changed = true;
                Cow::Owned(redacted)
            }
            None => Cow::Borrowed(line),
        })
        .collect();
    has_changed.then(|| lines.join(&b'\n'))
}

/// Replaces the values of secret fields at any depth, also in JSON texts within strings.
fn redact_value(value: &mut Value, is_secret: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::Object(fields) => {
            let mut has_changed = false;
            for (name, field) in fields.iter_mut() {
                if is_secret(name) && !field.is_null() {
                    *field = Value::String(MARKER.to_owned());
                    has_changed = true;
                } else {
                    has_changed |= redact_value(field, is_secret);
                }
            }
            has_changed
        }
        Value::Array(items) => {
            // All of them: `any` would stop at the first.
            let mut has_changed = false;
            for item in items {
                has_changed |= redact_value(item, is_secret);
            }
            has_changed
        }
        Value::String(text) => {
            let inner = redact_json(text.as_bytes(), is_secret).and_then(|text| String::from_utf8(text).ok());
            inner.map(|inner| *text = inner).is_some()
        }
        _ => false,
    }
}

fn redact_form(body: &[u8], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut has_changed = false;
    let pairs: Vec<Cow<'_, [u8]>> = body
        .split(|byte| *byte == b'&')
        .map(|pair| {
            let key = pair.iter().position(|byte| *byte == b'=').map_or(pair, |equals| &pair[..equals]);
            let name = form_urlencoded::parse(key).next().map(|(name, _)| name.into_owned());
            if key.len() + 1 >= pair.len() || !name.is_some_and(|name| is_field_secret(&name, is_secret)) {
                return Cow::Borrowed(pair);
            }
            has_changed = true;
            Cow::Owned([key, b"=", MARKER.as_bytes()].concat())
        })
        .collect();
    has_changed.then(|| pairs.join(&b'&'))
}

/// Forms nest names in brackets: `user[password]` is the field `password`.
pub(crate) fn is_field_secret(name: &str, is_secret: &dyn Fn(&str) -> bool) -> bool {
    let inner = name.strip_suffix(']').and_then(|name| name.rsplit_once('[')).map(|(_, inner)| inner);
    is_secret(name) || inner.is_some_and(is_secret)
}
