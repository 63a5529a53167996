//! SURT keys: `https://www.example.com/A?b=1` becomes `com,example)/a?b=1`, so that captures of one host are neighbours
//! in a sorted index. The rules are those of the Internet Archive, which pywb and its relatives use.

use std::fmt::Write;

/// Returns the key of a URL.
pub fn surt(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        // `urn:` and other URLs without a host keep their scheme.
        None => {
            return url
                .split_once(':')
                .map_or_else(|| url.into(), |(scheme, path)| without_host(scheme, path));
        }
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut key = host_key(authority, &scheme);
    key.push(')');
    key.push_str(&path_key(path));
    let query = query_key(query);
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    key
}

fn without_host(scheme: &str, path: &str) -> String {
    format!("{scheme}:{}", path.split('#').next().unwrap_or_default().to_ascii_lowercase())
}

fn host_key(authority: &str, scheme: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (host.as_str(), ""),
    };
    let default = match scheme {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    let host = strip_www(host.trim_matches('.'));
    let mut key = host.split('.').rev().collect::<Vec<_>>().join(",");
    if !port.is_empty() && port != default {
        key.push(':');
        key.push_str(port);
    }
    key
}

/// Removes `www.`, `www1.` and so on.
fn strip_www(host: &str) -> &str {
    let after = host.strip_prefix("www").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    after.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
}

fn path_key(path: &str) -> String {
    let unescaped = unescape(path.as_bytes());
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = unescaped.split(|byte| *byte == b'/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        match *segment {
            b"." => {}
            b".." => drop(kept.pop()),
            // Only the last segment may be empty: it keeps the trailing slash.
            b"" if index + 1 < segments.len() => {}
            segment => kept.push(segment),
        }
    }
    let key = escape(&kept.join(&b'/')).to_ascii_lowercase();
    format!("/{}", key.strip_suffix('/').unwrap_or(&key))
}

fn query_key(query: &str) -> String {
    let unescaped = unescape(query.as_bytes());
    let key = strip_session_ids(escape(&unescaped)).to_ascii_lowercase();
    let mut pairs: Vec<(&str, Option<&str>)> = key
        .split('&')
        .map(|pair| pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value))))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| value.map_or(name.to_owned(), |value| format!("{name}={value}")))
        .collect();
    pairs.join("&")
}

/// Removes the session ids of well-known servers.
fn strip_session_ids(mut query: String) -> String {
    for name in ["jsessionid=", "phpsessid=", "sid="] {
        let lower = query.to_ascii_lowercase();
        let is_id = |start: usize| {
            let value = &lower.as_bytes()[start + name.len()..];
            let length = value.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            (length == 32 && matches!(value.get(32), None | Some(b'&'))).then_some(start)
        };
        let found = lower.rmatch_indices(name).find_map(|(start, _)| is_id(start));
        if let Some(start) = found {
            let end = start + name.len() + 32;
            let rest = query.get(end + 1..).unwrap_or_default().to_owned();
            query.truncate(start);
            query.push_str(&rest);
        }
    }
    query
}

/// Decodes percent escapes until nothing changes.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    loop {
        let decoded = unescape_once(&bytes);
        if decoded.len() == bytes.len() {
            return decoded;
        }
        bytes = decoded;
    }
}

fn unescape_once(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while position < bytes.len() {
        let pair = (digit(bytes.get(position + 1)), digit(bytes.get(position + 2)));
        match (bytes[position], pair) {
            (b'%', (Some(high), Some(low))) => {
                decoded.push((high * 16 + low) as u8);
                position += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                position += 1;
            }
        }
    }
    decoded
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'#' | b'%' | 0..=32 | 127.. => drop(write!(text, "%{byte:02X}")),
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected keys are those of the Python package surt 0.3.1.
    #[test]
    fn keys_equal_those_of_pywb() {
        for (url, key) in [
            ("https://www.Example.com/", "com,example)/"),
            ("http://www23.example.com/A/B/?b=2&a=1#x", "com,example)/a/b?a=1&b=2"),
            ("http://example.com:8080/x", "com,example:8080)/x"),
            ("https://example.com:443", "com,example)/"),
            ("http://127.0.0.1:5000/a//b/../c/./d", "1,0,0,127:5000)/a/c/d"),
            ("http://u:p@example.com/?", "com,example)/"),
            ("http://example.com/a%2520b?q=%C3%A4+b%20c", "com,example)/a%20b?q=%c3%a4+b%20c"),
            ("http://example.com/?a&a=&a=1", "com,example)/?a&a=&a=1"),
            ("http://example.com/?x=1&sid=0123456789abcdef0123456789abcdef&y=2", "com,example)/?x=1&y=2"),
            ("wss://example.com/socket", "com,example)/socket"),
        ] {
            assert_eq!(surt(url), key, "{url}");
        }
    }
}
