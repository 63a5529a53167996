//! The defects of one line of a task file.

use std::fmt;

/// Further defects of a line are only counted, so that a long line cannot fill the memory or the terminal.
const MAX_REASONS: usize = 10;

/// Everything that is wrong with one line, in the order in which it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineDefects {
    reasons: Vec<String>,
    omitted: usize,
}

impl LineDefects {
    pub(super) fn add(&mut self, reason: impl Into<String>) {
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(reason.into());
        } else {
            self.omitted += 1;
        }
    }

    /// Returns the value of a successful check. Records the reason of a failed one and returns the default value, so
    /// that the remaining checks can go on.
    pub(super) fn check<T: Default>(&mut self, result: Result<T, String>) -> T {
        result.unwrap_or_else(|reason| {
            self.add(reason);
            T::default()
        })
    }

    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }
}

impl From<String> for LineDefects {
    fn from(reason: String) -> Self {
        Self { reasons: vec![reason], omitted: 0 }
    }
}

impl fmt::Display for LineDefects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reasons.join("; "))?;
        match self.omitted {
            0 => Ok(()),
            more => write!(f, "; … and {more} more defects"),
        }
    }
}
