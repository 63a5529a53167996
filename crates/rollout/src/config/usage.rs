//! Values derived from the configuration: the task file, the model name, the farm URL, the judge.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use client::chat::{ChatRequest, Images, Message};

use super::schema::{Config, ImageTransport, JudgeOverride, PolicyConfig, Split};

/// The kinds of question that the judge answers; each may go to another model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    KeypointDetection,
    BlockingDetection,
    Evaluation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeEndpoint {
    pub model: String,
    pub api_key_env_var: String,
    pub base_url: String,
}

impl Config {
    /// Returns the task file of the split. Relative names are resolved against `data_path`.
    pub fn tasks_path(&self) -> Option<PathBuf> {
        let env = &self.env_config;
        let name = match env.split {
            Split::Train => env.train_tasks.as_deref(),
            Split::Test => env.test_tasks.as_deref(),
        };
        let name = Path::new(name.filter(|name| !name.is_empty())?);
        if name.is_absolute() {
            return Some(name.to_owned());
        }
        Some(self.data_path.as_deref().unwrap_or(Path::new("")).join(name))
    }

    /// Returns the model's name at the policy server: the checkpoint if it exists, otherwise the base model.
    pub fn policy_model(&self) -> Option<String> {
        let policy = &self.policy_config;
        let checkpoint = match (&self.save_path, policy.checkpoint_path.as_deref()) {
            (Some(save_path), Some(name)) if !name.is_empty() => {
                Some(save_path.join(name)).filter(|p| p.exists())
            }
            _ => None,
        };
        checkpoint.map(|path| path.display().to_string()).or_else(|| policy.base_model.clone())
    }

    /// Returns the URL of the farm, or `None` for a farm inside the process.
    pub fn farm_url(&self) -> Option<String> {
        let host = self.env_config.host_ip.as_deref()?;
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        let host = if is_bare_v6 { format!("[{host}]") } else { host.to_owned() };
        Some(match self.env_config.master_port {
            443 => format!("https://{host}"),
            port => format!("http://{host}:{port}"),
        })
    }

    /// Returns model, key and URL for a kind of question.
    pub fn judge_endpoint(&self, question: Question) -> JudgeEndpoint {
        let base = &self.openai_config;
        let JudgeOverride { model, openai_api_key_env_var, base_url } = match question {
            Question::KeypointDetection => &base.keypoint_detection,
            Question::BlockingDetection => &base.blocking_detection,
            Question::Evaluation => &base.evaluation,
        };
        let or = |given: &Option<String>, base: &String| given.as_ref().unwrap_or(base).clone();
        JudgeEndpoint {
            model: or(model, &base.model),
            api_key_env_var: or(openai_api_key_env_var, &base.openai_api_key_env_var),
            base_url: or(base_url, &base.base_url),
        }
    }
}

/// Converts a number of seconds from the configuration. Numbers that a `Duration` cannot hold become the maximum.
pub fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX)
}

impl PolicyConfig {
    /// Returns the request for one step of the policy.
    pub fn request(&self, model: &str, messages: Vec<Message>) -> ChatRequest {
        ChatRequest {
            model: model.to_owned(),
            messages,
            temperature: Some(self.temperature),
            top_p: Some(self.top_p),
            top_k: Some(self.top_k),
            min_p: Some(self.min_p),
            max_tokens: Some(self.max_new_tokens),
            logprobs: true,
            return_token_ids: true,
            extra: serde_json::Map::new(),
        }
    }
}

impl From<ImageTransport> for Images {
    fn from(transport: ImageTransport) -> Self {
        match transport {
            ImageTransport::Auto => Self::Auto,
            ImageTransport::File => Self::File,
            ImageTransport::Data => Self::Data,
        }
    }
}
