//! Removes secrets from what is recorded before it reaches the disk, and in the same way from requests that are looked
//! up, so that a removed value matches every other.

mod body;
mod frames;
mod multipart;

use serde::{Deserialize, Serialize};

use crate::{
    encoding,
    exchange::{Exchange, Outcome, Request, Response},
    headers::Headers,
};

/// Stands where a removed value was.
pub const MARKER: &str = "webgym-redacted";

/// Headers that are always removed unless secrets are kept.
const HEADERS: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];
/// Fields of requests that usually hold secrets. Responses use such names for other things, such as labels.
const REQUEST_FIELDS: [&str; 14] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "client_secret",
    "access_token",
    "refresh_token",
    "id_token",
    "api_key",
    "apikey",
    "authenticity_token",
    "csrf_token",
    "otp",
];
/// Headers whose values are URLs.
const URL_HEADERS: [&str; 5] = ["referer", "location", "content-location", "refresh", "link"];

/// Names whose values are removed. They are compared without regard to case and stored in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Redaction {
    /// Headers of requests and responses; they are removed completely.
    pub headers: Vec<String>,
    /// Keys of query strings.
    pub query: Vec<String>,
    /// Fields of JSON and form bodies of requests and responses, and of JSON messages.
    pub fields: Vec<String>,
    /// Query keys and fields of requests only.
    pub request_fields: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self {
            headers: HEADERS.map(str::to_owned).to_vec(),
            query: Vec::new(),
            fields: Vec::new(),
            request_fields: REQUEST_FIELDS.map(str::to_owned).to_vec(),
        }
    }
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|found| found.eq_ignore_ascii_case(name))
}

impl Redaction {
    /// Keeps everything.
    pub fn none() -> Self {
        Self { headers: Vec::new(), query: Vec::new(), fields: Vec::new(), request_fields: Vec::new() }
    }

    pub fn is_none(&self) -> bool {
        *self == Self::none()
    }

    /// Combines the names of two.
    pub fn merge(&mut self, other: &Self) {
        let add = |names: &mut Vec<String>, more: &[String]| {
            for name in more {
                if !has(names, name) {
                    names.push(name.clone());
                }
            }
        };
        add(&mut self.headers, &other.headers);
        add(&mut self.query, &other.query);
        add(&mut self.fields, &other.fields);
        add(&mut self.request_fields, &other.request_fields);
    }

    fn is_query_secret(&self, key: &str) -> bool {
        has(&self.query, key) || has(&self.fields, key) || has(&self.request_fields, key)
    }

    fn is_request_secret(&self, field: &str) -> bool {
        has(&self.fields, field) || has(&self.request_fields, field)
    }

    pub fn exchange(&self, exchange: &mut Exchange) {
        if self.is_none() {
            return;
        }
        self.request(&mut exchange.request);
        if let Outcome::Response(response) = &mut exchange.outcome {
            let is_stream = response.headers.media_type().as_deref() == Some("text/event-stream");
            if is_stream {
                self.headers(&mut response.headers);
                frames::redact_stream(self, response, &mut exchange.frames);
            } else {
                self.response(response);
            }
        }
        frames::redact_messages(self, &mut exchange.frames);
    }

    /// Removes secrets of a request: headers, values of the query, user and password of the URL, fields of the body.
    pub fn request(&self, request: &mut Request) {
        if self.is_none() {
            return;
        }
        if let Some(url) = self.url(&request.url) {
            request.url = url;
        }
        self.headers(&mut request.headers);
        let decoded = encoding::decode(&request.headers, &request.body);
        let is_secret = |name: &str| self.is_request_secret(name);
        let redacted = decoded.and_then(|body| body::redact(&request.headers, &body, &is_secret));
        if let Some(body) = redacted {
            replace_body(&mut request.headers, &mut request.body, body);
        }
    }

    fn response(&self, response: &mut Response) {
        self.headers(&mut response.headers);
        if self.fields.is_empty() {
            return;
        }
        let is_secret = |name: &str| has(&self.fields, name);
        let decoded = encoding::decode(&response.headers, &response.body);
        if let Some(body) = decoded.and_then(|body| body::redact(&response.headers, &body, &is_secret)) {
            replace_body(&mut response.headers, &mut response.body, body);
        }
    }

    fn headers(&self, headers: &mut Headers) {
        headers.retain(|name, _| !has(&self.headers, name));
        for (name, value) in headers.iter_mut() {
            if !URL_HEADERS.iter().any(|url| name.eq_ignore_ascii_case(url)) {
                continue;
            }
            if let Some(redacted) = self.url(&String::from_utf8_lossy(value)) {
                *value = redacted.into_bytes();
            }
        }
    }

    /// Returns a URL, absolute or relative, without secrets in user, password, query and fragment, or nothing if it has
    /// none.
    pub fn url(&self, url: &str) -> Option<String> {
        let mut redacted = String::with_capacity(url.len());
        let mut rest = url;
        if let Some((before, authority)) = url.split_once("://") {
            let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
            let host = authority[..end].rfind('@').map_or(0, |at| at + 1);
            redacted.push_str(before);
            redacted.push_str("://");
            rest = &authority[host..];
        }
        // Login pages also pass tokens in the fragment.
        for part in rest.split_inclusive(['?', '&', '#', ';', '>', ' ']) {
            let (pair, end) = split_end(part);
            match pair.split_once('=') {
                Some((key, value)) if !value.is_empty() && self.is_query_secret(&decode_key(key)) => {
                    redacted.push_str(key);
                    redacted.push('=');
                    redacted.push_str(MARKER);
                }
                _ => redacted.push_str(pair),
            }
            redacted.push_str(end);
        }
        (redacted != url).then_some(redacted)
    }
}

fn split_end(part: &str) -> (&str, &str) {
    let end = part.len() - usize::from(part.ends_with(['?', '&', '#', ';', '>', ' ']));
    part.split_at(end)
}

fn decode_key(key: &str) -> String {
    form_urlencoded::parse(key.as_bytes()).next().map_or_else(String::new, |(key, _)| key.into_owned())
}

/// Stores a changed body without content encoding. The headers that no longer apply keep their values under the names
/// that archives use.
fn replace_body(headers: &mut Headers, body: &mut bytes::Bytes, redacted: Vec<u8>) {
    headers.rename("content-encoding", "X-Archive-Orig-Content-Encoding");
    if headers.contains("content-length") {
        headers.rename("content-length", "X-Archive-Orig-Content-Length");
        headers.set("Content-Length", redacted.len().to_string());
    }
    *body = redacted.into();
}

#[cfg(test)]
mod tests;
