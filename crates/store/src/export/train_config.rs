//! LLaMA-Factory's training configuration, `train_config.yaml`, with the original's settings. When the model is a checkpoint with
//! the state of its optimizer, the training continues from it: epochs and steps count on from its `trainer_state.json`.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::ExportError;
use super::sink::{self, Subset};
use crate::durable::{AtomicFile, Existing};

/// What `train_config.yaml` should contain.
#[derive(Clone, Debug, Default)]
pub struct TrainConfig {
    /// The model to train: a folder or a name.
    pub model: Option<String>,
    /// Where the trainer writes.
    pub output: Option<PathBuf>,
    /// Where the trainer finds the data; unset for the folder that is written to.
    pub data: Option<PathBuf>,
    /// Settings that replace or complement the defaults.
    pub settings: Vec<(String, Value)>,
    /// A DeepSpeed configuration: zero1, zero2, zero3, or a file.
    pub deepspeed: Option<String>,
    /// Devices on which the batch is divided, which determines the number of steps per epoch.
    pub devices: u64,
}

impl TrainConfig {
    /// Writes the file and returns its path, followed by that of the DeepSpeed configuration if there is one.
    pub(super) fn write(
        &self,
        out: &Path,
        subsets: &[Subset],
        examples: u64,
        existing: Existing,
    ) -> Result<Vec<PathBuf>, ExportError> {
        // The trainer may run elsewhere.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let out = &absolute(out);
        let data = &self.data.as_deref().map_or_else(|| out.clone(), absolute);
        let mut config = self.defaults(data, subsets);
        let mut files = Vec::new();
        if let Some(name) = &self.deepspeed {
            let path = write_deepspeed(name, out, existing, &mut files)?;
            // A file of the user stays where it is.
            let path = path.strip_prefix(out).map(|name| data.join(name)).unwrap_or(path);
            config.insert("deepspeed".to_owned(), json!(path));
        }
        for (key, value) in &self.settings {
            config.insert(key.clone(), value.clone());
        }
        self.continue_checkpoint(&mut config, examples);
        let path = out.join("train_config.yaml");
        write_yaml(&path, &config, existing).map_err(|error| ExportError::io(&path, error))?;
        files.insert(0, path);
        Ok(files)
    }

    fn defaults(&self, data: &Path, subsets: &[Subset]) -> Map<String, Value> {
        let is_thinking =
            self.model.as_deref().is_some_and(|model| model.to_lowercase().contains("thinking"));
        let mut config = json!({
            "stage": "sft", "do_train": true, "finetuning_type": "full",
            "dataset": "webgym_train", "dataset_dir": data,
            "template": if is_thinking { "qwen3_vl" } else { "qwen3_vl_nothink" },
            "mask_history": true, "overwrite_output_dir": true, "trust_remote_code": true,
            "cutoff_len": 16384, "per_device_train_batch_size": 3, "gradient_accumulation_steps": 4,
            "learning_rate": 1e-6, "max_grad_norm": 1.0, "weight_decay": 0.01, "num_train_epochs": 2.0,
            "warmup_steps": 30, "lr_scheduler_type": "constant_with_warmup", "logging_steps": 1,
            // High enough that only the last step is saved.
            "save_strategy": "steps", "save_steps": 999_999, "save_total_limit": 1, "save_only_model": false,
            "preprocessing_num_workers": 16, "dataloader_num_workers": 2, "dataloader_pin_memory": true,
            "gradient_checkpointing": false, "bf16": true, "remove_unused_columns": false, "plot_loss": false,
            "report_to": "none",
        });
        if let Some(model) = &self.model {
            config["model_name_or_path"] = json!(model);
        }
        if let Some(output) = &self.output {
            config["output_dir"] = json!(output);
        }
        if subsets.contains(&Subset::Validation) {
            config["eval_dataset"] = json!("webgym_val");
            config["per_device_eval_batch_size"] = json!(3);
        }
        match config {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Continues from a checkpoint with the state of its optimizer. Without new limits, a trainer would end at once, because
    /// the checkpoint has done all epochs and steps of its own training.
    fn continue_checkpoint(&self, config: &mut Map<String, Value>, examples: u64) {
        let Some(folder) = self.model.as_deref().map(Path::new).filter(|path| has_optimizer(path)) else {
            return;
        };
        let state = std::fs::read(folder.join("trainer_state.json")).ok();
        let Some(state) = state.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) else {
            return;
        };
        config.insert("resume_from_checkpoint".to_owned(), json!(folder));
        config.insert("ignore_data_skip".to_owned(), json!(true));
        let number = |key: &str| config.get(key).and_then(Value::as_f64).unwrap_or(1.0);
        let epochs = number("num_train_epochs");
        let batch = number("per_device_train_batch_size") * number("gradient_accumulation_steps");
        let batch = (batch * self.devices.max(1) as f64).max(1.0);
        let done = |key: &str| state.get(key).and_then(Value::as_f64).unwrap_or(0.0);
        // A limit of the user is one for each training, not for the sum of all.
        let own_steps = config.get("max_steps").and_then(Value::as_f64).filter(|steps| *steps > 0.0);
        let steps = own_steps.unwrap_or(((examples as f64 / batch).floor() * epochs).max(1.0));
        config.insert("num_train_epochs".to_owned(), json!(done("epoch") + epochs));
        config.insert("max_steps".to_owned(), json!((done("global_step") + steps) as u64));
    }
}

/// Writes the DeepSpeed configuration of a stage, or finds that of the user.
fn write_deepspeed(
    name: &str,
    out: &Path,
    existing: Existing,
    files: &mut Vec<PathBuf>,
) -> Result<PathBuf, ExportError> {
    let Some(stage) = name.strip_prefix("zero").and_then(|stage| stage.parse::<u64>().ok()) else {
        let path = PathBuf::from(name);
        let unknown = || {
            ExportError::Options(format!(
                "{name:?} is not a DeepSpeed configuration; give zero1, zero2, zero3 or the path of a file"
            ))
        };
        return if path.is_file() {
            std::path::absolute(&path).map_err(|_| unknown())
        } else {
            Err(unknown())
        };
    };
    if !(1..=3).contains(&stage) {
        let reason = format!("DeepSpeed has no {name}; its stages are zero1, zero2 and zero3");
        return Err(ExportError::Options(reason));
    }
    let mut zero = json!({"stage": stage, "overlap_comm": true, "contiguous_gradients": true});
    if stage == 3 {
        zero["stage3_gather_16bit_weights_on_model_save"] = json!(true);
    }
    let config = json!({
        "bf16": {"enabled": "auto"}, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "zero_optimization": zero,
    });
    let path = out.join(format!("deepspeed_{name}.json"));
    sink::write_json(&path, &config, existing)?;
    files.push(path.clone());
    Ok(path)
}

/// Whether a folder has what a trainer needs to continue: the state of its optimizer, also in DeepSpeed's form.
fn has_optimizer(folder: &Path) -> bool {
    let is_state = |name: &str| name == "optimizer.pt" || name == "latest" || name.starts_with("global_step");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_state))
}

/// Writes one line per setting. JSON values are YAML, too, except numbers such as 1e-7, which PyYAML reads as text.
fn write_yaml(path: &Path, config: &Map<String, Value>, existing: Existing) -> std::io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    for (key, value) in config {
        let text = value.to_string();
        let text = if value.is_f64() && !text.contains('.') { text.replacen('e', ".0e", 1) } else { text };
        writeln!(file, "{key}: {text}")?;
    }
    file.commit(existing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(config: &TrainConfig, out: &Path, examples: u64) -> Vec<String> {
        let files = config.write(out, &[Subset::Train], examples, Existing::Replace).unwrap();
        std::fs::read_to_string(&files[0]).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn settings_replace_the_defaults() {
        let out = tempfile::tempdir().unwrap();
        let config = TrainConfig {
            model: Some("org/Model-Thinking".into()),
            settings: vec![
                ("learning_rate".into(), json!(2e-5)),
                ("use_cpu".into(), json!(true)),
                ("tiny".into(), json!(1e-9)),
            ],
            deepspeed: Some("zero2".into()),
            ..TrainConfig::default()
        };
        let lines = written(&config, out.path(), 100);
        for line in [
            "template: \"qwen3_vl\"",
            "learning_rate: 0.00002",
            "use_cpu: true",
            "tiny: 1.0e-9",
            "cutoff_len: 16384",
            "model_name_or_path: \"org/Model-Thinking\"",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
        }
        assert!(out.path().join("deepspeed_zero2.json").is_file());
        assert!(!lines.iter().any(|line| line.starts_with("max_steps")), "there is nothing to continue");
    }

    #[test]
    fn training_continues_from_a_checkpoint_with_optimizer() {
        let (out, model) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(model.path().join("trainer_state.json"), r#"{"epoch": 2.5, "global_step": 675}"#)
            .unwrap();
        let config = TrainConfig {
            model: Some(model.path().display().to_string()),
            devices: 2,
            ..TrainConfig::default()
        };
        let lines = written(&config, out.path(), 240);
        assert!(!lines.iter().any(|line| line.starts_with("resume_from_checkpoint")), "it has only weights");
        std::fs::create_dir(model.path().join("global_step675")).unwrap();
        let lines = written(&config, out.path(), 240);
        // 240 examples in batches of 3 × 4 × 2 are 10 steps per epoch.
        for line in ["num_train_epochs: 4.5", "max_steps: 695", "ignore_data_skip: true"] {
            assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
        }
    }

    #[test]
    fn own_limit_of_steps_counts_from_the_checkpoint() {
        let (out, model) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(model.path().join("trainer_state.json"), r#"{"epoch": 1.0, "global_step": 10}"#)
            .unwrap();
        std::fs::write(model.path().join("optimizer.pt"), "").unwrap();
        let config = TrainConfig {
            model: Some(model.path().display().to_string()),
            settings: vec![("max_steps".into(), json!(2))],
            ..TrainConfig::default()
        };
        let lines = written(&config, out.path(), 240);
        assert!(lines.iter().any(|line| line == "max_steps: 12"), "{lines:#?}");
    }

    #[test]
    fn paths_name_the_folder_that_the_trainer_reads() {
        let out = tempfile::tempdir().unwrap();
        let config = TrainConfig {
            data: Some("/runs/a/final".into()),
            deepspeed: Some("zero1".into()),
            ..TrainConfig::default()
        };
        let lines = written(&config, out.path(), 1);
        for line in [r#"dataset_dir: "/runs/a/final""#, r#"deepspeed: "/runs/a/final/deepspeed_zero1.json""#]
        {
            assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
        }
        assert!(out.path().join("deepspeed_zero1.json").is_file());
    }

    #[test]
    fn unknown_deepspeed_configuration_is_refused() {
        let out = tempfile::tempdir().unwrap();
        for name in ["zero4", "nowhere.json"] {
            let config = TrainConfig { deepspeed: Some(name.into()), ..TrainConfig::default() };
            let error = config.write(out.path(), &[Subset::Train], 1, Existing::Replace).unwrap_err();
            assert!(error.to_string().contains("zero1, zero2"), "{error}");
        }
    }
}
