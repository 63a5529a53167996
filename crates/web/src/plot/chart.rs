//! Charts as data: the measures, and for each split and difficulty class their values over iterations or trajectories.

use serde::Serialize;
use store::metrics::DifficultyClass;
use store::{Split, Summary};

use super::ema::Ema;

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
    SuccessInLimit,
    PassAtK,
    Steps,
    ResponseLength,
    MemoryLength,
    GoBack,
    Unchanged,
    UnchangedInSuccesses,
    Trajectories,
    Crashed,
    Blocked,
    TasksSeen,
    WebsitesSeen,
    WebsitesRepeated,
    ReplayExact,
    ReplaySimilar,
    ReplayMissed,
}

impl Measure {
    /// All measures, so that each row of three charts belongs together.
    pub const ALL: [Self; 18] = [
        Self::Success,
        Self::SuccessInLimit,
        Self::PassAtK,
        Self::Steps,
        Self::ResponseLength,
        Self::MemoryLength,
        Self::GoBack,
        Self::Unchanged,
        Self::UnchangedInSuccesses,
        Self::Trajectories,
        Self::Crashed,
        Self::Blocked,
        Self::TasksSeen,
        Self::WebsitesSeen,
        Self::WebsitesRepeated,
        Self::ReplayExact,
        Self::ReplaySimilar,
        Self::ReplayMissed,
    ];

    /// Returns whether the chart is left out if it has no values: few runs replay archives.
    pub(super) const fn is_optional(self) -> bool {
        matches!(self, Self::ReplayExact | Self::ReplaySimilar | Self::ReplayMissed)
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Success => "Success rate",
            Self::SuccessInLimit => "Success within step limits",
            Self::PassAtK => "pass@k of repeated tasks",
            Self::Steps => "Steps per trajectory",
            Self::ResponseLength => "Response length",
            Self::MemoryLength => "Memory length",
            Self::GoBack => "Go-back rate",
            Self::Unchanged => "Unchanged screenshots",
            Self::UnchangedInSuccesses => "Unchanged screenshots in successes",
            Self::Trajectories => "Trajectories",
            Self::Crashed => "Crashed",
            Self::Blocked => "Blocked by the site",
            Self::TasksSeen => "Tasks seen before",
            Self::WebsitesSeen => "Websites seen before",
            Self::WebsitesRepeated => "Repeated websites",
            Self::ReplayExact => "Replay: exact matches",
            Self::ReplaySimilar => "Replay: similar matches",
            Self::ReplayMissed => "Replay: missed",
        }
    }

    /// Says what the values are a share or average of.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Success => "of trajectories with a verdict",
            Self::SuccessInLimit => "at most 5, 8, 10, 15, 20, 30, 50 steps for difficulty 1 to 7",
            Self::PassAtK => "solved at least once in k tries; k: fewest tries per task",
            Self::Steps => "of trajectories neither crashed nor blocked",
            Self::ResponseLength => "characters per model response",
            Self::MemoryLength => "characters after \"Memory:\" per model response",
            Self::GoBack => "of steps",
            Self::Unchanged => "of steps except the last",
            Self::UnchangedInSuccesses => "of steps except the last, in successful trajectories",
            Self::Trajectories => "neither crashed, blocked nor cancelled",
            Self::Crashed => "of all trajectories",
            Self::Blocked => "of trajectories that did not crash",
            Self::TasksSeen | Self::WebsitesSeen => "in an earlier iteration of the same split",
            Self::WebsitesRepeated => "of tasks; another task of the iteration has the same website",
            Self::ReplayExact | Self::ReplayMissed => "of requests of replayed episodes",
            Self::ReplaySimilar => "of requests of replayed episodes; normalised or scored",
        }
    }

    pub const fn unit(self) -> Unit {
        match self {
            Self::Steps | Self::ResponseLength | Self::MemoryLength | Self::Trajectories => Unit::Count,
            _ => Unit::Share,
        }
    }
}

/// What the horizontal axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum XAxis {
    #[default]
    Iterations,
    /// The trajectories of the split up to and including an iteration.
    Trajectories,
}

impl XAxis {
    /// Returns the label below the axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Iterations => "iteration",
            Self::Trajectories => "trajectories of the split so far",
        }
    }
}

impl std::str::FromStr for XAxis {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "iterations" => Ok(Self::Iterations),
            "trajectories" => Ok(Self::Trajectories),
            _ => Err(format!("the x axis is {text:?}; it must be iterations or trajectories")),
        }
    }
}

/// How the charts are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChartOptions {
    pub ema: Option<Ema>,
    pub x: XAxis,
    /// Leave out trajectories of test tasks that are not out of distribution.
    pub is_ood_only: bool,
}

/// The values of one line in one split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    pub split: Split,
    pub line: Line,
    pub iterations: Vec<u64>,
    /// Positions on the horizontal axis, one for each iteration.
    pub x: Vec<u64>,
    /// `None` where no trajectory contributes to the measure.
    pub values: Vec<Option<f64>>,
    /// The smoothed values, if smoothing was requested.
    pub smoothed: Option<Vec<Option<f64>>>,
}

/// One measure over iterations or trajectories.
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
    pub x: XAxis,
    /// Whether only test tasks that are out of distribution are included.
    #[serde(rename = "ood")]
    pub is_ood_only: bool,
    /// Number of trajectories that the charts are based on.
    pub trajectories: u64,
    pub charts: Vec<Chart>,
}
