//! The configuration of a loop: keys, defaults and rules. `config/main/loop.yaml` documents the same keys for users.

use std::path::PathBuf;
use std::time::Duration;

use hydra::{ConfigError, Problem, SearchPath};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::Template;
use crate::preset::Preset;

/// The configuration that is used when none is named.
pub const DEFAULT_NAME: &str = "loop";

const EMBEDDED: &[hydra::EmbeddedFile] = &[("loop", include_str!("../../../config/main/loop.yaml"))];

pub const SERVE_PLACEHOLDERS: &[&str] = &["model", "port", "iteration", "rank", "save_path"];
pub const EXPORT_PLACEHOLDERS: &[&str] = &["data", "model", "output", "iteration", "save_path"];
pub const TRAIN_PLACEHOLDERS: &[&str] =
    &["data", "model", "output", "iteration", "rank", "ranks", "save_path"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopConfig {
    pub save_path: Option<PathBuf>,
    /// The model of the first iteration.
    pub model: Option<String>,
    /// Iterations that train.
    pub iterations: u64,
    pub first_iteration: u64,
    /// Iteration n collects with the seed `seed + n`.
    pub seed: u64,
    pub serve: ServeConfig,
    pub collect: CollectConfig,
    pub evaluate: EvaluateConfig,
    pub export: ExportConfig,
    pub train: TrainConfig,
    pub checkpoint: CheckpointConfig,
    /// Free space on the disk of the save path without which no phase starts.
    pub min_free_gb: f64,
    /// Seconds between attempts.
    pub retry_pause: f64,
    /// Seconds without a heartbeat after which a rank counts as dead.
    pub rank_stale_after: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServeConfig {
    /// Unset to attach to a server that somebody else runs.
    pub command: Option<Template>,
    pub url: String,
    /// What the server calls the model.
    pub served_model: String,
    /// The environment variable that holds the server's key, if it requires one.
    pub api_key_env_var: String,
    /// Makes an attached server load another model.
    pub reload: Option<Template>,
    pub ready_minutes: f64,
    /// Seconds between SIGTERM and SIGKILL.
    pub stop_seconds: f64,
    /// Whether the server is stopped before training, which may need its memory.
    pub stop_while_training: bool,
    pub environment: IndexMap<String, String>,
    pub retries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectConfig {
    pub config_name: String,
    pub config_path: Option<PathBuf>,
    /// Further arguments of `webgym rollout`: overrides and options.
    pub arguments: Vec<String>,
    pub timeout_minutes: f64,
    pub retries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluateConfig {
    /// In every n-th iteration, counted from the first; 0 for never.
    pub every: u64,
    /// Also after the last iteration.
    pub at_end: bool,
    #[serde(flatten)]
    pub rollout: CollectConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportConfig {
    /// Arguments of `webgym export`; unset for those of the preset.
    pub arguments: Option<Vec<String>>,
    pub timeout_minutes: f64,
    pub retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainRanks {
    /// Only rank 0 trains.
    First,
    All,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    pub preset: Option<Preset>,
    /// Settings of the preset's trainer.
    pub settings: IndexMap<String, Value>,
    pub command: Option<Template>,
    /// Where the checkpoint is below the output: a path in which `*` stands for the highest number.
    pub checkpoint: Option<String>,
    pub ranks: TrainRanks,
    pub directory: Option<PathBuf>,
    pub environment: IndexMap<String, String>,
    pub timeout_minutes: f64,
    pub stop_seconds: f64,
    /// Whether the trainer finds its unfinished output again when it is started again.
    pub keep_partial: bool,
    pub retries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// The link below the save path that names the current checkpoint.
    pub name: String,
    /// Checkpoints to keep, the current one included; 0 for all.
    pub keep: usize,
}

impl Default for LoopConfig {
    fn default() -> Self {
        let collect = |name: &str| CollectConfig {
            config_name: name.to_owned(),
            config_path: None,
            arguments: Vec::new(),
            timeout_minutes: 24.0 * 60.0,
            retries: 2,
        };
        Self {
            save_path: None,
            model: None,
            iterations: 10,
            first_iteration: 0,
            seed: 0,
            serve: ServeConfig::default(),
            collect: collect("rollout_train"),
            evaluate: EvaluateConfig { every: 0, at_end: false, rollout: collect("rollout_test") },
            export: ExportConfig { arguments: None, timeout_minutes: 120.0, retries: 1 },
            train: TrainConfig::default(),
            checkpoint: CheckpointConfig { name: "model.pt".to_owned(), keep: 0 },
            min_free_gb: 1.0,
            retry_pause: 10.0,
            rank_stale_after: 60.0,
        }
    }
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            command: None,
            url: "http://127.0.0.1:8999".to_owned(),
            served_model: "{model}".to_owned(),
            api_key_env_var: "VLLM_API_KEY".to_owned(),
            reload: None,
            ready_minutes: 15.0,
            stop_seconds: 30.0,
            stop_while_training: true,
            environment: IndexMap::new(),
            retries: 1,
        }
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            preset: None,
            settings: IndexMap::new(),
            command: None,
            checkpoint: None,
            ranks: TrainRanks::First,
            directory: None,
            environment: IndexMap::new(),
            timeout_minutes: 24.0 * 60.0,
            stop_seconds: 30.0,
            keep_partial: false,
            retries: 1,
        }
    }
}

impl TrainConfig {
    /// The trainer's command: the user's, or that of the preset.
    pub fn command(&self) -> Option<Template> {
        self.command.clone().or_else(|| self.preset.map(|preset| preset.train_command(&self.settings)))
    }

    pub fn checkpoint(&self) -> Option<&str> {
        self.checkpoint.as_deref().or_else(|| self.preset.and_then(Preset::checkpoint))
    }
}

impl LoopConfig {
    pub fn export_arguments(&self) -> Vec<String> {
        let preset = || self.train.preset.map(|preset| preset.export_arguments(&self.train.settings));
        self.export.arguments.clone().or_else(preset).unwrap_or_default()
    }
}

/// Looks in a folder first (`--config-path`), then in the files inside the binary.
pub fn search_path(folder: Option<PathBuf>) -> SearchPath {
    SearchPath::new(folder, EMBEDDED)
}

/// Loads the configuration `name` and checks its values; every problem is reported at once.
pub fn load(
    name: &str,
    search: &SearchPath,
    overrides: &[String],
    environment: hydra::Environment<'_>,
) -> Result<hydra::Resolved<LoopConfig>, ConfigError> {
    let resolved: hydra::Resolved<LoopConfig> = hydra::load(name, search, overrides, environment)?;
    let problems: Vec<Problem> = problems(&resolved.config)
        .into_iter()
        .map(|(key, reason)| Problem { origin: resolved.origin(&key), key, reason })
        .collect();
    if problems.is_empty() { Ok(resolved) } else { Err(ConfigError::Invalid(problems)) }
}

/// Converts seconds of the configuration, which were checked to be finite and not negative.
pub fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX)
}

/// Returns all problems as (key, reason).
fn problems(config: &LoopConfig) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut check = |key: &str, problem: Option<String>| {
        found.extend(problem.map(|reason| (key.to_owned(), reason)));
    };
    let unset = |is_set: bool, what: &str| (!is_set).then(|| what.to_owned());
    check(
        "save_path",
        unset(config.save_path.is_some(), "must be set: the folder of trajectories and checkpoints"),
    );
    check("iterations", (config.iterations == 0).then(|| "must be at least 1".to_owned()));
    let train = config.train.command();
    check(
        "train.command",
        match &train {
            Some(template) => template.check(TRAIN_PLACEHOLDERS).err(),
            None => {
                Some("must be set, or train.preset to one of llamafactory, verl: what trains a model".into())
            }
        },
    );
    check("train.settings", unused_settings(config));
    let export = config.export_arguments();
    check(
        "export.arguments",
        if export.is_empty() {
            Some("must be set, for example [--to, jsonl], or train.preset: what webgym export writes".into())
        } else {
            Template::Arguments(export).check(EXPORT_PLACEHOLDERS).err()
        },
    );
    let serve = &config.serve;
    for (key, template) in [("serve.command", &serve.command), ("serve.reload", &serve.reload)] {
        check(key, template.as_ref().and_then(|template| template.check(SERVE_PLACEHOLDERS).err()));
    }
    let served = Template::Arguments(vec![serve.served_model.clone()]);
    check("serve.served_model", served.check(SERVE_PLACEHOLDERS).err());
    check("serve.url", url_problem(&serve.url));
    check(
        "serve.reload",
        (serve.command.is_some() && serve.reload.is_some())
            .then(|| "is for a server that somebody else runs; remove it or serve.command".to_owned()),
    );
    let name = &config.checkpoint.name;
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    check("checkpoint.name", (!is_name).then(|| format!("must be a file name, not {name:?}")));
    let numbers = [
        ("serve.ready_minutes", serve.ready_minutes, true),
        ("serve.stop_seconds", serve.stop_seconds, false),
        ("collect.timeout_minutes", config.collect.timeout_minutes, true),
        ("evaluate.timeout_minutes", config.evaluate.rollout.timeout_minutes, true),
        ("export.timeout_minutes", config.export.timeout_minutes, true),
        ("train.timeout_minutes", config.train.timeout_minutes, true),
        ("train.stop_seconds", config.train.stop_seconds, false),
        ("min_free_gb", config.min_free_gb, false),
        ("retry_pause", config.retry_pause, false),
        ("rank_stale_after", config.rank_stale_after, true),
    ];
    for (key, number, must_be_positive) in numbers {
        let is_valid = number.is_finite() && if must_be_positive { number > 0.0 } else { number >= 0.0 };
        let bound = if must_be_positive { "more than 0" } else { "0 or more" };
        check(key, (!is_valid).then(|| format!("must be {bound}, not {number}")));
    }
    found
}

/// Settings reach the trainer through what a preset runs. Beside own commands they would be ignored.
fn unused_settings(config: &LoopConfig) -> Option<String> {
    let replaced = match config.train.preset {
        _ if config.train.settings.is_empty() => None,
        None => Some("train.preset, which is not set"),
        Some(Preset::LlamaFactory) if config.export.arguments.is_some() => {
            Some("the preset's export.arguments; remove yours, or add --train-setting KEY=VALUE to them")
        }
        Some(Preset::Verl) if config.train.command.is_some() => {
            Some("the preset's train.command; remove yours, or add the settings to it")
        }
        Some(_) => None,
    };
    replaced.map(|needed| format!("are settings of {needed}"))
}

fn url_problem(url: &str) -> Option<String> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let is_valid = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(' '));
    (!is_valid).then(|| format!("must be a URL that starts with http:// or https://, not {url:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_with(overrides: &[&str]) -> Result<LoopConfig, ConfigError> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        load(DEFAULT_NAME, &search_path(None), &overrides, &|_| None).map(|resolved| resolved.config)
    }

    #[test]
    fn shipped_file_has_the_defaults() {
        let config = load_with(&["save_path=/runs/a", "train.preset=verl"]).unwrap();
        let default = LoopConfig {
            save_path: Some("/runs/a".into()),
            train: TrainConfig { preset: Some(Preset::Verl), ..TrainConfig::default() },
            ..LoopConfig::default()
        };
        assert_eq!(config, default);
    }

    #[test]
    fn settings_that_would_be_ignored_are_refused() {
        let common = ["save_path=/runs/a", "+train.settings.bf16=false"];
        for (more, part) in [
            (&["train.command=[t]", "export.arguments=[--to,jsonl]"][..], "train.preset, which is not set"),
            (&["train.preset=llamafactory", "export.arguments=[--to,jsonl]"][..], "--train-setting"),
            (&["train.preset=verl", "train.command=[t]"][..], "train.command"),
        ] {
            let error = load_with(&[&common[..], more].concat()).unwrap_err().to_string();
            assert!(error.contains("train.settings") && error.contains(part), "{part}: {error}");
        }
        let config = load_with(&[&common[..], &["train.preset=llamafactory"]].concat()).unwrap();
        assert!(config.export_arguments().contains(&"bf16=false".to_owned()));
    }

    #[test]
    fn all_problems_are_reported_with_their_keys() {
        let error = load_with(&[
            "save_path=/runs/a",
            "iterations=0",
            "train.command=[train,'{dta}']",
            "serve.url=localhost",
            "checkpoint.name=a/b",
            "train.timeout_minutes=0",
        ])
        .unwrap_err()
        .to_string();
        for part in [
            "iterations",
            "train.command",
            "unknown placeholder {dta}",
            "export.arguments",
            "serve.url",
            "checkpoint.name",
            "train.timeout_minutes",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn unknown_key_is_refused_with_the_nearest_one() {
        let error = load_with(&["save_path=/runs/a", "train.comand=[x]"]).unwrap_err().to_string();
        assert!(error.contains("train.command"), "{error}");
    }
}
