//! Presets: commands, training data and checkpoint folders of well-known trainers.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::Template;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Fine-tuning on successful steps with LLaMA-Factory, as the original does.
    LlamaFactory,
    /// Supervised fine-tuning with verl.
    Verl,
}

/// Settings of a trainer by their names.
type Settings = IndexMap<String, Value>;

impl Preset {
    /// Arguments of `webgym export`: the data that the trainer reads.
    pub fn export_arguments(self, settings: &Settings) -> Vec<String> {
        let arguments: &[&str] = match self {
            Self::LlamaFactory => &[
                "--to",
                "llamafactory",
                "--last",
                "4",
                "--only-successful",
                "--min-steps",
                "2",
                "--drop-unchanged",
                "--sample",
                "1800",
                "--recency-power",
                "2",
                "--train-config",
                "--model",
                "{model}",
                "--train-output",
                "{output}",
                "--train-data",
                "{data}",
            ],
            Self::Verl => &["--to", "verl", "--last", "4", "--only-successful", "--min-steps", "2"],
        };
        let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        if self == Self::LlamaFactory {
            // Written into train_config.yaml, because the number of steps depends on them.
            arguments.extend(
                assignments(settings).flat_map(|assignment| ["--train-setting".to_owned(), assignment]),
            );
        }
        arguments
    }

    pub fn train_command(self, settings: &Settings) -> Template {
        let arguments: &[&str] = match self {
            Self::LlamaFactory => &["llamafactory-cli", "train", "{data}/train_config.yaml"],
            Self::Verl => &[
                "torchrun",
                "--standalone",
                "--nproc_per_node=gpu",
                "-m",
                "verl.trainer.sft_trainer",
                // Quoted for Hydra's grammar, in which a path with `=` is an error.
                "data.train_files='{data}/train.parquet'",
                "model.path='{model}'",
                "trainer.default_local_dir='{output}'",
                "checkpoint.save_contents=[model,hf_model]",
                "data.max_length=16384",
                "data.max_token_len_per_gpu=16384",
                // A training set that is smaller than a batch would be dropped.
                "data.train_batch_size=16",
                "trainer.total_epochs=2",
                "trainer.logger=[console]",
            ],
        };
        let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        if self == Self::Verl {
            arguments.extend(assignments(settings));
        }
        Template::Arguments(arguments)
    }

    /// Where the checkpoint is below the output.
    pub const fn checkpoint(self) -> Option<&'static str> {
        match self {
            // The output itself lacks the state of the optimizer, which the next training continues.
            Self::LlamaFactory => Some("checkpoint-*"),
            Self::Verl => Some("global_step_*/huggingface"),
        }
    }
}

/// Returns `key=value` for each setting, with braces that are no placeholders.
fn assignments(settings: &Settings) -> impl Iterator<Item = String> {
    settings.iter().map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}={value}").replace('{', "{{").replace('}', "}}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_reach_the_trainer() {
        let settings = Settings::from_iter([
            ("learning_rate".to_owned(), Value::from(1e-5)),
            ("run_name".to_owned(), Value::from("{first}")),
        ]);
        let values = |names: &[&'static str]| -> Vec<(&'static str, String)> {
            names.iter().map(|name| (*name, "/runs/lr=1".to_owned())).collect()
        };
        let rendered = Template::Arguments(Preset::LlamaFactory.export_arguments(&settings))
            .render(&values(&["data", "model", "output"]))
            .unwrap();
        let end = ["--train-setting", "learning_rate=0.00001", "--train-setting", "run_name={first}"];
        assert!(rendered.ends_with(&end.map(str::to_owned)), "{rendered:?}");
        let rendered =
            Preset::Verl.train_command(&settings).render(&values(&["data", "model", "output"])).unwrap();
        assert!(
            rendered.ends_with(&["learning_rate=0.00001", "run_name={first}"].map(str::to_owned)),
            "{rendered:?}"
        );
        assert!(rendered.contains(&"model.path='/runs/lr=1'".to_owned()), "{rendered:?}");
    }
}
