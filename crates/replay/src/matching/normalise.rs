//! Requests without what changes from visit to visit: cache busters, the order of a query, the layout of a JSON body.

use serde_json::Value;
use url::Url;

use super::MatchRules;
use crate::{
    Request, encoding,
    warc::{digest::sha256_label, http},
};

/// Query keys that only serve to avoid caches, whatever their value.
const CACHE_BUSTERS: [&str; 14] = [
    "_",
    "cb",
    "cachebuster",
    "cache_buster",
    "cachebust",
    "nocache",
    "no_cache",
    "rnd",
    "rand",
    "random",
    "__t",
    "_t",
    "_ts",
    "_dc",
];
/// Query keys that hold the time in some places and mean something else in others.
const TIME_KEYS: [&str; 9] = ["t", "ts", "time", "timestamp", "now", "date", "dt", "v", "r"];

/// A request as names and values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Normalised {
    /// Scheme, host, port and path.
    pub(crate) location: String,
    /// Sorted.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Empty,
    /// Paths of a JSON text, or names of a form, with their values, sorted.
    Fields(Vec<(String, String)>),
    Other(Vec<u8>),
}

impl MatchRules {
    /// Whether a value is ignored in normalised and scored matches.
    pub(crate) fn is_ignored(&self, key: &str, value: &str) -> bool {
        let is = |name: &str| name.eq_ignore_ascii_case(key);
        let last = key.rsplit('.').next().unwrap_or(key);
        let is_busters = CACHE_BUSTERS.iter().any(|name| is(name));
        let is_time = TIME_KEYS.iter().any(|name| is(name)) && (is_seconds(value) || is_random(value));
        is_busters
            || is_time
            || is_milliseconds(value)
            || is_random(value)
            || self.ignored_keys.iter().any(|name| is(name) || name.eq_ignore_ascii_case(last))
    }
}

fn is_digits(value: &str, length: usize) -> bool {
    value.len() == length && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Unix time in seconds, from 2001 to 2286.
fn is_seconds(value: &str) -> bool {
    is_digits(value, 10) && value.starts_with(|c| c != '0')
}

/// Unix time in milliseconds between 2014 and 2033. Under any name, because ids rarely look so.
fn is_milliseconds(value: &str) -> bool {
    is_digits(value, 13) && matches!(&value[..2], "14" | "15" | "16" | "17" | "18" | "19")
}

/// What `Math.random()` gives: at least ten decimals.
fn is_random(value: &str) -> bool {
    let decimals = value.strip_prefix("0.");
    decimals.is_some_and(|digits| digits.len() >= 10 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the URL that is compared: without fragment, and WebSockets like the requests that open them.
pub(crate) fn parse_url(url: &str) -> Option<Url> {
    let mut parsed = Url::parse(&http::stored_url(url)).ok()?;
    parsed.set_fragment(None);
    Some(parsed)
}

pub(crate) fn normalise(request: &Request, url: &Url, rules: &MatchRules) -> Normalised {
    let location = url[..url::Position::AfterPath].to_owned();
    let query = kept(url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())), rules);
    Normalised { location, query, body: normalise_body(request, rules) }
}

fn kept(pairs: impl Iterator<Item = (String, String)>, rules: &MatchRules) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = pairs.filter(|(key, value)| !rules.is_ignored(key, value)).collect();
    pairs.sort_unstable();
    pairs
}

fn normalise_body(request: &Request, rules: &MatchRules) -> Body {
    if request.body.is_empty() {
        return Body::Empty;
    }
    let decoded = encoding::decode(&request.headers, &request.body);
    let body = decoded.as_deref().unwrap_or(&request.body);
    let media_type = request.headers.media_type().unwrap_or_default();
    if media_type == "application/x-www-form-urlencoded" {
        let pairs = form_urlencoded::parse(body);
        return Body::Fields(kept(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())), rules));
    }
    let may_be_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    match may_be_json.then(|| serde_json::from_slice::<Value>(body).ok()).flatten() {
        Some(value) => {
            let mut pairs = Vec::new();
            flatten(&value, String::new(), &mut pairs);
            Body::Fields(kept(pairs.into_iter(), rules))
        }
        None => Body::Other(body.to_vec()),
    }
}

/// Turns a JSON text into paths and scalars; an empty object or array is a value of its own.
fn flatten(value: &Value, path: String, pairs: &mut Vec<(String, String)>) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| flatten(value, join(name), pairs));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| flatten(item, join(&index.to_string()), pairs));
        }
        Value::String(text) => pairs.push((path, text.clone())),
        other => pairs.push((path, other.to_string())),
    }
}

/// Names a request for people: method and URL without cache busters, and the operation or digest of its body.
pub(crate) fn request_label(request: &Request, rules: &MatchRules) -> String {
    let Some(url) = parse_url(&request.url) else { return format!("{} {}", request.method, request.url) };
    let parts = normalise(request, &url, rules);
    let query: Vec<String> = parts.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let body = match &parts.body {
        Body::Empty => String::new(),
        Body::Fields(fields) => {
            let text: Vec<String> = fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!(" [{}]", shorten(&text.join("&")))
        }
        Body::Other(bytes) => format!(" [{}]", &sha256_label(bytes)[..19]),
    };
    format!("{} {}{query}{body}", request.method, parts.location)
}

/// Keeps labels of different bodies different.
fn shorten(text: &str) -> String {
    const MAX: usize = 120;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX).collect();
    format!("{start}… {}", &sha256_label(text.as_bytes())[..19])
}
