//! HTTP messages in the blocks of records: start line, headers, body.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    Headers,
    exchange::{Request, Response},
};

/// WebSockets open with an HTTP request, and readers of archives parse HTTP only below such URLs: `wss:` is stored as
/// `https:`, `ws:` as `http:`.
pub(crate) fn stored_url(url: &str) -> Cow<'_, str> {
    replace_scheme(url, &[("wss://", "https://"), ("ws://", "http://")])
}

/// Undoes `stored_url` for a connection that became a WebSocket.
pub(crate) fn web_socket_url(url: &str) -> Cow<'_, str> {
    replace_scheme(url, &[("https://", "wss://"), ("http://", "ws://")])
}

fn replace_scheme<'a>(url: &'a str, schemes: &[(&str, &str)]) -> Cow<'a, str> {
    for (from, to) in schemes {
        if url.get(..from.len()).is_some_and(|start| start.eq_ignore_ascii_case(from)) {
            return Cow::Owned(format!("{to}{}", &url[from.len()..]));
        }
    }
    Cow::Borrowed(url)
}

/// Returns where the body starts: after the first empty line.
pub(crate) fn header_end(bytes: &[u8]) -> Option<usize> {
    let mut position = 0;
    while let Some(found) = bytes[position..].iter().position(|byte| *byte == b'\n') {
        position += found + 1;
        match &bytes[position..] {
            [b'\n', ..] => return Some(position + 1),
            [b'\r', b'\n', ..] => return Some(position + 2),
            _ => {}
        }
    }
    None
}

/// Splits a message in its start line, headers and body. A message without an empty line has no body.
fn split(block: &[u8]) -> Result<(String, Headers, Bytes), String> {
    let end = header_end(block).unwrap_or(block.len());
    let mut lines =
        block[..end].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let start = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut headers = Headers::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Err(format!("the header line {:?} has no colon", String::from_utf8_lossy(line)));
        };
        headers.push(String::from_utf8_lossy(&line[..colon]).trim(), line[colon + 1..].trim_ascii());
    }
    Ok((start, headers, Bytes::copy_from_slice(&block[end..])))
}

/// Parses the block of a request record.
pub(crate) fn parse_request(block: &[u8], url: &str) -> Result<Request, String> {
    let (start, headers, body) = split(block)?;
    let method = start.split(' ').next().filter(|method| !method.is_empty());
    let method = method.ok_or("it has no method")?.to_owned();
    Ok(Request { method, url: url.to_owned(), headers, body })
}

/// Parses the block of a response record and removes a transfer encoding that another program left in the body.
pub(crate) fn parse_response(block: &[u8]) -> Result<Response, String> {
    let (start, mut headers, mut body) = split(block)?;
    let mut parts = start.splitn(3, ' ');
    let version = parts.next().unwrap_or_default();
    if !version.starts_with("HTTP/") {
        return Err(format!("it starts with {:?}", start.chars().take(60).collect::<String>()));
    }
    let status = parts.next().unwrap_or_default();
    let status = status.parse().map_err(|_| format!("its status is {status:?}, not a number"))?;
    if headers.text("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        if let Some(plain) = dechunk(&body) {
            body = plain.into();
        }
        headers.rename("transfer-encoding", "X-Archive-Orig-Transfer-Encoding");
    }
    Ok(Response { status, reason: parts.next().unwrap_or_default().to_owned(), headers, body })
}

/// Decodes a chunked body, or returns nothing if it is not chunked: many programs keep the header but not the encoding.
fn dechunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

/// Returns start line and headers of a request, with the path as its target.
pub(crate) fn request_head(request: &Request) -> Vec<u8> {
    let parsed = url::Url::parse(&request.url).ok();
    let target =
        parsed.as_ref().map_or("/", |url| &url[url::Position::BeforePath..url::Position::AfterQuery]);
    let mut head = format!("{} {} HTTP/1.1\r\n", clean(&request.method), clean(target)).into_bytes();
    if !request.headers.contains("host")
        && let Some(url) = &parsed
    {
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        head.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
    }
    append_headers(&mut head, &request.headers);
    head
}

pub(crate) fn response_head(response: &Response) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, clean(&response.reason)).into_bytes();
    append_headers(&mut head, &response.headers);
    head
}

/// Appends headers and the empty line. HTTP/2's pseudo-headers are in the start line already, and a line break in a
/// value would start another header.
fn append_headers(head: &mut Vec<u8>, headers: &Headers) {
    for (name, value) in headers.iter().filter(|(name, _)| !name.starts_with(':') && !name.trim().is_empty())
    {
        let name: String = name.chars().filter(|c| !c.is_control() && *c != ':').collect();
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend(value.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_body_is_decoded_only_if_it_is_chunked() {
        let chunked =
            parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(chunked.unwrap().body.as_ref(), b"abc");
        let plain = parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nabcdef").unwrap();
        assert_eq!(plain.body.as_ref(), b"abcdef");
        assert!(!plain.headers.contains("transfer-encoding"));
    }

    #[test]
    fn header_values_keep_bytes_that_are_not_utf_8() {
        let response = parse_response(b"HTTP/1.1 200 OK\r\nX: caf\xe9\r\n\r\n").unwrap();
        assert_eq!(response.headers.get("x"), Some(b"caf\xe9".as_slice()));
        assert!(response_head(&response).windows(4).any(|part| part == b"caf\xe9"));
    }

    #[test]
    fn line_break_in_a_value_starts_no_header() {
        let headers = [("X", "a\r\nInjected: b")].into_iter().collect();
        let head = response_head(&Response { status: 200, headers, ..Response::default() });
        assert!(!String::from_utf8(head).unwrap().contains("\nInjected"));
    }
}
