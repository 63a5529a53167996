//! How similar two requests to one place are, from 0 to 1.

use std::collections::HashSet;

use super::normalise::{Body, Normalised};

/// Fields that say which operation a body asks for. Bodies that differ here are different requests, however alike the
/// rest is.
const OPERATION_FIELDS: [&str; 4] =
    ["operationName", "extensions.persistedQuery.sha256Hash", "query", "method"];
/// Longer bodies are compared by their start.
const MAX_COMPARED: usize = 4096;

/// Scores a request against a recording: the share of query values that agree, and the same for the body. A name with
/// another value counts a quarter.
pub(crate) fn score(request: &Normalised, recorded: &Normalised) -> f64 {
    let query = pairs_score(&request.query, &recorded.query);
    // Without a query, the body decides alone.
    let has_query = !request.query.is_empty() || !recorded.query.is_empty();
    let with_query = |body: f64| if has_query { f64::midpoint(query, body) } else { body };
    match (&request.body, &recorded.body) {
        (Body::Empty, Body::Empty) => query,
        (Body::Fields(one), Body::Fields(other)) => {
            if is_other_operation(one, other) {
                0.0
            } else {
                with_query(pairs_score(one, other))
            }
        }
        (Body::Other(one), Body::Other(other)) => with_query(bytes_score(one, other)),
        _ => 0.0,
    }
}

fn is_other_operation(one: &[(String, String)], other: &[(String, String)]) -> bool {
    fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
        pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
    OPERATION_FIELDS.iter().any(|name| value(one, name) != value(other, name))
}

fn pairs_score(one: &[(String, String)], other: &[(String, String)]) -> f64 {
    let names: HashSet<&str> = one.iter().chain(other).map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return 1.0;
    }
    let values = |pairs: &'_ [(String, String)], name: &str| -> Vec<String> {
        pairs.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
    };
    let total: f64 = names
        .iter()
        .map(|name| {
            let (one, other) = (values(one, name), values(other, name));
            if one == other {
                1.0
            } else if one.is_empty() || other.is_empty() {
                0.0
            } else {
                0.25
            }
        })
        .sum();
    total / names.len() as f64
}

/// The share of common sequences of four bytes.
fn bytes_score(one: &[u8], other: &[u8]) -> f64 {
    if one == other {
        return 1.0;
    }
    let grams = |bytes: &'_ [u8]| -> HashSet<[u8; 4]> {
        let bytes = &bytes[..bytes.len().min(MAX_COMPARED)];
        bytes.windows(4).filter_map(|window| window.try_into().ok()).collect()
    };
    let (one, other) = (grams(one), grams(other));
    let common = one.intersection(&other).count();
    let all = one.len() + other.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}
