//! Values derived from the configuration: the task file, the model name, the farm URL, the judge.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use client::chat::{ChatRequest, Images, Message};
use proto::{ImageFormat, dialect::Size};

use super::schema::{Config, ImageDetail, ImageTransport, PolicyConfig, ScreenshotFormat, Split};
use crate::policy::DialectOptions;

/// The kinds of question that the judge answers; each may go to another model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    KeypointDetection,
    BlockingDetection,
    Evaluation,
}

/// Where and how a kind of question is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeEndpoint {
    pub api_key_env_var: String,
    pub base_url: String,
    /// The request without its messages: model and sampling settings.
    pub request: ChatRequest,
}

/// The viewport of a session without options.
const DEFAULT_VIEWPORT: Size = Size { width: 1280, height: 768 };

/// The default of `openai_config.base_url`. It requires a key; other servers may not.
pub const OPENAI_URL: &str = "https://api.openai.com/v1";

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

    /// Returns the dialect of the policy, if it has one. A version that does not exist is reported when the configuration is
    /// checked.
    pub fn dialect(&self) -> Option<DialectOptions> {
        let dialect = self.policy_config.dialect?;
        let version = self.policy_config.dialect_version.as_deref();
        let side = |name: &str| {
            let side = self.env_config.session.get("viewport")?.get(name)?.as_u64()?;
            u32::try_from(side).ok()
        };
        let viewport = match (side("width"), side("height")) {
            (Some(width), Some(height)) => Size { width, height },
            _ => DEFAULT_VIEWPORT,
        };
        Some(DialectOptions {
            dialect,
            version: version.and_then(|name| dialect.version(name).ok()),
            viewport,
        })
    }

    /// Returns where and how a kind of question is asked.
    pub fn judge_endpoint(&self, question: Question) -> JudgeEndpoint {
        let base = &self.openai_config;
        let given = match question {
            Question::KeypointDetection => &base.keypoint_detection,
            Question::BlockingDetection => &base.blocking_detection,
            Question::Evaluation => &base.evaluation,
        };
        let url = given.base_url.as_deref().or(base.base_url.as_deref()).unwrap_or(OPENAI_URL);
        let variable = given.openai_api_key_env_var.as_ref().unwrap_or(&base.openai_api_key_env_var);
        let image_detail = given.image_detail.or(base.image_detail);
        JudgeEndpoint {
            api_key_env_var: variable.clone(),
            base_url: url.to_owned(),
            request: ChatRequest {
                model: given.model.as_ref().unwrap_or(&base.model).clone(),
                temperature: given.temperature.or(base.temperature),
                top_p: given.top_p.or(base.top_p),
                max_tokens: given.max_tokens.or(base.max_tokens),
                image_detail: image_detail.map(ImageDetail::as_str),
                ..ChatRequest::default()
            },
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
            image_detail: None,
            logprobs: true,
            return_token_ids: true,
            extra: serde_json::Map::new(),
        }
    }
}

impl From<ScreenshotFormat> for ImageFormat {
    fn from(format: ScreenshotFormat) -> Self {
        match format {
            ScreenshotFormat::Png => Self::Png,
            ScreenshotFormat::Jpeg => Self::Jpeg,
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
