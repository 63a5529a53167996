//! Method and body of a request as a part of its URL, so that an index tells requests to one URL apart. This is the
//! convention of pywb 2: `?__wb_method=POST&…`.

use base64::{Engine, engine::general_purpose::STANDARD};
use form_urlencoded::byte_serialize;
use serde_json::Value;

use crate::{Headers, exchange::Request};

/// pywb cuts the folded body off here.
const MAX_LENGTH: usize = 4096;

/// A request's body as a query string.
pub(crate) struct Folded {
    pub(crate) url: String,
    pub(crate) body: String,
}

/// Returns the URL with method and body, or nothing for a GET request.
pub(crate) fn fold(request: &Request) -> Option<Folded> {
    let method = request.method.to_ascii_uppercase();
    if method == "GET" {
        return None;
    }
    let has_body = matches!(method.as_str(), "POST" | "PUT") && !request.body.is_empty();
    let body = if has_body { body_query(&request.headers, &request.body) } else { String::new() };
    let body: String = body.chars().take(MAX_LENGTH).collect();
    let separator = if request.url.contains('?') { '&' } else { '?' };
    let mut url = format!("{}{separator}__wb_method={method}", request.url);
    if !body.is_empty() {
        url.push('&');
        url.push_str(&body);
    }
    Some(Folded { url, body })
}

fn body_query(headers: &Headers, body: &[u8]) -> String {
    let content_type = headers.text("content-type").unwrap_or_default();
    let binary = || format!("__wb_post_data={}", STANDARD.encode(body));
    if content_type.starts_with("application/x-www-form-urlencoded") {
        std::str::from_utf8(body).map_or_else(|_| binary(), unquote_plus)
    } else if content_type.starts_with("multipart/") {
        multipart_query(content_type, body).unwrap_or_else(binary)
    } else if content_type.starts_with("application/json") {
        json_query(body).unwrap_or_default()
    } else if content_type.starts_with("text/plain") {
        json_query(body).unwrap_or_else(binary)
    } else {
        binary()
    }
}

fn unquote_plus(text: &str) -> String {
    // The whole text as the value of one pair: `&` and `=` are kept.
    let escaped = text.replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(escaped.as_bytes()).next().map_or_else(String::new, |(text, _)| text.into_owned())
}

fn encode(text: &[u8]) -> String {
    // Python's quote_plus keeps the tilde and encodes the asterisk.
    byte_serialize(text).collect::<String>().replace("%7E", "~").replace('*', "%2A")
}

/// All scalars of a JSON text by the names of their fields; repeated names are numbered.
fn json_query(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    collect(&value, "", &mut pairs);
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name.as_bytes()), encode(value.as_bytes())))
        .collect();
    Some(pairs.join("&"))
}

fn collect(value: &Value, name: &str, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect(value, name, pairs)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, name, pairs)),
        _ if name.is_empty() => {}
        scalar => {
            let name = unused_name(name, pairs);
            pairs.push((name, scalar_text(scalar)));
        }
    }
}

fn unused_name(name: &str, pairs: &[(String, String)]) -> String {
    let is_used = |name: &str| pairs.iter().any(|(used, _)| used == name);
    let numbered = (2..).map(|number| format!("{name}.{number}_"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_used(name)).unwrap_or_default()
}

fn scalar_text(scalar: &Value) -> String {
    match scalar {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            // As JavaScript writes whole numbers.
            if number.fract() == 0.0 && number.abs() < 1e15 {
                format!("{number:.0}")
            } else {
                number.to_string()
            }
        }
        other => other.to_string(),
    }
}

fn multipart_query(content_type: &str, body: &[u8]) -> Option<String> {
    let boundary = content_type.split_once("boundary=")?.1.split(';').next()?.trim().trim_matches('"');
    let delimiter = format!("--{boundary}");
    let text = String::from_utf8_lossy(body);
    let mut pairs = Vec::new();
    for part in text.split(delimiter.as_str()).skip(1).filter(|part| !part.starts_with("--")) {
        let (head, value) = part.split_once("\r\n\r\n")?;
        let name = head.split(['\n', ';']).map(str::trim).find_map(|item| item.strip_prefix("name="))?;
        let value = value.strip_suffix("\r\n").unwrap_or(value);
        pairs.push(format!("{}={}", encode(name.trim_matches('"').as_bytes()), encode(value.as_bytes())));
    }
    Some(pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of pywb 2.10's MethodQueryCanonicalizer.
    #[test]
    fn folded_urls_equal_those_of_pywb() {
        for (kind, body, expected) in [
            ("application/x-www-form-urlencoded", "a=1&b=x+y%26", "a=1&b=x y&"),
            (
                "application/json",
                r#"{"a":[1,2.0,2.5,true,null],"b":{"a":"x y*~"}}"#,
                "a=1&a.2_=2&a.3_=2.5&a.4_=true&a.5_=null&a.6_=x+y%2A~",
            ),
            ("application/json", "not json", ""),
            ("text/plain", "not json", "__wb_post_data=bm90IGpzb24="),
            ("application/octet-stream", "x", "__wb_post_data=eA=="),
            (
                "multipart/form-data; boundary=b",
                "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1 2\r\n--b--\r\n",
                "a=1+2",
            ),
        ] {
            let folded = fold(&Request::post("http://h/p", kind, body)).unwrap();
            assert_eq!(folded.body, expected, "{kind}");
            assert!(folded.url.starts_with("http://h/p?__wb_method=POST"), "{}", folded.url);
        }
        assert!(fold(&Request::get("http://h/")).is_none());
    }
}
