//! Identifies an iteration of a run: its split, its number and, when several ranks collect it, the rank.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The set of tasks that an iteration collects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Test,
}

impl Split {
    pub const ALL: [Self; 2] = [Self::Train, Self::Test];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Split {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "train" => Ok(Self::Train),
            "test" => Ok(Self::Test),
            other => Err(format!("split is {other:?}; it must be \"train\" or \"test\"")),
        }
    }
}

/// Identifies one iteration of a split, or the part of it that one rank collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IterationId {
    pub split: Split,
    pub iteration: u64,
    pub rank: Option<u32>,
}

impl IterationId {
    pub const fn new(split: Split, iteration: u64) -> Self {
        Self { split, iteration, rank: None }
    }

    pub const fn with_rank(self, rank: Option<u32>) -> Self {
        Self { rank, ..self }
    }

    pub(super) fn file_name(self) -> String {
        let Self { split, iteration, rank } = self;
        let suffix = rank.map_or_else(String::new, |rank| format!("_rank_{rank}"));
        format!("{split}_trajectories.pt.iteration{iteration}{suffix}")
    }
}

impl fmt::Display for IterationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} iteration {}", self.split, self.iteration)?;
        self.rank.map_or(Ok(()), |rank| write!(formatter, " rank {rank}"))
    }
}
