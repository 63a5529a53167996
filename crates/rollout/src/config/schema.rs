//! The typed configuration: every key and its type. `config/main/*.yaml` document the same keys for users.

use std::path::PathBuf;

use indexmap::IndexMap;
use proto::{InteractionMode, dialect::Dialect, network::OnMiss};
use serde::{Deserialize, Serialize};
use store::metrics::DifficultyClass;

use super::network::{self, NetworkSource};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub save_path: Option<PathBuf>,
    pub data_path: Option<PathBuf>,
    /// What scores an episode.
    pub judge: JudgeKind,
    /// Taken from the clock if not given; `hyperparameters.yaml` records it.
    pub seed: Option<u64>,
    pub model_config: ModelConfig,
    pub policy_config: PolicyConfig,
    pub context_config: ContextConfig,
    pub env_config: EnvConfig,
    pub program_config: ProgramConfig,
    pub openai_config: OpenaiConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeKind {
    /// A model if its API key is set, otherwise the reference answer.
    Auto,
    Openai,
    Reference,
    /// The checks of the tasks, and commands.
    Program,
    None,
}

/// How `judge=program` judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramConfig {
    /// The program, with its arguments, that judges tasks without checks of their own.
    pub command: Option<Vec<String>>,
    /// Seconds that judging one episode may take.
    pub timeout: f64,
    /// Whether programs run that a task file names. Task files may come from elsewhere.
    pub allow_task_commands: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    pub model_type: ModelType,
    pub prompt_version: PromptVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModelType {
    #[serde(rename = "qwen3-instruct")]
    Instruct,
    #[serde(rename = "qwen3-think")]
    Think,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptVersion {
    Complete,
    Vanilla,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyConfig {
    pub base_model: Option<String>,
    pub checkpoint_path: Option<String>,
    pub max_new_tokens: u32,
    pub temperature: f64,
    pub top_p: f64,
    /// -1 or 0 for no limit.
    pub top_k: i64,
    pub min_p: f64,
    /// The environment variable that holds the key of the policy server, if it requires one.
    pub api_key_env_var: String,
    /// A file with other prompts than the built-in ones.
    pub prompt_template: Option<PathBuf>,
    /// The dialect of computer actions that the model speaks; unset for the built-in actions.
    pub dialect: Option<Dialect>,
    /// The version of the dialect.
    #[serde(default, deserialize_with = "version_name")]
    pub dialect_version: Option<String>,
    /// Recorded as the version of the policy; unset for the version that the server states.
    #[serde(default, deserialize_with = "version_name")]
    pub version: Option<String>,
    /// Accepted for compatibility; models are not downloaded.
    pub huggingface_token_env_var: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextConfig {
    pub interaction_mode: InteractionMode,
    /// Whether set-of-marks prompts contain the text of the marked elements.
    pub include_ac_tree: bool,
    /// Lines of the page's visible text in the prompt, for models without vision; 0 for none.
    pub page_text_lines: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Test,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerKind {
    Uniform,
    Ratio,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageTransport {
    /// File URLs if the policy server can read them, otherwise data URLs.
    Auto,
    File,
    Data,
}

/// The encoding of the screenshots of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScreenshotFormat {
    Png,
    Jpeg,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvConfig {
    pub split: Split,
    /// Unset for a farm of `server_size` instances inside the process.
    pub host_ip: Option<String>,
    /// 443 selects https.
    pub master_port: u16,
    pub cpu_cluster_token_env_var: String,
    pub vllm_server_url: String,
    pub image_transport: ImageTransport,
    pub screenshot_format: ScreenshotFormat,
    /// The session options of every episode; a task's own `session` overrides them.
    pub session: IndexMap<String, serde_json::Value>,
    pub server_size: usize,
    pub max_vllm_sessions: usize,
    pub http_pools: HttpPools,
    /// Seconds an operation may wait for a permit.
    pub wait_timeout: f64,
    /// Seconds an operation may run.
    pub operation_timeout: f64,
    pub max_retries: u32,
    pub vllm_timeout: f64,
    /// How often an episode that was lost to infrastructure starts again.
    pub max_infra_retries: u32,
    pub evaluation_workers: usize,
    pub screenshot_comparison_workers: usize,
    /// Minutes without a request after which the farm ends a lease.
    pub instance_lifetime_max: u32,
    pub task_timeout_minutes: f64,
    pub completion_threshold: f64,
    pub completion_grace_period: f64,
    pub train_tasks: Option<String>,
    pub test_tasks: Option<String>,
    pub skip_bad_tasks: bool,
    pub train_tasks_rollout_size: i64,
    /// Attempts at each sampled train task.
    pub group_size: usize,
    /// The number of steps that the attempts of a group share; unset if every attempt starts at the beginning.
    pub group_from_step: Option<usize>,
    /// 0 or less for all.
    pub test_tasks_rollout_size: i64,
    pub test_tasks_repeat_times: u32,
    pub train_tasks_sampler: SamplerKind,
    pub difficulty_ratio: IndexMap<String, RatioClass>,
    pub deduplicate_across_iterations: bool,
    pub train_difficulty_max_steps: MaxSteps,
    pub test_difficulty_max_steps: MaxSteps,
    pub save_traj_progress: bool,
    pub save_every_percent: f64,
    pub resume_checkpoint_path: Option<PathBuf>,
    /// Iterations are numbered from this.
    pub first_iteration: u64,
    pub multinode_rank: Option<usize>,
    pub multinode_total_workers: Option<usize>,
    pub rank_load_weight: Option<f64>,
    pub total_load_weight: Option<f64>,
    pub all_rank_weights: Option<RankWeights>,
    pub multinode_rank_suffix: Option<String>,
    pub test_rank: Option<usize>,
    pub test_total_workers: Option<usize>,
    /// A `redis://…` URL. Collectors then take tasks from one queue instead of fixed shares.
    pub work_queue: Option<String>,
    /// Seconds without a heartbeat after which other collectors take over the tasks of a collector.
    pub work_queue_stale_after: f64,
    /// Minutes that rank 0 waits for the other ranks before it merges the available files.
    pub merge_wait_minutes: f64,
    /// Identifies the launch of the ranks, so that they do not join a run of an earlier launch.
    pub launch_id: Option<String>,
    /// Weight updates of the trainer that an item of the stream may be old; unset for no limit.
    pub max_staleness: Option<usize>,
    /// Items of the stream that the trainer uses for one weight update.
    pub stream_batch: Option<usize>,
    /// Seconds that a finished run waits until the consumer of its stream has acknowledged everything.
    pub stream_linger: f64,
    /// Records frames, console and network of every episode in the folder of its screenshots.
    pub record: bool,
    /// The archive into which the network traffic of every episode is recorded.
    pub record_network: Option<String>,
    pub network: NetworkSource,
    /// The archive that is replayed.
    pub archive: Option<String>,
    /// What becomes of requests that the archive cannot answer; unset for `fail`.
    #[serde(default, deserialize_with = "network::on_miss")]
    pub on_miss: Option<OnMiss>,
    /// Unset for no monitor, 0 for any free port.
    pub monitor_port: Option<u16>,
    /// Accepted for compatibility; the log level is set on the command line.
    pub verbose: bool,
    /// Accepted for compatibility; there is only one kind of tree.
    pub use_rich_actree: bool,
}

/// The most requests of each kind that a run sends at the same time; 0 stands for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpPools {
    pub metadata: usize,
    pub navigate: usize,
    pub allocate: usize,
    pub release: usize,
    pub screenshot: usize,
    pub ac_tree: usize,
    pub page_metadata: usize,
    pub execute: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxSteps {
    pub easy: u32,
    pub medium: u32,
    pub hard: u32,
}

impl MaxSteps {
    pub const TRAIN: Self = Self { easy: 10, medium: 20, hard: 30 };
    pub const TEST: Self = Self { easy: 30, medium: 50, hard: 70 };

    pub fn of(&self, difficulty: i64) -> u32 {
        match DifficultyClass::of(difficulty) {
            DifficultyClass::Easy => self.easy,
            DifficultyClass::Medium => self.medium,
            DifficultyClass::Hard => self.hard,
        }
    }
}

/// A class of the ratio sampler: a range of difficulties and its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioClass {
    pub range: [i64; 2],
    pub weight: f64,
}

/// The weights of all ranks, written as `"2,1,1"`, `[2,1,1]` or one number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct RankWeights(pub Vec<f64>);

/// Reads the name of a version. Some, such as 1.5, look like numbers.
fn version_name<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Name {
        Text(String),
        Whole(i64),
        Decimal(f64),
    }
    Ok(Option::<Name>::deserialize(from)?.map(|name| match name {
        Name::Text(text) => text,
        Name::Whole(number) => number.to_string(),
        Name::Decimal(number) => format!("{number:?}"),
    }))
}

impl From<RankWeights> for String {
    fn from(weights: RankWeights) -> Self {
        weights.0.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
    }
}

impl<'de> Deserialize<'de> for RankWeights {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WeightsVisitor;
        impl<'de> serde::de::Visitor<'de> for WeightsVisitor {
            type Value = RankWeights;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the weights of all ranks such as \"2,1,1\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RankWeights, E> {
                let weights: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
                weights
                    .map(RankWeights)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            fn visit_i64<E>(self, number: i64) -> Result<RankWeights, E> {
                Ok(RankWeights(vec![number as f64]))
            }
            fn visit_f64<E>(self, number: f64) -> Result<RankWeights, E> {
                Ok(RankWeights(vec![number]))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<RankWeights, A::Error> {
                let mut weights = Vec::new();
                while let Some(weight) = list.next_element()? {
                    weights.push(weight);
                }
                Ok(RankWeights(weights))
            }
        }
        from.deserialize_any(WeightsVisitor)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenaiConfig {
    pub model: String,
    pub openai_api_key_env_var: String,
    /// Unset for OpenAI's own address.
    pub base_url: Option<String>,
    /// Sampling settings; unset for the server's defaults.
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
    pub image_detail: Option<ImageDetail>,
    /// A folder with other questions than the built-in ones.
    pub prompt_templates: Option<PathBuf>,
    pub keypoint_detection: JudgeOverride,
    pub blocking_detection: JudgeOverride,
    pub evaluation: JudgeOverride,
}

/// How closely a judge looks at screenshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageDetail {
    Auto,
    Low,
    High,
}

impl ImageDetail {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// Settings of one kind of question that override the common ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeOverride {
    pub model: Option<String>,
    pub openai_api_key_env_var: Option<String>,
    pub base_url: Option<String>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_tokens: Option<u32>,
    pub image_detail: Option<ImageDetail>,
}
