//! Charts as data: the measures, and for each split and difficulty class their values over iterations.

use serde::Serialize;
use store::metrics::DifficultyClass;
use store::{Split, Summary};

/// A line of a chart: all trajectories, or those of one difficulty class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    Overall,
    Easy,
    Medium,
    Hard,
}

impl Line {
    pub const ALL: [Self; 4] = [Self::Overall, Self::Easy, Self::Medium, Self::Hard];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overall => "overall",
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    pub(super) const fn class(self) -> Option<DifficultyClass> {
        match self {
            Self::Overall => None,
            Self::Easy => Some(DifficultyClass::Easy),
            Self::Medium => Some(DifficultyClass::Medium),
            Self::Hard => Some(DifficultyClass::Hard),
        }
    }

    pub(super) fn includes(self, summary: &Summary) -> bool {
        self.class().is_none_or(|class| DifficultyClass::of(summary.difficulty) == class)
    }
}

/// The unit of a chart's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A fraction between 0 and 1, shown in per cent.
    Share,
    Count,
}

/// What a chart measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Success,
    Steps,
    ResponseLength,
    GoBack,
    Crashed,
    Blocked,
    Unchanged,
    TasksSeen,
    WebsitesSeen,
}

impl Measure {
    pub const ALL: [Self; 9] = [
        Self::Success,
        Self::Steps,
        Self::ResponseLength,
        Self::GoBack,
        Self::Crashed,
        Self::Blocked,
        Self::Unchanged,
        Self::TasksSeen,
        Self::WebsitesSeen,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Success => "Success rate",
            Self::Steps => "Steps per trajectory",
            Self::ResponseLength => "Response length",
            Self::GoBack => "Go-back rate",
            Self::Crashed => "Crashed",
            Self::Blocked => "Blocked by the site",
            Self::Unchanged => "Unchanged screenshots",
            Self::TasksSeen => "Tasks seen before",
            Self::WebsitesSeen => "Websites seen before",
        }
    }

    /// Says what the values are a share or average of.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Success => "of trajectories with a verdict",
            Self::Steps => "of trajectories neither crashed nor blocked",
            Self::ResponseLength => "characters per model response",
            Self::GoBack => "of steps",
            Self::Crashed => "of all trajectories",
            Self::Blocked => "of trajectories that did not crash",
            Self::Unchanged => "of steps except the last",
            Self::TasksSeen | Self::WebsitesSeen => "in an earlier iteration of the same split",
        }
    }

    pub const fn unit(self) -> Unit {
        match self {
            Self::Steps | Self::ResponseLength => Unit::Count,
            _ => Unit::Share,
        }
    }
}

/// The values of one line in one split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    pub split: Split,
    pub line: Line,
    pub iterations: Vec<u64>,
    /// `None` where no trajectory contributes to the measure.
    pub values: Vec<Option<f64>>,
    /// The smoothed values, if smoothing was requested.
    pub smoothed: Option<Vec<Option<f64>>>,
}

/// One measure over iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    pub measure: Measure,
    pub title: &'static str,
    pub explanation: &'static str,
    pub unit: Unit,
    pub series: Vec<Series>,
}

/// All charts of a save path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Charts {
    /// The weight of the new value in the moving average; `None` if the curves are not smoothed.
    pub ema: Option<f64>,
    /// Number of trajectories that the charts are based on.
    pub trajectories: u64,
    pub charts: Vec<Chart>,
}
