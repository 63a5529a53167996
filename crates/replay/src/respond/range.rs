//! Range requests, answered from a complete recording.

use crate::{Headers, Request, Response};

/// Whether a 206 response has the whole content, as media players get it for `Range: bytes=0-`.
pub fn is_complete_part(headers: &Headers) -> bool {
    let parse = || {
        let (range, total) = headers.text("content-range")?.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, total.parse::<u64>().ok()?))
    };
    parse().is_some_and(|(first, last, total)| first == 0 && last.checked_add(1) == Some(total))
}

/// Returns the requested range of a recorded 200 response, or 416 if it is outside. Several ranges at once are answered
/// with the complete response, which a server may do.
pub fn select_range(request: &Request, response: &Response) -> Option<Response> {
    if !request.method.eq_ignore_ascii_case("GET") || response.status != 200 {
        return None;
    }
    let range = request.headers.text("range")?;
    if let Some(condition) = request.headers.text("if-range") {
        let is_same = [response.headers.text("etag"), response.headers.text("last-modified")]
            .contains(&Some(condition));
        if !is_same || condition.starts_with("W/") {
            return None;
        }
    }
    let total = response.body.len() as u64;
    let mut part = response.clone();
    if let Some((first, last)) = parse_range(range, total)? {
        (part.status, part.reason) = (206, "Partial Content".into());
        part.headers.set("Content-Range", format!("bytes {first}-{last}/{total}"));
        part.body = response.body.slice(first as usize..=last as usize);
    } else {
        (part.status, part.reason) = (416, "Range Not Satisfiable".into());
        part.headers.set("Content-Range", format!("bytes */{total}"));
        part.headers.remove("content-encoding");
        part.body.clear();
    }
    Some(part)
}

/// Returns nothing if the header is to be ignored, and no range if there are no such bytes.
#[expect(
    clippy::option_option,
    reason = "an invalid header and an unsatisfiable range are answered differently"
)]
fn parse_range(header: &str, total: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        let is_satisfiable = suffix > 0 && total > 0;
        return Some(is_satisfiable.then(|| (total.saturating_sub(suffix), total - 1)));
    }
    let first: u64 = first.parse().ok()?;
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    if last < first {
        return None;
    }
    Some((first < total).then(|| (first, last.min(total - 1))))
}
