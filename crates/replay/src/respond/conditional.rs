//! Conditional requests: `If-None-Match` and `If-Modified-Since`.

use bytes::Bytes;

use super::dates::parse_date;
use crate::{Headers, Request, Response};

/// Headers that a 304 response repeats.
const KEPT: [&str; 9] = [
    "cache-control",
    "content-location",
    "date",
    "etag",
    "expires",
    "vary",
    "last-modified",
    "access-control-allow-origin",
    "access-control-allow-credentials",
];

/// Returns 304 if the client already has what was recorded.
pub fn not_modified(request: &Request, response: &Response) -> Option<Response> {
    let is_read = ["GET", "HEAD"].iter().any(|method| request.method.eq_ignore_ascii_case(method));
    if !is_read || response.status != 200 || !is_fresh(&request.headers, &response.headers) {
        return None;
    }
    let headers =
        response.headers.iter().filter(|(name, _)| KEPT.iter().any(|kept| name.eq_ignore_ascii_case(kept)));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
    Some(Response { status: 304, reason: "Not Modified".into(), headers, body: Bytes::new() })
}

fn is_fresh(request: &Headers, response: &Headers) -> bool {
    // If-None-Match wins over If-Modified-Since.
    if let Some(wanted) = request.text("if-none-match") {
        let Some(tag) = response.text("etag") else { return false };
        let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        return wanted.trim() == "*" || wanted.split(',').any(|wanted| plain(wanted) == plain(tag));
    }
    let since = request.text("if-modified-since").and_then(parse_date);
    let modified = response.text("last-modified").and_then(parse_date);
    matches!((since, modified), (Some(since), Some(modified)) if modified <= since)
}
