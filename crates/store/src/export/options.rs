//! What to export and into which shape.

use std::str::FromStr;

use super::ExportError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ShareGPT conversations with images and a `dataset_info.json`, for LLaMA-Factory; one example a step.
    LlamaFactory,
    /// `{"messages":[…]}` a line, as OpenAI's fine-tuning has it; one example a step.
    OpenAiMessages,
    /// Parquet with `prompt`, `images`, `reward_model`, …, for verl; one example a step.
    Verl,
    /// One trajectory a line, with everything.
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

    /// Whether examples are single steps, so that steps can be left out.
    pub const fn is_of_steps(self) -> bool {
        matches!(self, Self::LlamaFactory | Self::OpenAiMessages | Self::Verl)
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
            format!("{text:?} is no export format; there are {}", names.join(", "))
        })
    }
}

#[derive(Clone, Debug)]
pub struct ExportOptions {
    pub format: Format,
    /// Of these iterations; all finished ones when not said.
    pub iterations: Option<Vec<u64>>,
    pub only_successful: bool,
    /// Leave out trajectories with fewer steps.
    pub min_steps: u64,
    /// Leave out steps whose screenshot is the same as the next.
    pub drop_unchanged: bool,
    /// Draw so many steps, without replacement.
    pub sample: Option<usize>,
    /// How strongly later iterations are preferred in drawing: the k-th of K has weight (k/K)^power.
    pub recency_power: f64,
    /// Share of the tasks that goes to validation; all attempts at a task go together.
    pub validation_share: f64,
    pub seed: u64,
    /// For Parquet: the screenshots themselves, not only path and hash.
    pub inline_screenshots: bool,
    pub overwrite: bool,
}

impl ExportOptions {
    pub const fn new(format: Format) -> Self {
        Self {
            format,
            iterations: None,
            only_successful: false,
            min_steps: 0,
            drop_unchanged: false,
            sample: None,
            recency_power: 0.0,
            validation_share: 0.0,
            seed: 0,
            inline_screenshots: false,
            overwrite: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), ExportError> {
        let refuse = |reason: String| Err(ExportError::Options(reason));
        let format = self.format.as_str();
        if !(0.0..=1.0).contains(&self.validation_share) {
            return refuse(format!(
                "the validation share is {}; it must be from 0 to 1",
                self.validation_share
            ));
        }
        if !(0.0..=1000.0).contains(&self.recency_power) {
            return refuse(format!("the recency power is {}; it must be from 0 to 1000", self.recency_power));
        }
        if !self.format.is_of_steps() && (self.drop_unchanged || self.sample.is_some()) {
            return refuse(format!(
                "{format} keeps trajectories whole; steps can be left out of {}",
                "llamafactory, openai-messages and verl only"
            ));
        }
        if self.inline_screenshots && self.format != Format::Parquet {
            return refuse(format!("{format} refers to screenshots by path; only parquet can hold them"));
        }
        Ok(())
    }
}
