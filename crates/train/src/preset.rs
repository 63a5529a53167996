//! Presets: commands, training data and checkpoint folders of well-known trainers.

use serde::{Deserialize, Serialize};

use crate::command::Template;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Fine-tuning on successful steps with LLaMA-Factory, as the original does.
    LlamaFactory,
    /// Supervised fine-tuning with verl.
    Verl,
}

impl Preset {
    /// Arguments of `webgym export`: the data that the trainer reads.
    pub fn export_arguments(self) -> Vec<String> {
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
            ],
            Self::Verl => &["--to", "verl", "--last", "4", "--only-successful", "--min-steps", "2"],
        };
        arguments.iter().map(|text| (*text).to_owned()).collect()
    }

    pub fn train_command(self) -> Template {
        let arguments: &[&str] = match self {
            Self::LlamaFactory => &[
                "llamafactory-cli",
                "train",
                "{data}/train_config.yaml",
                // The data has its final name only now.
                "dataset_dir={data}",
            ],
            Self::Verl => &[
                "torchrun",
                "--standalone",
                "--nproc_per_node=gpu",
                "-m",
                "verl.trainer.sft_trainer",
                "data.train_files={data}/train.parquet",
                "model.path={model}",
                "trainer.default_local_dir={output}",
                "checkpoint.save_contents=[model,hf_model]",
            ],
        };
        Template::Arguments(arguments.iter().map(|text| (*text).to_owned()).collect())
    }

    /// Where the checkpoint is below the output.
    pub const fn checkpoint(self) -> Option<&'static str> {
        match self {
            Self::LlamaFactory => None,
            Self::Verl => Some("global_step_*/huggingface"),
        }
    }
}
