//! The record of an episode: task, steps, rewards and outcome. The journal, the `.pt` files and the viewer all use
//! these types.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::network::NetworkSummary;

/// The id of a task, as text or as a number, whichever the task file uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskId {
    Number(i64),
    Text(String),
}

/// One criterion that the screenshots must meet for the task to count as done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RubricItem {
    pub description: String,
    pub difficulty: i64,
}

/// A task of the task file, with its step limit and its index in the iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task_name: String,
    pub domain: String,
    pub subdomain: String,
    pub website: String,
    pub difficulty: i64,
    pub evaluator_reference: Vec<RubricItem>,
    /// The field `definite_answer` of the task file.
    pub reference_answer: Option<String>,
    #[serde(default)]
    pub attempt_level: i64,
    #[serde(default)]
    pub task_id: Option<TaskId>,
    #[serde(default)]
    pub max_steps: i64,
    #[serde(default)]
    pub trajectory_index: i64,
    /// Unknown fields of the task file: preserved, never interpreted.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Task {
    /// Returns the reference answer; a blank one counts as none.
    pub fn reference(&self) -> Option<&str> {
        self.reference_answer.as_deref().filter(|answer| !answer.trim().is_empty())
    }
}

/// What the agent observed before a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    pub image_path: String,
    pub ac_tree: Option<String>,
    pub title: String,
    pub url: String,
}

/// What the agent did: `{"key","arguments"}`, and the sentence in which the model announced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    pub key: String,
    pub arguments: Map<String, Value>,
    pub action_string: String,
}

impl Action {
    pub const ANSWER: &str = "answer";
    pub const GO_BACK: &str = "goback";
    pub const INVALID_STEP: &str = "invalid_step";
    pub const INVALID_URL: &str = "invalid_url";
    /// The name of the argument with a point or a box on the 1000 by 1000 grid.
    pub const COORDINATES: &str = "coordinates";
    /// The names of the argument with typed text or an answer: `text` for typing in coordinates mode, otherwise
    /// `content`.
    pub const TEXT: &str = "text";
    pub const CONTENT: &str = "content";

    /// Returns the point or box that the action refers to. Files of earlier versions name it `coordinate`.
    pub fn coordinates(&self) -> Option<&Value> {
        self.arguments.get(Self::COORDINATES).or_else(|| self.arguments.get("coordinate"))
    }

    /// Returns the text to type, or the answer.
    pub fn text(&self) -> Option<&Value> {
        self.arguments.get(Self::CONTENT).or_else(|| self.arguments.get(Self::TEXT))
    }
}

/// The model's response, and the prompt it responded to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub raw_response: String,
    /// The parsed parts of the response: thought, action, tool_call, thinking, observation, memory.
    pub answering_tokens: Map<String, Value>,
    /// The messages as JSON text, images as `file://` URLs.
    pub raw_prompt: String,
}

/// The judge's explanation: one text, or one text per question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evaluation {
    Text(String),
    Texts(Vec<String>),
}

impl Default for Evaluation {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The reward of one step and the judge's explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    pub reward: i64,
    pub evaluation: Evaluation,
    pub is_blocked: bool,
    pub submit: bool,
    pub submission_judgment: Option<String>,
}

/// Optional data for trainers; absent if the model server did not send it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepExtras {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "floats_or_null")]
    pub logprobs: Option<Vec<f64>>,
    /// Why the model stopped: `stop`, or `length` for a reply that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The version of the policy that replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Duration of each stage in milliseconds.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub timings_ms: Map<String, Value>,
}

/// Reads `null` as NaN: JSON cannot express numbers that are not finite, so they are written as `null`.
fn floats_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let numbers: Option<Vec<Option<f64>>> = Option::deserialize(deserializer)?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect()))
}

/// One step of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub observation: Observation,
    /// `None` only in files of the Python system that lack it; such a trajectory counts as crashed.
    pub action: Option<Action>,
    pub response: Response,
    pub reward: Reward,
    /// Whether the screenshot is pixel-equal to the next one; false on the last step. `None` until compared.
    #[serde(default)]
    pub same_as_next_screenshot: Option<bool>,
    #[serde(default)]
    pub extras: StepExtras,
}

/// How an episode ended. An infrastructure failure never becomes a reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failure,
    Blocked,
    /// The browser, the node or the policy server failed, and so did all retries.
    InfraLost,
    /// The episode was collected but the judge could not be reached; `webgym judge` can score it later.
    JudgeError,
    Cancelled,
    /// A page of a replay needed what the archive does not have. Another attempt would end in the same way.
    ReplayMiss,
}

impl Outcome {
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Failure,
        Self::Blocked,
        Self::InfraLost,
        Self::JudgeError,
        Self::Cancelled,
        Self::ReplayMiss,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Blocked => "blocked",
            Self::InfraLost => "infra_lost",
            Self::JudgeError => "judge_error",
            Self::Cancelled => "cancelled",
            Self::ReplayMiss => "replay_miss",
        }
    }

    /// Whether trainers must leave the trajectory out: it has no reward, because neither the agent nor the task caused its
    /// end, or because it was not judged.
    pub const fn is_masked(self) -> bool {
        matches!(self, Self::InfraLost | Self::JudgeError | Self::Cancelled | Self::ReplayMiss)
    }
}

/// Data about a whole trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryMetadata {
    #[serde(default)]
    pub keypoint_step_ids: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Equal for all attempts at a task that were sampled together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// The versions of the policy that replied, in the order of their first reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_versions: Vec<String>,
    /// The number of steps at the start that the attempt took over from the first attempt of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_at_step: Option<u64>,
    /// What was recorded or replayed, if the session had the option `network`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSummary>,
    /// Unknown fields of the file: preserved, never interpreted.
    #[serde(default, flatten)]
    pub extra: Map<String, Value>,
}

/// A complete episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    pub task: Task,
    pub steps: Vec<Step>,
    pub metadata: TrajectoryMetadata,
}
