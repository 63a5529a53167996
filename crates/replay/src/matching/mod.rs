//! Finds the recording that answers a request: the same request, else one that differs in cache busters and order only,
//! else the most similar one. Every match says which kind it is.

mod cursor;
mod key;
mod normalise;
mod score;
mod sessions;
mod table;

pub use cursor::{Answer, Cursor, Found, Miss};
pub(crate) use normalise::request_label;
pub(crate) use sessions::Sessions;
pub(crate) use table::Table;

use serde::{Deserialize, Serialize};

/// Scored matches below this are misses. One of three values may differ, or one of four may be missing, but never the
/// only one.
pub const DEFAULT_THRESHOLD: f64 = 0.7;

/// How requests are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MatchRules {
    /// Query keys and fields of bodies that are ignored in normalised and scored matches, beside the known cache busters.
    pub ignored_keys: Vec<String>,
    /// The smallest score of a scored match, from 0 to 1. Above 1, there are no scored matches.
    pub threshold: f64,
}

impl Default for MatchRules {
    fn default() -> Self {
        Self { ignored_keys: Vec::new(), threshold: DEFAULT_THRESHOLD }
    }
}

/// How alike request and recording are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "score", rename_all = "snake_case")]
pub enum MatchKind {
    Exact,
    Normalised,
    Scored(f64),
}

#[cfg(test)]
mod tests;
