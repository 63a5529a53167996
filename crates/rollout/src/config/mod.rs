//! The configuration of a run: the keys, types and defaults that the composer in `hydra` reads files and overrides into, the
//! rules that values must satisfy, and the record of the configuration in `hyperparameters.yaml`.

mod defaults;
mod network;
mod record;
mod schema;
mod usage;
mod validate;

use std::path::PathBuf;

pub use hydra::{ConfigError, Origin, Problem, SearchPath};
pub use network::NetworkSource;
pub use record::{RecordError, append_hyperparameters};
pub use schema::{
    Config, ContextConfig, EnvConfig, HttpPools, ImageDetail, ImageTransport, JudgeKind, JudgeOverride,
    MaxSteps, ModelConfig, ModelType, OpenaiConfig, PolicyConfig, ProgramConfig, PromptVersion, RankWeights,
    RatioClass, SamplerKind, ScreenshotFormat, Split,
};
pub use usage::{JudgeEndpoint, OPENAI_URL, Question, seconds};

/// The configuration that is used when none is named.
pub const DEFAULT_NAME: &str = "rollout";

/// The files that ship inside the binary.
const EMBEDDED: &[hydra::EmbeddedFile] = &[
    ("default", include_str!("../../../../config/main/default.yaml")),
    ("rollout", include_str!("../../../../config/main/rollout.yaml")),
    ("rollout_train", include_str!("../../../../config/main/rollout_train.yaml")),
    ("rollout_test", include_str!("../../../../config/main/rollout_test.yaml")),
];

/// A configuration ready for use.
pub type Resolved = hydra::Resolved<Config>;

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
) -> Result<Resolved, ConfigError> {
    let resolved: Resolved = hydra::load(name, search, overrides, environment)?;
    let problems: Vec<Problem> = validate::problems(&resolved.config)
        .into_iter()
        .map(|(key, reason)| Problem { origin: without_secret(resolved.origin(&key), &key), key, reason })
        .collect();
    if problems.is_empty() { Ok(resolved) } else { Err(ConfigError::Invalid(problems)) }
}

/// Hides the argument of a key that names an environment variable: a secret may have been pasted there by mistake.
fn without_secret(origin: Origin, key: &str) -> Origin {
    match origin {
        Origin::Argument(_) if key.ends_with("_env_var") => Origin::Argument(format!("{key}=…").into()),
        other => other,
    }
}
