//! Finds the checkpoint below a trainer's output.

use std::path::{Path, PathBuf};

use super::CheckpointError;

/// What the trainers of Hugging Face write while they train.
const NUMBERED: &str = "checkpoint-*";

/// Returns the folder of the checkpoint: at `pattern` below the output, or else the output itself or its latest
/// `checkpoint-*`.
pub fn locate(output: &Path, pattern: Option<&str>) -> Result<PathBuf, CheckpointError> {
    let is_empty = std::fs::read_dir(output).map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        return Err(CheckpointError::NoOutput(output.to_owned()));
    }
    let not_found = |expected: String| CheckpointError::NotFound { output: output.to_owned(), expected };
    if let Some(pattern) = pattern {
        return latest(output, pattern).ok_or_else(|| not_found(pattern.to_owned()));
    }
    if output.join("config.json").is_file() || output.join("adapter_config.json").is_file() {
        return Ok(output.to_owned());
    }
    latest(output, NUMBERED).ok_or_else(|| not_found(format!("config.json or {NUMBERED}")))
}

/// Follows a path in which `*` stands for a number, and returns the folder with the highest one.
fn latest(output: &Path, pattern: &str) -> Option<PathBuf> {
    let mut folder = output.to_owned();
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        folder = match part.split_once('*') {
            None => folder.join(part),
            Some((before, after)) => highest(&folder, before, after)?,
        };
    }
    folder.is_dir().then_some(folder)
}

fn highest(folder: &Path, before: &str, after: &str) -> Option<PathBuf> {
    let number = |name: &str| name.strip_prefix(before)?.strip_suffix(after)?.parse::<u64>().ok();
    std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .max_by_key(|(number, _)| *number)
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_number_is_found_below_the_output() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        assert!(matches!(locate(output, None), Err(CheckpointError::NoOutput(_))));
        for name in
            ["global_step_9/huggingface", "global_step_10/huggingface", "checkpoint-2", "checkpoint-x"]
        {
            std::fs::create_dir_all(output.join(name)).unwrap();
        }
        let found = locate(output, Some("global_step_*/huggingface")).unwrap();
        assert_eq!(found, output.join("global_step_10/huggingface"));
        assert_eq!(locate(output, None).unwrap(), output.join("checkpoint-2"));
        std::fs::write(output.join("config.json"), "{}").unwrap();
        assert_eq!(locate(output, None).unwrap(), output);
        let error = locate(output, Some("step_*")).unwrap_err().to_string();
        assert!(error.contains("step_*") && error.contains("train.checkpoint"), "{error}");
    }
}
