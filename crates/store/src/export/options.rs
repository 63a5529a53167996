//! Export options: what to export, and in which format.

use std::str::FromStr;

use super::{Advantage, ExportError, TrainConfig};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ShareGPT conversations with images and a `dataset_info.json`, for LLaMA-Factory; one example per step.
    LlamaFactory,
    /// Lines of `{"messages":[…]}`, as for OpenAI's fine-tuning; one example per step.
    OpenAiMessages,
    /// Parquet with `prompt`, `images`, `reward_model`, …, for verl; one example per step.
    Verl,
    /// One complete trajectory per line.
    Jsonl,
    /// A `.pt` file.
    Pt,
    /// The dataset of steps.
    Parquet,
}

impl Format {
    pub const ALL: [Self; 6] =
        [Self::LlamaFactory, Self::OpenAiMessages, Self::Verl, Self::Jsonl, Self::Pt, Self::Parquet];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LlamaFactory => "llamafactory",
            Self::OpenAiMessages => "openai-messages",
            Self::Verl => "verl",
            Self::Jsonl => "jsonl",
            Self::Pt => "pt",
            Self::Parquet => "parquet",
        }
    }

    /// Whether each example is a single step, so that steps can be left out.
    pub const fn is_per_step(self) -> bool {
        matches!(self, Self::LlamaFactory | Self::OpenAiMessages | Self::Verl)
    }

    /// Whether the format has a place for the mark of a trajectory without a reward.
    pub const fn can_mark_masked(self) -> bool {
        !matches!(self, Self::LlamaFactory)
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
            format!("{text:?} is not an export format; the formats are {}", names.join(", "))
        })
    }
}

/// What determines how recent a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recency {
    /// Its position among all steps, as in the original.
    Sample,
    /// Its iteration, so that the steps of an iteration are equally likely.
    Iteration,
}

impl FromStr for Recency {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sample" => Ok(Self::Sample),
            "iteration" => Ok(Self::Iteration),
            _ => Err(format!("{text:?} is not sample or iteration")),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ExportOptions {
    pub format: Format,
    /// Export only these iterations; by default, all finished ones.
    pub iterations: Option<Vec<u64>>,
    /// Export only the latest iterations, this many.
    pub last: Option<usize>,
    /// Compute advantages from the rewards.
    pub advantage: Option<Advantage>,
    pub only_successful: bool,
    /// Leave out trajectories with fewer steps.
    pub min_steps: u64,
    /// Leave out steps whose screenshot equals the next one.
    pub drop_unchanged: bool,
    /// Sample this many steps without replacement.
    pub sample: Option<usize>,
    /// Preference for later steps when sampling: the k-th has weight k^power.
    pub recency_power: f64,
    /// What the power counts.
    pub recency: Recency,
    /// LLaMA-Factory only: also write a training configuration.
    pub train_config: Option<TrainConfig>,
    /// Fraction of the tasks to use for validation; all trajectories of a task stay together.
    pub validation_share: f64,
    pub seed: u64,
    /// Parquet only: include the screenshots, in addition to their paths and hashes.
    pub inline_screenshots: bool,
    pub overwrite: bool,
}

impl ExportOptions {
    pub const fn new(format: Format) -> Self {
        Self {
            format,
            iterations: None,
            last: None,
            advantage: None,
            only_successful: false,
            min_steps: 0,
            drop_unchanged: false,
            sample: None,
            recency_power: 0.0,
            recency: Recency::Sample,
            train_config: None,
            validation_share: 0.0,
            seed: 0,
            inline_screenshots: false,
            overwrite: false,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ExportError> {
        let refuse = |reason: String| Err(ExportError::Options(reason));
        let format = self.format.as_str();
        if !(0.0..=1.0).contains(&self.validation_share) {
            return refuse(format!(
                "the validation share is {}; it must be between 0 and 1",
                self.validation_share
            ));
        }
        if !(0.0..=1000.0).contains(&self.recency_power) {
            return refuse(format!(
                "the recency power is {}; it must be between 0 and 1000",
                self.recency_power
            ));
        }
        if !self.format.is_per_step() && (self.drop_unchanged || self.sample.is_some()) {
            return refuse(format!(
                "{format} exports complete trajectories; steps can be left out only with {}",
                "llamafactory, openai-messages and verl"
            ));
        }
        if self.advantage.is_some() && matches!(self.format, Format::LlamaFactory | Format::Pt) {
            return refuse(format!(
                "{format} has no place for advantages; verl, openai-messages, jsonl and parquet have one"
            ));
        }
        if self.train_config.is_some() && self.format != Format::LlamaFactory {
            return refuse(format!("{format} has no training configuration; only llamafactory has one"));
        }
        if self.last == Some(0) {
            return refuse("the number of latest iterations is 0; it must be at least 1".to_owned());
        }
        if self.inline_screenshots && self.format != Format::Parquet {
            return refuse(format!("{format} refers to screenshots by path; only parquet can include them"));
        }
        Ok(())
    }
}
