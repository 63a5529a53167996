//! What an episode leaves behind: the task, its steps, the verdict. The journal, the `.pt` files and the
//! viewer all hold this.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Tasks are named by text or by number; which of the two is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskId {
    Number(i64),
    Text(String),
}

/// One thing the screenshots must show for the task to count as done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RubricItem {
    pub description: String,
    pub difficulty: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub task_name: String,
    pub domain: String,
    pub subdomain: String,
    pub website: String,
    pub difficulty: i64,
    pub evaluator_reference: Vec<RubricItem>,
    /// `definite_answer` of the task file.
    pub reference_answer: Option<String>,
    #[serde(default)]
    pub attempt_level: i64,
    #[serde(default)]
    pub task_id: Option<TaskId>,
    #[serde(default)]
    pub max_steps: i64,
    #[serde(default)]
    pub trajectory_index: i64,
    /// Fields of the task file that we do not know: carried along, never interpreted.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// What the agent saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    pub image_path: String,
    pub ac_tree: Option<String>,
    pub title: String,
    pub url: String,
}

/// What the agent did: `{"key","arguments"}` and the sentence it stands for.
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
}

/// What the model said, and to what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub raw_response: String,
    /// thought, action, tool_call, thinking, observation, memory: as parsed.
    pub answering_tokens: Map<String, Value>,
    /// The messages as JSON text, images as `file://` URLs.
    pub raw_prompt: String,
}

/// The judge's words: one text, or one a question.
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    pub reward: i64,
    pub evaluation: Evaluation,
    pub is_blocked: bool,
    pub submit: bool,
    pub submission_judgment: Option<String>,
}

/// What a trainer may want beside the classic fields; absent when the server did not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepExtras {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "numbers")]
    pub logprobs: Option<Vec<f64>>,
    /// Stage → milliseconds.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub timings_ms: Map<String, Value>,
}

/// JSON has no word for numbers that are not finite and says null; such a step must still be readable.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let numbers: Option<Vec<Option<f64>>> = Option::deserialize(deserializer)?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect()))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub observation: Observation,
    /// `None` only in files of the Python system that lost it; such a trajectory counts as crashed.
    pub action: Option<Action>,
    pub response: Response,
    pub reward: Reward,
    /// Pixel-equal to the next screenshot; unknown until compared, never set on the last step.
    #[serde(default)]
    pub same_as_next_screenshot: Option<bool>,
    #[serde(default)]
    pub extras: StepExtras,
}

/// How an episode ended. Infrastructure trouble is never a reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failure,
    Blocked,
    /// The browser, the node or the policy went away and the retries with it.
    InfraLost,
    /// Collected, but the judge could not be reached; `webgym judge` can still score it.
    JudgeError,
    Cancelled,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Blocked => "blocked",
            Self::InfraLost => "infra_lost",
            Self::JudgeError => "judge_error",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrajectoryMetadata {
    #[serde(default)]
    pub keypoint_step_ids: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Anything else that a file carried here.
    #[serde(default, flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    pub task: Task,
    pub steps: Vec<Step>,
    pub metadata: TrajectoryMetadata,
}
