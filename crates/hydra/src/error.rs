//! Why a configuration cannot be used. Every message names the key and its origin.

use std::fmt;

use crate::node::Origin;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}:{line}: {reason}")]
    Yaml { file: String, line: usize, reason: String },
    #[error("cannot read {file}: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("there is no configuration {name:?}{included_by}; looked in {searched}{hint}")]
    NoSuchConfig { name: String, included_by: String, searched: String, hint: String },
    #[error("{origin}: defaults: {reason}")]
    Defaults { origin: Origin, reason: String },
    #[error("argument {argument:?}: {reason}")]
    Argument { argument: String, reason: String },
    #[error("{key} ({origin}): {reason}")]
    Interpolation { key: String, origin: Origin, reason: String },
    #[error("the configuration has {} problem{}:{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, bullets(.0))]
    Invalid(Vec<Problem>),
}

/// A problem with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub origin: Origin,
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "the whole configuration" } else { &self.key };
        write!(f, "{key} ({}): {}", self.origin, self.reason)
    }
}

fn bullets(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |text, problem| text + "\n  " + &problem.to_string())
}
